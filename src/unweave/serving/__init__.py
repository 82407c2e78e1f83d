"""A reference prediction server on loopback: answers rows, counts them, and fails on purpose when told to."""

from __future__ import annotations

from unweave.serving.faults import Faults
from unweave.serving.model import ServedModel, load_model
from unweave.serving.server import ReferenceServer

__all__ = ["Faults", "ReferenceServer", "ServedModel", "load_model"]
