"""The sum over H alone, at every sample."""
