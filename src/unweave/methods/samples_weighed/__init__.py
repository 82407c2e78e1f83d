"""Noisy samples: kind and width by marginal likelihood."""
