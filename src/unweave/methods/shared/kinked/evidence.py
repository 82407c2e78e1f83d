"""What lines through a piecewise linear target show."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import Self

import numpy as np

from unweave.arrays import Array
from unweave.networks.network import Network
from unweave.numerics.line_kinks import Line
from unweave.search import Chart, Evidence, Series
from unweave.search.chart import Style
from unweave.targets.region import Region

_CHART_POINTS = 600  # at which the network is drawn along the line: a line one page wide looks smooth
_CHART_KINKS = 300  # drawn at most: more cannot be told apart
_OUTPUT_STYLES: tuple[Style, ...] = ("line", "dashed", "dotted")  # of the first outputs; no more are drawn


@dataclass(frozen=True, eq=False, kw_only=True)
class KinkedEvidence(Evidence):
    """What was measured on the way to kinked units."""

    kinks: Array | None = None
    """(n,) positions of the kinks on the first line that was searched."""
    line: Array | None = None
    """(2, D) a point of that line and its direction, in the target's own inputs."""

    def with_line(self, region: Region, line: Line, kinks: Array) -> Self:
        """Keep the kinks (n,) of ``line``, in normalised inputs, if it is the first with any."""
        if self.kinks is not None or not len(kinks):
            return self
        where = np.stack([region.to_inputs(line.start), region.scale * line.direction])
        return replace(self, kinks=kinks, line=where)

    def charts(self, network: Network | None) -> list[Chart]:
        """Put the kinks on the first line before the charts of every method."""
        chart = self._kinks_chart(network)
        return ([] if chart is None else [chart]) + super().charts(network)

    def _kinks_chart(self, network: Network | None) -> Chart | None:
        kinks, line = self.kinks, self.line
        if kinks is None or line is None or not len(kinks):
            return None
        low, high = np.quantile(kinks, (0.1, 0.9))  # a few kinks may be far away from all others
        margin = 0.15 * max(high - low, np.finfo(np.float64).eps * max(abs(low), abs(high), 1.0))
        t = np.linspace(low - margin, high + margin, _CHART_POINTS)
        seen = kinks[(kinks >= t[0]) & (kinks <= t[-1])]
        seen = seen[:: max(1, len(seen) // _CHART_KINKS)]
        series = [Series(seen, np.zeros(len(seen)), "ticks")]
        caption = (
            "{/evidence/kinks/count} kinks of the target on the first line that was searched, between "
            "{/evidence/kinks/smallest} and {/evidence/kinks/largest} (marks below; the densest part is "
            "drawn)"
        )
        if network is not None:
            answers = network(line[0] + t[:, None] * line[1])
            at_kinks = network(line[0] + seen[:, None] * line[1])
            for style, answer, at_kink in zip(_OUTPUT_STYLES, answers.T, at_kinks.T, strict=False):
                series += [Series(t, answer, style), Series(seen, at_kink, "circles")]
            caption += ", and the recovered network's answers along it, which bend there (circles)"
        return Chart(
            name="kinks",
            title="Kinks on a line",
            caption=caption + ".",
            x_label="position on the line",
            y_label="" if network is None else "answer of the network",
            series=tuple(series),
        )
