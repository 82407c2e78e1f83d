"""What a network is: activations, parameters, symmetries and comparison."""
