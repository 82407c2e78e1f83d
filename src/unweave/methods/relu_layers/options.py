"""How hidden layers of kinked units are searched for, and why none were found."""

from __future__ import annotations

from dataclasses import dataclass, field

from unweave.methods.relu_layers.complete import CompletionOptions
from unweave.methods.relu_layers.inner_signs import InnerSignOptions
from unweave.methods.relu_layers.layer_units import LayerOptions
from unweave.methods.relu_layers.probe import ProbeOptions
from unweave.methods.relu_layers.repair import RepairOptions
from unweave.methods.relu_layers.sight import SightOptions
from unweave.methods.relu_layers.trace import TraceOptions
from unweave.methods.shared.kinked.lines import LINE_REACH
from unweave.search import Reason


@dataclass(frozen=True, kw_only=True)
class ReluLayersOptions:
    """How many lines are searched, and how far they reach."""

    probe: ProbeOptions = field(default_factory=ProbeOptions)
    sight: SightOptions = field(default_factory=SightOptions)
    trace: TraceOptions = field(default_factory=TraceOptions)
    layer: LayerOptions = field(default_factory=LayerOptions)
    signs: InnerSignOptions = field(default_factory=InnerSignOptions)
    repair: RepairOptions = field(default_factory=RepairOptions)
    completion: CompletionOptions = field(default_factory=CompletionOptions)
    reach: float = LINE_REACH
    """Half length of the first lines, in normalised inputs."""
    near_reach: float = 400.0
    """Half length of further lines: kinks of deeper layers are nearer."""
    long_lines: int = 2
    """Lines of the first kind."""
    far: float = 1e4
    """Standard deviation of points far out, where biases do not matter."""
    first_surfaces: int = 8
    """Surfaces that are followed for the signs of the first layer before more of its units are looked for."""
    planes: int = 60
    """Kinks, the most precise, that are looked at then."""
    first_lines: int = 8
    """Lines for the first layer at most."""
    lines_per_layer: int = 7
    """Lines, all together, after which the kinks that are left are tested one by one."""
    most_lines: int = 40
    """Lines at most while a layer is found."""
    blank_lines: int = 5
    """Lines after which a layer without any unit is left."""
    dry_lines: int = 2
    """Lines without a new unit after which a layer is left."""
    sample: int = 8
    """Kinks, among those that are left, whose flatness tells whether they belong to the layer."""
    flat_share: float = 0.6
    """Share of them that must be flat."""
    most_returns: int = 3
    """Times that a layer is searched for more units because nothing fits together behind it."""
    rounds_below: int = 6
    """Rounds of repair then."""
    most_layers: int = 12
    """Hidden layers at most."""
    last: float = 0.5
    """Share of rows that the outputs' fit must explain for a layer to be the last one."""
    most_repairs: int = 25
    """Rounds of repair."""
    dry_repairs: int = 6
    """Rounds in a row that change nothing after which no more follow."""
    worse: float = 1e-3
    """Share of the rows that a unit of the last layer must not take from those that are explained."""
    segments: int = 2
    """Ways to rows that do not agree that one round searches."""
    apart: float = 1.0
    """Length of such a way at least: gradients must be measured on it."""
    nearest: int = 10
    """Rows that agree, the nearest ones, among which a way starts."""


class ReluLayersReason(Reason):
    """Why no network of this class was found."""

    NOT_PIECEWISE_LINEAR = "the target is not piecewise linear: there is no end to the kinks on a line"
    NO_FIRST_LAYER = "no kink on a line belongs to a first hidden layer"
    NO_SECOND_LAYER = "all kinks on lines are hyperplanes: there is no second hidden layer"
    NO_SIGNS = (
        "the units of {layers} hidden layers were found, {widths}, but not the signs of the last of them: no "
        "surface behind it could be followed far enough, or there is a skip connection"
    )
    NO_UNITS = (
        "{layers} hidden layers were found, {widths}, but no unit of the next one: they explain {share:.1%} "
        "of the rows"
    )
    NOT_EXPLAINED = (
        "{layers} hidden layers were found, {widths}, which explain {share:.2%} of the rows that were asked: "
        "units are missing that hardly ever switch, or parts of units that nothing shows"
    )
    TOO_DEEP = "{layers} hidden layers were found, {widths}, and there are more"
