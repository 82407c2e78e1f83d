"""Result, stopping reasons and progress of an exact fit."""

from __future__ import annotations

from dataclasses import dataclass
from enum import Enum

from unweave.errors import UnweaveError
from unweave.networks.network import Network


class Stop(Enum):
    """Reason why the search ended; the value is the message."""

    EXHAUSTED = "every pattern was ruled out or solved"
    ZERO_LOSS = "the network fits every label to rounding, and no loss is below zero"
    UNRESOLVED = "some convex programs could not be solved to the tolerance"
    TIME_LIMIT = "the time limit was reached"
    INTERRUPTED = "it was interrupted"

    def __str__(self) -> str:
        return self.value


@dataclass(frozen=True)
class ExactProgress:
    """Progress of a search."""

    stage: str
    """"dichotomies", "local search", "patterns" or "programs"."""
    done: int
    total: int
    loss: float
    """Best loss so far."""
    seconds: float


@dataclass(frozen=True, eq=False)
class ExactFit:
    """The best network found, and how good any network can be."""

    network: Network
    """Hidden ReLU units with outer weights +1 or -1, identity output with bias 0."""
    loss: float
    """Sum over the samples, recomputed from the network."""
    lower_bound: float
    """No network of this width has a smaller loss (in floating point: see `exact_erm`)."""
    certified: bool
    """Whether loss - lower_bound is within the tolerance: then no network is better by more."""
    stop: Stop
    width: int
    local_loss: float
    """Best loss of the local search alone."""
    n_patterns: int
    """Number of dichotomies of the points with an active point."""
    n_tuples: int
    """Number of tuples of patterns: the candidates of an exhaustive search, each with 2^width signs."""
    n_bounded: int
    """Number of tuples bounded, on some or all points."""
    n_programs: int
    """Number of convex programs solved."""
    n_unresolved: int
    """Number of programs neither solved to the tolerance nor ruled out."""
    seconds: float

    @property
    def gap(self) -> float:
        """loss - lower_bound."""
        return self.loss - self.lower_bound

    def __str__(self) -> str:
        verdict = "certified" if self.certified else "not certified"
        return (
            f"loss {self.loss:.6g}, {verdict} (lower bound {self.lower_bound:.6g}): {self.stop}; "
            f"{self.n_bounded:,} bounds and {self.n_programs:,} programs for {self.n_tuples:,} tuples "
            f"of patterns, {self.seconds:.1f} s"
        )


class SearchInterrupted(UnweaveError, KeyboardInterrupt):
    """A search was interrupted; ``result`` holds the best network so far and its lower bound."""

    def __init__(self, result: ExactFit) -> None:
        super().__init__(str(result))
        self.result = result
