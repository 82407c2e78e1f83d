"""What a method hands to the judge: a network and the evidence for it. A candidate is no verdict."""

from __future__ import annotations

from dataclasses import dataclass, field

from unweave.arrays import Array
from unweave.networks.network import Network


@dataclass(frozen=True)
class LayerEvidence:
    """What was measured while one hidden layer of several was found."""

    layer: int
    """Number of the layer, the first being 1."""
    width: int
    residual: float
    """Relative part of the gradients (of the Hessians, for the last hidden layer) that it leaves
    unexplained.
    """
    gap: float | None
    """Ratio of singular values that shows the width of the next layer."""
    off_diagonal: float | None
    """Squared share of the Hessians that joint diagonalisation leaves: rounding for the last hidden layer."""
    attempts: int
    queries: int


@dataclass(frozen=True, eq=False)
class Evidence:
    """What was measured on the way to a network; None or empty where a stage was not reached."""

    spectrum: Array | None = None
    """Singular values of the sampled Hessians, descending."""
    width: int | None = None
    """Dimension that the spectrum shows."""
    gap: float | None = None
    """sigma_m / sigma_{m+1}."""
    hessians: int = 0
    """Number of Hessians sampled (sites times outputs)."""
    found: int = 0
    """Directions accepted."""
    restarts: int = 0
    misalignment: Array | None = None
    """1 - Phi of each accepted direction."""
    rejected: Array | None = None
    """1 - Phi of the refused end points."""
    rates: Array | None = None
    """Contraction rate of the power step at each direction."""
    active_dimension: int | None = None
    derivative_mismatch: float | None = None
    """Slopes by autodiff against those by answers, relative to them; None without autodiff."""
    activation_residuals: dict[str, float] = field(default_factory=dict)
    """Pooled relative misfit of the neurons' profiles, per activation tried."""
    fit_history: tuple[float, ...] = ()
    """Root mean square residual of the final fit, step by step, relative to the outputs' spread."""
    fit_floor: float | None = None
    """What rounding or noise alone would leave of it."""
    prediction_floor: float | None = None
    """What rounding or noise in the fit leaves of a prediction, relative to the outputs' spread."""
    condition: float | None = None
    """Estimated condition number of the final fit's scaled Jacobian."""
    parameter_error_bar: float | None = None
    """Largest standard error of a parameter, in normalised inputs."""
    misfit: float | None = None
    """Root mean square residual of a fit to noisy answers, in their standard deviations: one is right."""
    acceptable_misfit: float | None = None
    """Misfit up to which noise explains what is left."""
    answer_sigma: Array | None = None
    """(K,) standard deviation of an answer, where the method has measured it."""
    weakest_neuron: float | None = None
    """Contribution to noisy answers of the weakest neuron, over the largest that could hide in the noise."""
    flips: int = 0
    """Flips of the last digit of rounded answers that were fitted as exact equations."""
    layers: tuple[LayerEvidence, ...] = ()
    """Hidden layers in the order they were found, where they are found one by one."""
    fresh_errors: Array | None = None
    """(n,) error of every fresh (or held-out) row relative to the largest answer, worst output."""
    profile_samples: Array | None = None
    """(2, n) of the neuron with the median misfit: its pre-activation up to scale and bias, t = u . x,
    ascending, and what was sampled of its profile there."""
    profile_curve: Array | None = None
    """(2, k) the profile that was fitted to them, on a grid of t."""
    profile_order: int | None = None
    """Order of the derivative that was sampled: 2, or 0 for values along a line."""
    kinks: Array | None = None
    """(n,) positions of the kinks on the first line that was searched."""
    line: Array | None = None
    """(2, D) a point of that line and its direction, in the target's own inputs."""


@dataclass(frozen=True, eq=False)
class Candidate:
    """A network, or None, in the target's own inputs and outputs, with its evidence."""

    network: Network | None
    evidence: Evidence
    notes: tuple[str, ...] = ()
    """What the user should know about the result."""
    problem: str | None = None
    """Why the method could not finish, or None."""
    ambiguity: str | None = None
    """The family of parameters that fits as well, or None."""
    interrupted: bool = False
    """Whether the user stopped the method."""
    known_layers: Network | None = None
    """The first layers, from the inputs to the last hidden states found, where the rest is missing."""
    standard_errors: Network | None = None
    """The standard error of every parameter, in the shapes of ``network``."""
