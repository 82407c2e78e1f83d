"""Hidden layers of units that rectify: a ReLU network far out, then profiles across its kinks."""
