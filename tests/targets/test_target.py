"""Whatever the user gives becomes a ledger, or an error that says what would do."""

from __future__ import annotations

import numpy as np
import pytest

from unweave.errors import InvalidInput
from unweave.networks.network import Network
from unweave.targets import Queries, as_queries


class Estimator:
    """Knows its number of inputs, and has secrets."""

    def __init__(self, name="n_inputs"):
        setattr(self, name, 3)
        self.weights = "secret"

    def __call__(self, x):
        return x.sum(axis=1)


def test_plain_function_needs_input_dim():
    with pytest.raises(InvalidInput, match="input_dim must be given for a plain function"):
        as_queries(np.sum)
    queries = as_queries(lambda x: x[:, 0], input_dim=2, max_queries=7)
    assert (queries.n_inputs, queries.remaining) == (2, 7)


def test_a_network_is_asked_like_any_other_target():
    net = Network([np.ones((3, 2)), np.ones((2, 1))], [np.zeros(2), np.zeros(1)], ["tanh", "identity"])
    queries = as_queries(net)
    assert queries.n_inputs == 3
    np.testing.assert_array_equal(queries(np.eye(3)), net(np.eye(3)))
    assert not hasattr(queries, "weights")


@pytest.mark.parametrize("name", ["n_inputs", "n_features_in_"])
def test_width_is_read_from_the_target(name):
    target = Estimator(name)
    assert as_queries(target).n_inputs == 3
    assert as_queries(target, input_dim=3)([[1.0, 2.0, 3.0]]) == 6.0
    with pytest.raises(InvalidInput, match="input_dim must be 3"):
        as_queries(target, input_dim=4)


def test_a_ledger_is_used_as_it_is():
    ledger = Queries(lambda x: x[:, 0], 2, max_queries=5, deadline=1000.0)
    ledger([[1.0, 2.0]])
    assert as_queries(ledger) is ledger
    assert ledger.remaining == 4
    assert as_queries(ledger, max_queries=9).remaining == 9
    assert ledger.seconds_left is not None
    assert as_queries(ledger, deadline=5.0).remaining == 9
    assert ledger.seconds_left <= 5.0
    ledger([[1.0, 2.0]])
    assert (ledger.sent, ledger.cache_hits) == (1, 1)
    with pytest.raises(InvalidInput, match="input_dim must be 2"):
        as_queries(ledger, input_dim=3)


@pytest.mark.parametrize("target", [3, np.ones((2, 2)), None, Estimator])
def test_other_things_are_refused_with_what_is_accepted(target):
    with pytest.raises(InvalidInput, match="target must be a callable"):
        as_queries(target, input_dim=2)
