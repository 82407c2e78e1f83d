"""Which of two failures is told."""

from __future__ import annotations

import numpy as np

from unweave import Network
from unweave.recovery.run import completed_layers
from unweave.search import Candidate


def test_failures_are_compared_by_the_layers_that_they_know() -> None:
    one = Network([np.ones((3, 2))], [np.zeros(2)], ["relu"])
    two = Network([np.ones((3, 2)), np.ones((2, 4))], [np.zeros(2), np.zeros(4)], ["relu", "relu"])
    known = [completed_layers(Candidate(known_layers=layers)) for layers in (None, one, two)]
    assert known == [0, 1, 2]
