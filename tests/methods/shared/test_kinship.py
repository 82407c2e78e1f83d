"""Kinds of units that imitate each other."""

from __future__ import annotations

import pytest

from unweave.methods.shared.kinship import imitation
from unweave.networks.activations import get_activation

KINDS = ("tanh", "erf", "softplus", "gelu", "swish", "sine", "squared_relu", "relu")


@pytest.mark.parametrize("name", KINDS)
def test_a_kind_imitates_itself(name):
    kind = get_activation(name)
    assert imitation(kind, kind).misfit < 1e-6


@pytest.mark.parametrize(("first", "second"), [("tanh", "erf"), ("softplus", "gelu"), ("gelu", "swish")])
def test_kin_are_near(first, second):
    assert imitation(get_activation(first), get_activation(second)).misfit < 0.05


@pytest.mark.parametrize(("first", "second"), [("tanh", "softplus"), ("gelu", "erf"), ("sine", "swish")])
def test_families_are_apart(first, second):
    assert imitation(get_activation(first), get_activation(second)).misfit > 0.5


def test_steepness_goes_both_ways():
    there = imitation(get_activation("gelu"), get_activation("swish")).sharpness
    back = imitation(get_activation("swish"), get_activation("gelu")).sharpness
    assert 0.8 < there * back < 1.25


def test_a_smooth_kink_imitates_a_kink():
    assert imitation(get_activation("gelu"), get_activation("relu")).misfit < 0.2
