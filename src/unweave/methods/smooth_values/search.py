"""One smooth hidden layer in few inputs, from values alone: the last resort of `unweave.recover`.

In d inputs derivatives determine at most d(d-1)/2 neurons, and none that share a direction with another.
Random starts of least squares (`value_search`) know neither limit. Rows are drawn once, enough
for the widest network that is looked for, and every activation is fitted to the same ones.

Cost: 10 rows per parameter of that network, divided by the outputs.
"""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from unweave.arrays import Array
from unweave.errors import BudgetExhausted
from unweave.methods.shared.value_search import ROWS_PER_PARAMETER, ValueSearch, search_values
from unweave.networks.activations import get_activation
from unweave.numerics.threads import single_threaded_blas
from unweave.numerics.variable_projection.search import OutOfTime
from unweave.probing.look import Findings
from unweave.search.candidate import Candidate, Evidence
from unweave.search.journal import Journal
from unweave.targets.change_of_inputs import in_own_inputs
from unweave.targets.region import NormalisedQueries

WIDEST_UNTOLD = 16
"""Units that rows are asked for where no width is told."""
_EXACT = 3e-14  # relative misfit of values that are fitted exactly; many units imitate others to 1e-12


def rows_for(inputs: int, outputs: int, width: int | None) -> int:
    """Rows that a search for so many units asks."""
    units = WIDEST_UNTOLD if width is None else width
    return -(-ROWS_PER_PARAMETER * units * (inputs + 1 + outputs) // outputs) + 20


def recover_from_values(
    view: NormalisedQueries,
    findings: Findings,
    width: int | None,
    activations: Sequence[str],
    journal: Journal,
    rng: np.random.Generator,
) -> Candidate:
    """Fit units of each of ``activations`` in turn until some are exact; as far as the budget goes."""
    best: ValueSearch | None = None
    problem, interrupted = None, False
    try:
        with single_threaded_blas():
            with journal.stage("values") as stage:
                points = findings.region.sample(rows_for(view.n_inputs, findings.n_outputs, width), rng)
                answers = view(points)
                stage.figures.update(rows=len(points))
            best = _searched(activations, points, answers, width, view, journal, rng)
    except BudgetExhausted as error:
        problem = str(error)
    except KeyboardInterrupt:
        problem, interrupted = "interrupted", True
    except np.linalg.LinAlgError as error:
        problem = f"the numbers broke down ({error})"
    if best is not None and best.exact:
        # In few inputs many units can imitate others: without error bars nothing shows that these did not.
        open_bars = best.fitted.error_bar is None
        ambiguity = (
            "the values do not determine all parameters: other units fit as well" if open_bars else None
        )
        network = in_own_inputs(best.network, findings.region)
        return Candidate(network, _evidence(best), ambiguity=ambiguity)
    if problem is None and best is not None:  # a local minimum: what other methods found is as good
        problem = (
            f"from {best.starts} random starts {best.network.hidden[0]} units leave a residual of "
            f"{best.residual:.2g}: more units, another activation, or more than one hidden layer"
        )
    return Candidate(None, Evidence(), problem=problem, interrupted=interrupted)


def _searched(
    names: Sequence[str],
    points: Array,
    answers: Array,
    width: int | None,
    view: NormalisedQueries,
    journal: Journal,
    rng: np.random.Generator,
) -> ValueSearch | None:
    def on_step(step: int, residual: float) -> None:
        journal.tell(step, None, f"steps, residual {residual:.1e}")
        left = view.seconds_left
        if left is not None and left <= 0:
            raise OutOfTime

    with journal.stage("random starts") as stage:
        found = search_values(
            points,
            answers,
            width,
            [get_activation(name) for name in names],
            floor=_EXACT,
            rng=rng,
            on_step=on_step,
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
