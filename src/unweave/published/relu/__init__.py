"""ReLU networks with one hidden layer from Gaussian samples, through Hermite coefficients."""
