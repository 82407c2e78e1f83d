"""One smooth hidden layer in few inputs, from values at random rows."""
