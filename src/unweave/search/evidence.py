"""What a search hands to the judge: a network, and what was measured on the way to it. It is no verdict.

`Evidence` is what every method can say. A method with more to say derives a frozen class from it, which adds
fields, checks for the certificate, charts for the report and doubts for the judge.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any, ClassVar

import numpy as np

from unweave.arrays import Array
from unweave.networks.network import Network
from unweave.search.chart import Bars, Chart, Mark, Series


@dataclass(frozen=True)
class Check:
    """One checked hypothesis or a-posteriori bound."""

    name: str
    value: float
    threshold: float | None
    """What the value is held against; None if it is only reported."""
    holds: bool | None
    """Whether it is on the good side; None if there is no threshold."""
    implies: str
    """What follows if it holds, or what the value means."""
    decides: bool = False
    """Whether the verdict rests on it; the others are hypotheses of theorems and figures of the way."""

    @property
    def mark(self) -> str:
        """Say ``yes``, ``NO`` (against the verdict), ``no`` (which decides nothing), or nothing."""
        if self.holds is None:
            return ""
        return "yes" if self.holds else "NO" if self.decides else "no"

    @classmethod
    def below(cls, name: str, value: float, threshold: float, implies: str) -> Check:
        """Hold if ``value`` is at most ``threshold``."""
        return cls(name, float(value), float(threshold), bool(value <= threshold), implies)

    @classmethod
    def above(cls, name: str, value: float, threshold: float, implies: str) -> Check:
        """Hold if ``value`` is at least ``threshold``."""
        return cls(name, float(value), float(threshold), bool(value >= threshold), implies)

    @classmethod
    def figure(cls, name: str, value: float, implies: str) -> Check:
        """Report ``value`` without holding it against anything."""
        return cls(name, float(value), None, None, implies)


@dataclass(frozen=True)
class LayerEvidence:
    """What was measured while one hidden layer of several was found."""

    layer: int
    """Number of the layer, the first being 1."""
    width: int
    residual: float
    """Relative part of the gradients, or Hessians of the last hidden layer, that it leaves unexplained."""
    gap: float | None
    """Ratio of singular values that shows the width of the next layer."""
    off_diagonal: float | None
    """Squared share of the Hessians that joint diagonalisation leaves: rounding for the last hidden layer."""
    attempts: int
    queries: int

    def check(self, largest_residual: float) -> Check:
        """Hold if the layer explains what lies behind it."""
        what = "gradients" if self.gap is not None else "Hessians"
        name = f"layer {self.layer} residual"
        implies = f"share of the {what} behind layer {self.layer} that it does not explain"
        if np.isnan(self.residual):
            return Check.figure(name, self.residual, implies)
        return Check.below(name, self.residual, largest_residual, implies)


@dataclass(frozen=True, eq=False, kw_only=True)
class Evidence:
    """What was measured on the way to a network; None or empty where a stage was not reached."""

    width: int | None = None
    """Number of units that the measurements ask for."""
    found: int = 0
    """Number of units found."""
    restarts: int = 0
    layers: tuple[LayerEvidence, ...] = ()
    """Hidden layers in the order in which they were found, where they are found one by one."""
    fit_history: tuple[float, ...] = ()
    """Root mean square residual of the final fit, step by step, relative to the outputs' spread."""
    fit_floor: float | None = None
    """What rounding or noise alone would leave of it."""
    weak_units: float = 0.0
    """Residual of the final fit that units explain which the search names as too weak to be told apart."""
    prediction_floor: float | None = None
    """What rounding or noise in the fit leaves of a prediction, relative to the outputs' spread."""
    condition: float | None = None
    """Estimated condition number of the final fit's scaled Jacobian."""
    parameter_error_bar: float | None = None
    """Largest standard error of a parameter, in normalised inputs."""
    answer_sigma: Array | None = None
    """(K,) standard deviation of an answer, where the method has measured it."""
    answer_offset: float = 0.0
    """How far answers lie above the function on average, where they are rounded up."""
    fresh_errors: Array | None = None
    """(n,) error of every fresh (or held-out) row relative to the largest answer, worst output."""

    residual_over_floor: ClassVar[float] = 30.0
    """Residual of a good final fit over its floor, which is only an estimate of the rounding."""
    largest_condition: ClassVar[float] = 1e10
    """Condition of the scaled Jacobian beyond which rounding alone moves parameters by 1e-6."""
    largest_layer_residual: ClassVar[float] = 0.1
    """Residual of a layer's own start; the final fit is judged by its own residual."""
    checks_weights: ClassVar[bool] = False
    """Whether units were told apart by their squares, so that the geometry of weights is a hypothesis."""
    error_bars_decide: ClassVar[bool] = True
    """Whether a large error bar shows that a parameter is undetermined."""

    @property
    def fitted_to_noise(self) -> bool:
        """Whether the network was fitted to answers whose noise level is known."""
        return False

    @property
    def from_exact_equations(self) -> bool:
        """Whether the network solves equations that are free of the answers' noise."""
        return False

    def doubts(self) -> tuple[str, ...]:
        """Say why a network that agrees with fresh rows may still be wrong."""
        return ()

    def checks(self) -> list[Check]:
        """Check how the units were found."""
        checks = []
        if self.width is not None:
            implies = "every dimension that was seen belongs to a unit that was found"
            checks.append(Check.above("units found", self.found, self.width, implies))
        return checks + [layer.check(self.largest_layer_residual) for layer in self.layers]

    def fit_checks(self, largest_error_bar: float) -> list[Check]:
        """Check the final fit; ``largest_error_bar`` is the standard error of an undetermined parameter."""
        checks = []
        if self.fit_history and self.fit_floor:
            floor = self.residual_over_floor * self.fit_floor
            implies = "the final fit leaves no more than the answers' own rounding or noise"
            checks.append(Check.below("fit residual", self.fit_history[-1], floor, implies))
        if self.condition is not None and not np.isnan(self.condition):
            implies = "the equations determine all parameters"
            checks.append(Check.below("fit conditioning", self.condition, self.largest_condition, implies))
        if self.parameter_error_bar is not None:
            implies = "largest standard error of a parameter, in normalised inputs"
            bar = self.parameter_error_bar
            checks.append(Check.below("parameter error bar", bar, largest_error_bar, implies))
        return checks

    def charts(self, network: Any) -> list[Chart]:
        """Show what was measured, in the order of the stages; the network may be drawn beside it."""
        charts = (self._layers_chart(), self._convergence_chart())
        return [chart for chart in charts if chart is not None]

    def _layers_chart(self) -> Chart | None:
        kept = {place: layer for place, layer in enumerate(self.layers) if np.isfinite(layer.residual)}
        if not kept:
            return None
        parts = [
            f"layer {{/layers/{place}/layer}} ({{/layers/{place}/width}} units) {{/layers/{place}/residual}}"
            for place in kept
        ]
        return Chart(
            name="layers",
            title="Residual per layer",
            caption="What each layer left unexplained of the derivatives behind it when it was found: "
            + "; ".join(parts)
            + ". The final fit starts there.",
            x_label="hidden layer",
            y_label="residual",
            bars=Bars(
                np.array([layer.layer for layer in kept.values()]),
                np.array([layer.residual for layer in kept.values()]),
                tuple(f"{layer.width} units" for layer in kept.values()),
            ),
            log_y=True,
        )

    def _convergence_chart(self) -> Chart | None:
        history, floor = np.array(self.fit_history), self.fit_floor
        if len(history) < 2:
            return None
        caption = (
            "Residual of the final fit relative to the outputs' spread, step by step: from "
            f"{{/evidence/fit_history/0}} to {{/evidence/fit_history/{len(history) - 1}}}"
        )
        if floor:
            caption += "; rounding or noise alone would leave {/evidence/fit_floor} (dashed)"
        return Chart(
            name="convergence",
            title="Convergence of the final fit",
            caption=caption + ".",
            x_label="step",
            y_label="residual (root mean square)",
            series=(Series(np.arange(float(len(history))), history, "steps"),),
            marks=(Mark("y", floor, "rounding or noise"),) if floor else (),
            log_y=True,
            whole_x=True,
        )


@dataclass(frozen=True, eq=False)
class Candidate:
    """A network, or None, in the target's own inputs and outputs, with its evidence."""

    network: Any = None
    """A `Network`, another `unweave.networks.model.Model`, or None."""
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
    replaces_earlier: bool = False
    """Whether the search has weighed all earlier candidates itself: its own takes their place."""
    interrupted: bool = False
    """Whether the user stopped the search."""
    known_layers: Network | None = None
    """The first layers, from the inputs to the last hidden states found, where the rest is missing."""
    standard_errors: Network | None = None
    """The standard error of every parameter, in the shapes of ``network``."""
    refusal: str | None = None
    """What the target is, where that is seen and no method handles it, or None."""
    directions: Array | None = None
    """(D, m) directions of units, in the target's own inputs, where no kind of unit was found for them."""
