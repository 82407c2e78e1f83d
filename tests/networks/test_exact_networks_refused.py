"""Networks of fractions are evaluated, composed and counted; what needs floats says so."""

from __future__ import annotations

from fractions import Fraction

import pytest

import unweave


@pytest.fixture
def exact() -> unweave.Network:
    return unweave.Network(
        [[[Fraction(1, 3)]], [[Fraction(2)]]], [[Fraction(0)], [Fraction(1)]], ["relu", "identity"]
    )


@pytest.mark.parametrize(
    "operation", [unweave.canonical, lambda net: unweave.compare(net, net)], ids=["canonical", "compare"]
)
def test_refused_with_a_way_out(exact, operation):
    with pytest.raises(unweave.UnweaveError, match=r"float"):
        operation(exact)
