"""Two hidden layers of units that level off, of any widths: the second layer from signs of the first."""
