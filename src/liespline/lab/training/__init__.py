"""From settings to trained weights, on Lightning."""
