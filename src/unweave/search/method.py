"""What a method of recovery is: one row of the table, and the search behind it."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable
from dataclasses import dataclass, field
from enum import Enum, IntEnum
from typing import Any, Literal

import numpy as np

from unweave.errors import OutOfTime, UnweaveError
from unweave.networks.activations import get_activation
from unweave.probing.findings import Findings
from unweave.search.cost import Cost, Question
from unweave.search.evidence import Candidate, Evidence
from unweave.search.journal import Journal
from unweave.search.request import Request

IN_STEPS = (
    "the target answers in steps at thresholds of single inputs, as a decision tree, a forest or boosting "
    "does: it is no network"
)
"""Why no network is searched for."""
_COUNTS = ("no", "one", "two", "three", "four")


class Likelihood(IntEnum):
    """How likely a target that a method does not refuse is of its class; likelier methods run first."""

    LIKELY = 0
    POSSIBLE = 1
    UNLIKELY = 2
    LAST = 3
    """All that was seen speaks against it, but looks err."""


@dataclass(frozen=True, eq=False)
class Context:
    """All that a search may use."""

    view: Any
    """What may be asked: `NormalisedQueries`, or `FittedRows` of samples."""
    findings: Findings
    request: Request
    journal: Journal
    rng: np.random.Generator
    options: Any = None
    """The method's own options, never None where the method declares some."""
    earlier: tuple[Candidate, ...] = ()
    """What earlier searches of this run have handed back."""

    @property
    def is_late(self) -> bool:
        """Whether the deadline has passed."""
        left = self.view.seconds_left
        return left is not None and left <= 0


class Reason(Enum):
    """Base of the enums in which methods list their reasons; a value is the sentence that users read.

    Figures stand in braces, as in ``str.format``.
    """


class GaveUp(UnweaveError):
    """A search cannot go on; it still holds its best candidate."""

    def __init__(self, reason: Reason, **figures: Any) -> None:
        super().__init__(reason.value.format(**figures))
        self.reason = reason


class Search(ABC):
    """One attempt at a target. It holds its best candidate at any time and never passes a verdict."""

    single_thread = True
    """Whether matrices are so small that a second BLAS thread gains nothing, and on busy cores makes every
    product wait for it."""

    def __init__(self, context: Context) -> None:
        self.context = context
        self.findings, self.request = context.findings, context.request
        self.journal, self.rng = context.journal, context.rng

    @abstractmethod
    def run(self) -> None:
        """Search to the end; raise `GaveUp` where that makes no sense, or whatever the target raises."""

    @abstractmethod
    def candidate(self) -> Candidate:
        """Return the best candidate so far."""

    def on_step(self, steps: int, residual: float) -> None:
        """Tell progress of a fit, and end it at the deadline."""
        self.journal.tell(steps, None, f"steps, residual {residual:.1e}")
        if self.context.is_late:
            raise OutOfTime

    def so_far(self) -> str:
        """Say how far the search has come, for the message when something ends it."""
        return ""


@dataclass(frozen=True, kw_only=True)
class Method:
    """One way to recover a network, as a row of the table."""

    name: str
    description: str
    search: Callable[[Context], Search]
    cost: Callable[[Question], Cost]
    """What it is expected to cost."""
    layers: tuple[int, int | None]
    """Fewest and most hidden layers that it handles; None for no limit."""
    asks: Literal["queries", "samples"] = "queries"
    minimal: bool = False
    """Whether it is tried whatever the user said, because the smaller network it finds would do."""
    activations: tuple[str, ...] | None = None
    """Activations that it handles, by name; None for all smooth ones."""
    outputs: tuple[str, ...] | None = ("identity",)
    """Output activations that it handles; None for all."""
    refuses: Callable[[Request, Findings], str | None] = lambda request, findings: None
    """Why it is not for a target, beyond what the fields above say; None if it is."""
    likelihood: Callable[[Request, Findings], Likelihood] = lambda request, findings: Likelihood.LIKELY
    options: Callable[[], Any] = field(default=lambda: None)
    """The frozen dataclass of its options."""
    evidence: type[Evidence] = Evidence
    aliases: tuple[str, ...] = ()
    """Further names by which users may ask for it."""
    derivatives: bool = False
    """Whether it can use the target's own derivatives."""
    uses_every_row: bool = False
    """Whether samples beyond its cost are the only ones that may be held out."""
    by_name_only: bool = False
    """Whether it is only tried when asked for."""
    steps: bool = False
    """Whether it is for targets that answer in steps at thresholds of single inputs, and no others."""
    wider: bool = True
    """Whether it is tried again in a wider region, where the region had to be searched for."""

    def refuses_request(self, request: Request) -> str | None:
        """Say why what the user said rules this method out; None if it does not."""
        if self.minimal:
            return None
        fewest, most = self.layers
        if request.hidden is not None:
            count = len(request.hidden)
            if count < fewest or (most is not None and count > most):
                count_named = fewest if most is None else most
                layers = f"{_COUNTS[count_named]} hidden layer{'' if count_named == 1 else 's'}"
                layers += " or more" if most is None else ""
                layers = f"at most {layers}" if most is not None and fewest < most else layers
                return f"it handles {layers}, and {count} were asked for"
        name = None if request.hidden == () else request.activation  # no units, no activation
        if name is not None and self.activations is None and not get_activation(name).smooth:
            return f"it handles smooth activations, and {name} has a kink"
        if name is not None and self.activations is not None and name not in self.activations:
            join = " and " if len(self.activations) == 2 else ", "
            return f"it handles {join.join(self.activations)} units, and {name} was asked for"
        output = request.output_activation
        if output is not None and self.outputs is not None and output not in self.outputs:
            several = f"{', '.join(self.outputs)} outputs"
            handled = "affine output layers" if len(self.outputs) == 1 else several
            return f"it handles {handled}, and {output} was asked for"
        return None

    def is_for(self, hidden: tuple[int, ...]) -> bool:
        """Return whether it recovers networks with these hidden layers, or smaller ones instead."""
        fewest, most = self.layers
        return self.minimal or fewest <= len(hidden) <= (len(hidden) if most is None else most)

    def reason_against(self, request: Request, findings: Findings) -> str | None:
        """Say why it is not for this target; None if it is."""
        if findings.steps and not self.steps:
            return IN_STEPS
        if self.steps and not findings.steps:
            return "the target does not answer in steps at thresholds of single inputs"
        return self.refuses_request(request) or self.refuses(request, findings)
