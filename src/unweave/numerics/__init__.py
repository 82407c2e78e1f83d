"""Arrays in, arrays out: least squares, variable projection, tensors and sign search. Knows no network."""
