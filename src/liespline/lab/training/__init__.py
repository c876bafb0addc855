"""From settings to trained parameters, on Lightning."""
