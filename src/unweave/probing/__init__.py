"""What a first look at a target shows."""
