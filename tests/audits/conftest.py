"""One audit of a small network, which several files look at."""

from __future__ import annotations

import pytest

import unweave

BUDGETS = (300, 3_000, 10_000)


@pytest.fixture(scope="session")
def planted() -> unweave.Network:
    return unweave.random_network([4, 3, 1], activation="tanh", seed=1001, outer="normal")


@pytest.fixture(scope="session")
def audited(planted) -> unweave.Audit:
    # The activation is told: to find it behind rounding takes six times as long, and is tested elsewhere.
    return unweave.audit(
        planted, decimals=[3, 2], noise=[1e-2], budgets=BUDGETS, seed=1000, activation="tanh"
    )
