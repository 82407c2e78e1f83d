"""Two hidden layers from samples."""
