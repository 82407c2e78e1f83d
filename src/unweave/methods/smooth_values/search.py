"""One smooth hidden layer in few inputs, from values alone: the last resort of `unweave.recover`.

In d inputs derivatives determine at most d(d-1)/2 units, and none that share a direction with another.
Random starts of least squares (`value_search`) know neither limit. Rows are drawn once, enough for the widest
network that is looked for, and every activation is fitted to the same ones.

Cost: 10 rows per parameter of that network, divided by the outputs.
"""

from __future__ import annotations

from dataclasses import dataclass

from unweave.arrays import Array
from unweave.methods.shared.profiles.profiles import SMOOTH_ACTIVATIONS
from unweave.methods.shared.value_search import ValueSearch, ValueSearchOptions, search_values
from unweave.networks.activations import get_activation
from unweave.search import Candidate, Evidence, GaveUp, Reason, Search
from unweave.targets.change_of_inputs import in_own_inputs


class SmoothValuesReason(Reason):
    """Why no network of this class was found."""

    NO_EXACT_START = (
        "from {starts} random starts {units} units leave a residual of {residual:.2g}: more units, another "
        "activation, or more than one hidden layer"
    )


@dataclass(frozen=True, kw_only=True)
class SmoothValuesOptions(ValueSearchOptions):
    """How many rows are asked, and how long random starts are tried on them."""

    assumed_width: int = 16
    """Number of units that the rows suffice for when the caller gives no width."""
    exact_residual: float = 3e-14
    """Relative misfit of values that counts as exact; many units imitate others to 1e-12."""

    def rows_for(self, inputs: int, outputs: int, width: int | None) -> int:
        """Return the number of rows that a search for ``width`` units asks."""
        units = self.assumed_width if width is None else width
        return -(-self.rows_per_parameter * units * (inputs + 1 + outputs) // outputs) + 20


class SmoothValuesSearch(Search):
    """Fits units of each activation in turn to one set of rows until some are exact."""

    _found = Candidate()

    def run(self) -> None:
        """Ask the rows and try random starts on them."""
        view, region, width = self.context.view, self.findings.region, self.request.width
        options: SmoothValuesOptions = self.context.options
        with self.journal.stage("values") as stage:
            rows = options.rows_for(view.n_inputs, self.findings.n_outputs, width)
            points = region.sample(rows, self.rng)
            answers = view(points)
            stage.figures.update(rows=len(points))
        best = self._searched(points, answers, options)
        if best is None:
            return
        if not best.exact:  # a local minimum: what other methods found is as good
            units = best.network.hidden[0]
            raise GaveUp(
                SmoothValuesReason.NO_EXACT_START, starts=best.starts, units=units, residual=best.residual
            )
        # In few inputs many units can imitate others: without error bars nothing shows that these did not.
        open_bars = best.fitted.error_bar is None
        self._found = Candidate(
            in_own_inputs(best.network, region),
            _evidence(best),
            ambiguity="the values do not determine all parameters: other units fit as well"
            if open_bars
            else None,
        )

    def candidate(self) -> Candidate:
        """Return the exact network, if there is one."""
        return self._found

    def _searched(self, points: Array, answers: Array, options: SmoothValuesOptions) -> ValueSearch | None:
        with self.journal.stage("random starts") as stage:
            found = search_values(
                points,
                answers,
                self.request.width,
                [get_activation(name) for name in self.request.activations_among(SMOOTH_ACTIVATIONS)],
                floor=options.exact_residual,
                rng=self.rng,
                options=options,
                on_step=self.on_step,
            )
            if found is not None:
                stage.figures.update(
                    activation=found.network.activations[0],
                    starts=found.starts,
                    units=found.network.hidden[0],
                    residual=found.residual,
                )
        return found


def _evidence(found: ValueSearch) -> Evidence:
    fitted, units = found.fitted, found.network.hidden[0]
    return Evidence(
        width=units,
        found=units,
        restarts=found.starts,
        fit_history=fitted.history,
        fit_floor=fitted.floor,
        prediction_floor=fitted.prediction_floor,
        condition=fitted.condition,
        parameter_error_bar=fitted.error_bar,
    )
