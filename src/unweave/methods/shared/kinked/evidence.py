"""What lines through a piecewise linear target show."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from unweave.arrays import Array
from unweave.networks.network import Network
from unweave.search import Chart, Evidence, Series

_LINE_POINTS = 600  # at which the network is drawn along the line
_SEEN_KINKS = (0.1, 0.9)  # quantiles of the kinks' positions between which the line is drawn
_LINE_MARGIN = 0.15  # of that range, on either side
_MOST_OUTPUTS = 3  # drawn of the answers along a line
_MOST_KINKS = 300  # drawn on a line: more cannot be told apart


@dataclass(frozen=True, eq=False, kw_only=True)
class KinkedEvidence(Evidence):
    """What was measured on the way to kinked units."""

    kinks: Array | None = None
    """(n,) positions of the kinks on the first line that was searched."""
    line: Array | None = None
    """(2, D) a point of that line and its direction, in the target's own inputs."""

    def charts(self, network: Network | None) -> list[Chart]:
        """Add the kinks on the first line."""
        chart = self._kinks_chart(network)
        return super().charts(network) + ([] if chart is None else [chart])

    def _kinks_chart(self, network: Network | None) -> Chart | None:
        kinks, line = self.kinks, self.line
        if kinks is None or line is None or not len(kinks):
            return None
        low, high = np.quantile(kinks, _SEEN_KINKS)
        margin = _LINE_MARGIN * max(high - low, np.finfo(np.float64).eps * max(abs(low), abs(high), 1.0))
        t = np.linspace(low - margin, high + margin, _LINE_POINTS)
        seen = kinks[(kinks >= t[0]) & (kinks <= t[-1])]
        seen = seen[:: max(1, len(seen) // _MOST_KINKS)]
        series = [Series(seen, np.zeros(len(seen)), "ticks")]
        caption = (
            "{/evidence/kinks/count} kinks of the target on the first line that was searched, between "
            "{/evidence/kinks/smallest} and {/evidence/kinks/largest} (marks below; the densest part is "
            "drawn)"
        )
        if network is not None:
            answers = network(line[0] + t[:, None] * line[1])
            at_kinks = network(line[0] + seen[:, None] * line[1])
            for output in range(min(answers.shape[1], _MOST_OUTPUTS)):
                series.append(Series(t, answers[:, output], "line"))
                series.append(Series(seen, at_kinks[:, output], "circles"))
            caption += ", and the recovered network's answers along it, which bend there (circles)"
        return Chart(
            name="kinks",
            title="Kinks on a line",
            caption=caption + ".",
            x_label="position on the line",
            y_label="" if network is None else "answer of the network",
            series=tuple(series),
        )
