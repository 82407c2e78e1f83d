"""What a search hands to the judge: a network and the evidence for it. A candidate is no verdict."""

from __future__ import annotations

from dataclasses import dataclass, field

from unweave.networks.network import Network
from unweave.search.evidence import Evidence


@dataclass(frozen=True, eq=False)
class Candidate:
    """A network, or None, in the target's own inputs and outputs, with its evidence."""

    network: Network | None = None
    evidence: Evidence = field(default_factory=Evidence)
    notes: tuple[str, ...] = ()
    """What the user should know about the result."""
    problem: str | None = None
    """Why the search could not finish, or None; told if the network does not agree with fresh rows."""
    causes: str | None = None
    """What may be behind it if the network does not agree with fresh rows, or None."""
    objection: str | None = None
    """Why the network does not count as recovered even if it agrees, or None."""
    ambiguity: str | None = None
    """The family of parameters that fits as well, or None."""
    needs_no_rows: bool = False
    """Whether the fit itself proves the network, so that fresh rows only confirm it."""
    tentative: bool = False
    """Whether the network is worth telling only if it is recovered."""
    criterion: float | None = None
    """Information criterion, by which searches on the same rows compare: the lower, the better."""
    interrupted: bool = False
    """Whether the user stopped the search."""
    known_layers: Network | None = None
    """The first layers, from the inputs to the last hidden states found, where the rest is missing."""
    standard_errors: Network | None = None
    """The standard error of every parameter, in the shapes of ``network``."""
