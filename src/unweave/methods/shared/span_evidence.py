"""What the span of sampled Hessians shows, and the profiles of the units found in it."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import ClassVar

import numpy as np

from unweave.arrays import Array
from unweave.networks.network import Network
from unweave.search import Chart, Check, Evidence, Mark, Series
from unweave.subspace.hessian_span import CLEAR_GAP

_SAME_GAP = 0.1  # difference of the logarithms of two ratios that are one


@dataclass(frozen=True, eq=False, kw_only=True)
class SpanEvidence(Evidence):
    """What was measured on the way to units through Hessians."""

    spectrum: Array | None = None
    """Singular values of the sampled Hessians, descending."""
    gap: float | None = None
    """sigma_m / sigma_{m+1}."""
    hessians: int = 0
    """Number of Hessians sampled (sites times outputs)."""
    misalignment: Array | None = None
    """1 - Phi of each accepted direction."""
    rejected: Array | None = None
    """1 - Phi of the refused end points."""
    rates: Array | None = None
    """Contraction rate of the power step at each direction."""
    activation_residuals: dict[str, float] = field(default_factory=dict)
    """Pooled relative misfit of the units' profiles, per activation tried."""
    profile_samples: Array | None = None
    """(2, n) of the unit with the median misfit: its pre-activation up to scale and bias, t = u . x,
    ascending, and what was sampled of its profile there."""
    profile_curve: Array | None = None
    """(2, k) the profile that was fitted to them, on a grid of t."""
    profile_order: int | None = None
    """Order of the derivative that was sampled: 2, or 0 for values along a line."""

    clear_gap: ClassVar[float] = CLEAR_GAP
    """Gap at which the width stands out."""
    gap_is_a_ratio: ClassVar[bool] = True
    """Whether the gap is a ratio of singular values, and not of them to their noise."""
    checks_weights: ClassVar[bool] = True

    def checks(self) -> list[Check]:
        """Check the gap and the directions."""
        checks = []
        if self.gap is not None:
            implies = "the width stands out of the error of the Hessians"
            checks.append(Check.above("width gap", self.gap, self.clear_gap, implies))
            error = 1 / self.gap if self.gap > 0 else np.inf
            implies = "sine of the angle to the true span, estimated"
            checks.append(Check.figure("subspace error", error, implies))
        checks += super().checks()
        if self.spectrum is not None and self.width is not None and 0 < self.width <= len(self.spectrum):
            alpha = float(self.spectrum[self.width - 1]) ** 2 / max(self.hessians, 1)
            implies = "smallest eigenvalue of the Hessians' covariance: how well every unit can be learnt"
            checks.append(Check.figure("learnability", alpha, implies))
        if self.misalignment is not None and len(self.misalignment):
            implies = "1 - Phi of the worst direction: its squared distance to the span"
            checks.append(Check.figure("misalignment", self.misalignment.max(), implies))
        if self.rates is not None and len(self.rates):
            implies = "contraction of the power step at the worst direction: it is an isolated maximum"
            checks.append(Check.below("slowest rate", self.rates.max(), 1.0, implies))
        return checks

    def charts(self, network: Network | None) -> list[Chart]:
        """Add spectrum, objective, activations and a profile."""
        charts = (
            self._spectrum_chart(),
            self._objective_chart(),
            self._activations_chart(),
            self._profile_chart(),
        )
        return [chart for chart in charts if chart is not None] + super().charts(network)

    def gap_place(self) -> int | None:
        """Count the singular values before the gap: the width, unless the final fit has changed it since."""
        spectrum, width, gap = self.spectrum, self.width, self.gap
        if spectrum is None or width is None or not 0 < width < len(spectrum):
            return None
        if gap is None or not np.isfinite(gap) or not self.gap_is_a_ratio:
            return width
        tiny = np.finfo(np.float64).tiny
        distance = np.abs(np.log(np.maximum(spectrum[:-1], tiny) / np.maximum(spectrum[1:], tiny) / gap))
        nearest = int(np.argmin(distance))
        return nearest + 1 if distance[nearest] < _SAME_GAP < distance[width - 1] else width

    def _spectrum_chart(self) -> Chart | None:
        values, place = self.spectrum, self.gap_place()
        if values is None or len(values) < 2:
            return None
        caption = "{/evidence/spectrum/count} singular values of {/evidence/hessians} sampled derivatives. "
        if place is None:
            caption += "There is no clear gap, so that no number of units stands out."
        elif self.gap is None:
            caption = (
                "{/evidence/spectrum/count} singular values; the first {/evidence/width} (dots) belong to "
                "units."
            )
        elif not self.gap_is_a_ratio:
            caption += (
                "Measured by the noise that they carry, those of units end with a gap of {/evidence/gap}. "
                "The dashed line is at the final width, {/evidence/width}."
            )
        else:
            caption += (
                "They fall by a factor of {/evidence/gap} at the dashed line, where the units' dimensions "
                "end; the crosses are rounding or truncation. The final width: {/evidence/width}."
            )
        index = np.arange(1.0, len(values) + 1)
        split = len(values) if place is None else place
        series = [Series(index[:split], values[:split], "dots")]
        if place is not None:
            series.append(Series(index[split:], values[split:], "crosses"))
        return Chart(
            name="spectrum",
            title="Spectrum and its gap",
            caption=caption,
            x_label="index",
            y_label="singular value",
            series=tuple(series),
            marks=() if place is None else (Mark("x", place + 0.5, f"{place} before it"),),
            log_y=True,
            whole_x=True,
        )

    def _objective_chart(self) -> Chart | None:
        accepted, rejected = self.misalignment, self.rejected
        if accepted is None or not len(accepted):
            return None
        split, refused = len(accepted), np.empty(0) if rejected is None else rejected
        caption = (
            "Squared distance of every direction to the span, `1 − Φ`: {/evidence/misalignment/count} "
            "accepted directions (dots), the worst at {/evidence/misalignment/largest}"
        )
        series = [Series(np.arange(1.0, split + 1), np.sort(accepted), "dots", "accepted")]
        if len(refused):
            index = np.arange(split + 1.0, split + len(refused) + 1)
            series.append(Series(index, np.sort(refused), "crosses", "rejected"))
            caption += (
                "; {/evidence/rejected/count} end points were rejected (crosses), the best of them at "
                "{/evidence/rejected/smallest}."
            )
        else:
            caption += "; no end point was rejected."
        return Chart(
            name="objective",
            title="Objective of the directions",
            caption=caption,
            x_label="direction, sorted",
            y_label="1 − Φ",
            series=tuple(series),
            marks=(Mark("x", split + 0.5),) if len(refused) else (),
            log_y=True,
            whole_x=True,
        )

    def _activations_chart(self) -> Chart | None:
        tried = {name: value for name, value in self.activation_residuals.items() if np.isfinite(value)}
        if len(tried) < 2:
            return None
        names = sorted(tried, key=lambda name: tried[name])
        values, places = np.array([tried[name] for name in names]), -np.arange(float(len(names)))
        best, second = (f"{name}, {{/evidence/activation_residuals/{name}}}" for name in names[:2])
        return Chart(
            name="activations",
            title="Which activation",
            caption=f"Misfit of the units' profiles with each activation. Best (filled): {best}; next: "
            f"{second}.",
            x_label="relative misfit of the units' profiles",
            y_label="",
            series=(Series(values[:1], places[:1], "dots"), Series(values[1:], places[1:], "circles")),
            names=tuple(names),
            log_x=True,
        )

    def _profile_chart(self) -> Chart | None:
        samples, curve, order = self.profile_samples, self.profile_curve, self.profile_order
        if samples is None or curve is None or order is None:
            return None
        what = (
            "values along a line on which only this unit moves"
            if order == 0
            else "its part in the sampled Hessians"
        )
        return Chart(
            name="profile",
            title="Profile of one unit",
            caption=f"The unit with the median misfit, as a function of one variable: {what} (circles, "
            "{/evidence/profile_samples/shape/1} of them) and the fitted profile (line), before the final "
            "fit.",
            x_label="t = u · x",
            y_label="profile" if order == 0 else "its second derivative",
            series=(
                Series(curve[0], curve[1], "line", "fitted"),
                Series(samples[0], samples[1], "circles", "sampled"),
            ),
        )
