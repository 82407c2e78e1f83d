"""Options of the method, stage by stage.

Lengths are in normalised inputs. In the far field a *step* is the change of the answers where a unit
switches; elsewhere it is that of a difference formula or of an iteration.
"""

from __future__ import annotations

from dataclasses import dataclass, field

import numpy as np

from unweave.methods.shared.far_field import CircleOptions
from unweave.numerics.least_squares import LevenbergMarquardtOptions

_PROFILE_SCHEDULE = LevenbergMarquardtOptions(
    steps=25,
    stalls=None,
    last_ratio=0.9999,  # of squared misfits: a smaller gain is not worth a step
    damping=1e-3,
    damping_fall=0.2,
    damping_rise=5.0,
    least_raised=1e-12,
    max_damping=1e8,
)
_UNIT_SCHEDULE = LevenbergMarquardtOptions(
    steps=30, stalls=None, needed=np.inf, damping=0.01, damping_fall=1.0, damping_rise=1.0
)


@dataclass(frozen=True, kw_only=True)
class PointOptions:
    """Where to ask about a layer."""

    spread: float = 1.5
    """Standard deviation of inputs without bounds: first-layer units are then partly saturated."""
    amplitude: float = 0.93
    """Size of the first layer's states at base points: far out, with room left for stencils."""
    value_amplitude: float = 0.95
    """Largest state of the first layer's units at points for values."""
    value_draws: int = 4
    """Points drawn per point for values; the nearest to the origin are kept."""
    flipped: float = 0.15
    """Share of the first layer's states whose sign is flipped, so that points differ."""
    smallest_step: float = 0.12
    """Share of the longest step below which a point has too little room."""
    last_smallest_step: float = 1e-3
    """The same share at which the search for points ends: differences would drown in rounding."""
    smaller_steps: float = 0.4
    """Factor on ``smallest_step`` when too few points have room."""
    rounds: int = 40
    """Draws per ``smallest_step``."""
    enough_room: float = 0.3
    """Share of points with room below which the next draw is calmer."""
    calmer: float = 0.9
    """Factor on the pre-activations of a calmer draw."""
    fewest: int = 20
    """Points that are enough where more are wanted, but no more than four times as many."""
    room_used: float = 0.25
    """Share of the distance to the nearest wall +-1 that a stencil may use up, in every layer."""


@dataclass(frozen=True, kw_only=True)
class FrameOptions:
    """The subspace that the first layer reads."""

    step: float = 0.01
    """Of the gradients' differences, whose error is h^4."""
    spare: int = 4
    """Gradients beyond the rank, to show that the spectrum ends."""
    rank: float = 1e-7
    """Singular values below this share of the first are the differences' errors."""
    first_guess: int = 8
    """Width assumed for the first batch of gradients when the caller gives none."""


@dataclass(frozen=True, kw_only=True)
class ProfileOptions:
    """First-layer norms from the shape of far-field steps."""

    crossings_per_unit: int = 3
    """Profiles per unit, at its highest steps."""
    samples_per_crossing: int = 33
    """Rows per profile: several times the coefficients of the largest degree."""
    half_width: float = 7.0
    """Of a profile, in pre-activations of the suggested norm: tanh is one to 1e-6 there."""
    norm_factors: tuple[float, float, int] = (0.2, 5.0, 41)
    """Geometric grid (first, last, count) of norms, over the norm that height and slope suggest."""
    shifts: tuple[float, float, int] = (-3.0, 3.0, 25)
    """Grid (first, last, count) of pre-activations at a unit's first crossing."""
    grid_degree: int = 3
    """Degree of the outer polynomial on the grid."""
    degrees: tuple[int, ...] = (3, 5, 8)
    """Degrees of the outer polynomial, one fit after the other: the last leaves norms to 1e-4."""
    clean_misfit: float = 1e-4
    """Misfit of profiles that one unit alone has shaped; above it, fewer crossings are tried."""
    much_better: float = 0.2
    """Ratio of misfits that justifies fewer crossings, which always fit somewhat better."""
    doubtful: float = 3e-4
    """Misfit that calls for other crossings."""
    other_activation: float = 1e-4
    """Median misfit above which another activation is tried as well."""
    parameter_difference: float = 1e-6
    """Relative step of the differences in norm and shift."""
    schedule: LevenbergMarquardtOptions = _PROFILE_SCHEDULE


@dataclass(frozen=True, kw_only=True)
class SubspaceOptions:
    """One layer and the range of the next from gradients."""

    solved: float = 1e-5
    """Relative residual of a solution; wrong minima mostly stay above 1e-4."""
    nearly_solved: float = 1e-4
    """Residual that is enough where the range clearly ends: the final fit does the rest."""
    clear_end: float = 100.0
    """Ratio of singular values at the end of the next layer's range; wrong minima show 1 to 30."""
    narrowing_steps: int = 20
    """Iterations per width when a range that is too wide is narrowed."""
    telling_slope: float = 1e-3
    """Least slope of every unit at a site that shows the next layer's range: less is mostly rounding."""
    telling_columns: int = 3
    """Gradients per unit that are kept whatever the slopes."""


@dataclass(frozen=True, kw_only=True)
class TailOptions:
    """One layer from Hessians with respect to its states."""

    solved: float = 3e-3
    """Relative residual of a solution: differences of second order leave up to 1e-3."""
    enough: float = 1e-7
    """Residual at which iterations end."""
    longest_step: float = 0.25
    """Largest change of a bias or of an entry of E in one iteration."""
    equations_per_unknown: float = 20.0
    """Equations that a sketch of a large Jacobian keeps per unknown."""


@dataclass(frozen=True, kw_only=True)
class FirstLayerOptions:
    """First-layer biases, and the range of the second layer."""

    clear_rank: float = 30.0
    """Ratio of singular values that shows the second layer's width."""
    largest_state: float = 2.5
    """Pre-activation beyond which a unit's slope says little about its bias."""
    rows_per_unit: float = 4.0
    """Gradients times outputs per unit: the linear equations have 3 m unknowns."""
    amounts: tuple[float, ...] = (1.0, 3.0)
    """Factors on ``rows_per_unit``, one attempt each."""
    shortest_state: float = 0.2
    """Smallest pre-activation of a drawn point, over that of the points' amplitude."""
    draws: int = 4
    """Points drawn per gradient; the nearest to the origin are kept."""
    starts: int = 4
    """Starts per width where there is no closed form."""
    bias_spread: float = 0.3
    """Standard deviation of random changes of the profiles' biases, for further starts."""
    fit_steps: int = 40
    """Iterations of a fit to gradients."""
    closed_form_damping: float = 1e-4
    """First damping after the closed form, which is next to the solution."""
    hessian_step: float = 2e-3
    """Of the Hessians' differences, in pre-activations."""
    hessians: tuple[float, int] = (1.5, 60)
    """Hessians times outputs: per unit of the second layer, and at least."""
    tail_amplitude: float = 1.3
    """Largest pre-activation at which Hessians are taken."""
    tail_starts: int = 6
    """Starts of the fit to Hessians."""
    tail_steps: int = 60
    """Iterations of a fit to Hessians."""


@dataclass(frozen=True, kw_only=True)
class StartOptions:
    """A layer's start from jointly diagonal Hessians."""

    norms: tuple[float, ...] = (0.1, 0.2, 0.3, 0.45, 0.6, 0.8, 1.0, 1.25, 1.6, 2.0, 2.6, 3.5, 5.0)
    """Grid of norms."""
    biases: tuple[float, float, int] = (-5.0, 5.0, 61)
    """Grid (first, last, count) of biases."""
    longest_step: tuple[float, float] = (0.2, 0.3)
    """Largest change of a norm and of a bias in one iteration."""
    norm_range: tuple[float, float] = (0.02, 20.0)
    """Smallest and largest norm."""
    largest_bias: float = 9.0
    """Largest size of a bias: beyond, a tanh unit is constant to 1e-7."""
    schedule: LevenbergMarquardtOptions = _UNIT_SCHEDULE


@dataclass(frozen=True, kw_only=True)
class InnerLayerOptions:
    """A layer behind known ones."""

    rounds: int = 3
    """Attempts, each with more Hessians."""
    hessian_step: float = 3e-3
    """Longest step of the Hessians' differences."""
    gradient_step: float = 2e-3
    """Longest step of the gradients' differences."""
    tail_step: float = 3e-3
    """Longest step of the Hessians' differences in the start's own pre-activations."""
    last: float = 1e-4
    """Mismatch below which no hidden layer follows; 2e-3 and more if one does."""
    last_if_told: float = 3e-3
    """The same where the caller says that it is the last: rough layers below blur it."""
    hessians_if_last: float = 3.0
    """Hessians times outputs per unit in the first attempt, enough for a last hidden layer."""
    hessians: tuple[float, int] = (12.0, 60)
    """Hessians in further attempts: times outputs per unit, and at least."""
    amplitude_factors: tuple[float, float] = (0.6, 1.3)
    """Range of factors on the first layer's pre-activations in further attempts."""
    shortest_radius: float = 0.3
    """Smallest amplitude over the largest, where points are to differ in amplitude."""
    equations: float = 2.5
    """Equations per unknown of the fit to gradients."""
    trial_widths: tuple[float, ...] = (0.75, 1.0, 0.5, 0.25)
    """Shares of m tried as the next layer's unknown width, m - 1 at most."""
    worth_narrowing: float = 1e-4
    """Residual below which a range that is too wide may hide the solution."""
    tail_hessians: tuple[float, int] = (2.5, 80)
    """Hessians times outputs of the tail: per unit of the next layer, and at least."""
    tail_amplitude: float = 0.85
    """Size of the first layer's states at the points of the tail."""
    tail_steps: int = 40
    """Iterations of the tail's fit."""


@dataclass(frozen=True, kw_only=True)
class SmoothDeepOptions:
    """How several smooth hidden layers are searched for."""

    points: PointOptions = field(default_factory=PointOptions)
    frame: FrameOptions = field(default_factory=FrameOptions)
    circles: CircleOptions = field(default_factory=CircleOptions)
    profiles: ProfileOptions = field(default_factory=ProfileOptions)
    first_layer: FirstLayerOptions = field(default_factory=FirstLayerOptions)
    inner_layer: InnerLayerOptions = field(default_factory=InnerLayerOptions)
    start: StartOptions = field(default_factory=StartOptions)
    subspace: SubspaceOptions = field(default_factory=SubspaceOptions)
    tail: TailOptions = field(default_factory=TailOptions)
    most_layers: int = 12
    """Hidden layers after which the search ends."""
    worth_trying: float = 1e-3
    """Residual of an uncertain layer with which the search still goes on."""
    affine: float = 1e-5
    """Residual of the output layer's least squares below which nothing else remains."""
    spare_points: int = 20
    """Points of the output layer's least squares beyond three per unit."""
    polishes: int = 3
    """Final fits, each with more points: where equations are nearly dependent, more of them settle it."""
    settled: float = 100.0
    """Residual of the final fit, over its floor, at which no further one is needed."""
    hopeless: float = 0.3
    """Share of its first residual that a fit in the wrong place leaves: no further one would help."""
