"""One smooth hidden layer from coarse answers: float32, rounded, noisy, or behind a sigmoid or softmax."""
