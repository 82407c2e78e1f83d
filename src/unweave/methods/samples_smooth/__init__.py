"""One hidden layer of smooth units from samples."""
