"""Two small smooth hidden layers, from values at random rows."""
