"""How much memory the rows and matrices of hidden layers of kinked units take."""

from __future__ import annotations

COPIES_OF_ASKED_ROWS = 3
"""Kept, joined, and sorted or chosen from."""
COPIES_OF_JACOBIAN = 3
"""Formed, without the held parameters, and scaled."""
