"""One hidden layer of kinked units from samples."""
