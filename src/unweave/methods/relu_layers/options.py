"""How hidden layers of kinked units are searched for, and why none were found."""

from __future__ import annotations

from dataclasses import dataclass, field

from unweave.methods.relu_layers.complete import CompletionOptions
from unweave.methods.relu_layers.inner_signs import InnerSignOptions
from unweave.methods.relu_layers.layer_units import LayerOptions
from unweave.methods.relu_layers.repair import RepairOptions
from unweave.methods.relu_layers.trace import TraceOptions
from unweave.methods.shared.surfaces.first_layer import FirstLayerOptions
from unweave.methods.shared.surfaces.probe import ProbeOptions
from unweave.methods.shared.surfaces.sight import SightOptions
from unweave.search import Reason


@dataclass(frozen=True, kw_only=True)
class ReluLayersOptions:
    """How many lines, surfaces and repairs a layer is searched with."""

    probe: ProbeOptions = field(default_factory=ProbeOptions)
    first_layer: FirstLayerOptions = field(default_factory=FirstLayerOptions)
    sight: SightOptions = field(default_factory=SightOptions)
    trace: TraceOptions = field(default_factory=TraceOptions)
    layer: LayerOptions = field(default_factory=LayerOptions)
    signs: InnerSignOptions = field(default_factory=InnerSignOptions)
    repair: RepairOptions = field(default_factory=RepairOptions)
    completion: CompletionOptions = field(default_factory=CompletionOptions)
    far: float = 1e4
    """Standard deviation of points far out, where biases do not matter."""
    first_surfaces: int = 8
    """Surfaces that are followed for the signs of the first layer before more of its units are looked for."""
    planes: int = 60
    """Kinks, the most precise, that are looked at then."""
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
