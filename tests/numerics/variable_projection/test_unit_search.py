"""The search for units: stopped early, and its inputs carried back."""

from __future__ import annotations

import numpy as np
import pytest

import unweave
from unweave.errors import OutOfTime
from unweave.numerics.variable_projection.search import search_units
from unweave.numerics.whitening import Whitening


def test_quadratic_part_is_carried_back():
    rng = np.random.default_rng(1000)
    x = rng.standard_normal((200, 3)) @ rng.standard_normal((3, 3)) + 2
    whitening = Whitening.of(x)
    white = whitening(x)
    np.testing.assert_allclose(np.cov(white.T, bias=True), np.eye(3), atol=1e-12)
    quadratic, linear, constant = rng.standard_normal((1, 3, 3)), rng.standard_normal((3, 1)), np.ones(1)
    quadratic = quadratic + quadratic.transpose(0, 2, 1)
    full, slope, offset = whitening.quadratic_back(quadratic, linear, constant)
    expected = np.einsum("ni,kij,nj->nk", white, quadratic, white) + white @ linear + constant
    got = np.einsum("ni,kij,nj->nk", x, full, x) + x @ slope + offset
    np.testing.assert_allclose(got, expected, atol=1e-10)


def test_search_hands_back_what_it_has():
    net = unweave.random_network(
        [6, 5, 1], activation="relu", seed=1007, outer="signed", bias=1, norms=(0.5, 2)
    )
    x = np.random.default_rng(1007 + 77).standard_normal((20 * net.n_parameters, 6))
    y = net(x)
    calls = []

    def stop(steps, residual):
        calls.append(residual)
        if len(calls) == 5:
            raise OutOfTime

    ended = search_units(x, y / y.std(), 5, floor=1e-10, rng=np.random.default_rng(0), on_step=stop)
    assert ended.out_of_time
    assert not ended.exact
    assert ended.fit.residual == pytest.approx(calls[-1], rel=0.5)
