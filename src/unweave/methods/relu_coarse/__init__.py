"""One hidden layer of kinked units behind noise, rounding or a link."""
