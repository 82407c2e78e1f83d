"""Options of the method."""

from __future__ import annotations

from dataclasses import dataclass, field

from unweave.methods.smooth.frame_search import FrameOptions
from unweave.methods.smooth.frame_target import LiftOptions
from unweave.methods.smooth.lattice_route import LatticeOptions
from unweave.methods.smooth.pencil_route import PencilOptions
from unweave.methods.smooth.span_members import MemberOptions


@dataclass(frozen=True, kw_only=True)
class SmoothOptions:
    """How smooth units are searched for, stage by stage."""

    lattices: LatticeOptions = field(default_factory=LatticeOptions)
    """The search through a slice of the inputs, tried first."""
    pencils: PencilOptions = field(default_factory=PencilOptions)
    """The search through two Hessians on a slice, tried first where rows are few."""
    checked_gradients: int = 3
    """Gradients by autodiff that are compared with answers."""
    first_gradients: int = 6
    """Gradients taken at first to find the active subspace, where the caller gives no width."""
    gradient_growth: float = 1.1
    """Factor by which gradients are added until their span is seen to end."""
    frame: FrameOptions = field(default_factory=FrameOptions)
    """The search through Hessians in the active subspace."""
    unknown_kind: float = 5e-3
    """Misfit of the profiles of every activation from which units are of no known kind."""
    kinks_likely: float = 3.0
    """Misfit of units with kinks over the best one, up to which Hessians are taken again between kinks."""
    searches_between_kinks: int = 2
    """Searches with Hessians over short steps at most."""
    lift: LiftOptions = field(default_factory=LiftOptions)
    """The way from the active subspace back to all inputs."""
    members: MemberOptions = field(default_factory=MemberOptions)
    """Rank-one members of a span of Hessians, in both searches."""
