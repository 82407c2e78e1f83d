"""Hidden layers of softplus, gelu, swish and mish units: a ReLU network far out, then profiles of its kinks."""
