"""The published pipeline as one of the methods of `unweave.recover`."""

from __future__ import annotations

import numpy as np

from unweave.errors import BudgetExhausted, UnweaveError
from unweave.published.shallow.options import PublishedOptions
from unweave.published.shallow.pipeline import recover_published
from unweave.search.candidate import Candidate, Evidence
from unweave.search.journal import Journal
from unweave.targets.region import NormalisedQueries


def recover_as_published(
    view: NormalisedQueries,
    width: int,
    activation: str,
    journal: Journal,
    rng: np.random.Generator,
    options: PublishedOptions | None = None,
) -> Candidate:
    """Run Algorithm 3.1 and hand its network to the judge.

    The class is f(x) = sum_k g(w_k . x + tau_k) with |w_k| = 1 in the target's own inputs.
    """
    try:
        with journal.stage("published") as stage:
            result = recover_published(view, view.n_inputs, width, activation, rng, options)
            stage.figures.update(
                found=len(result.shifts),
                needed=width,
                restarts=result.restarts,
                gap=result.gap,
                **{f"seconds {name}": seconds for name, seconds in result.seconds.items()},
            )
    except BudgetExhausted as error:
        return Candidate(None, Evidence(), problem=str(error))
    except KeyboardInterrupt:
        return Candidate(None, Evidence(), problem="interrupted", interrupted=True)
    except UnweaveError as error:
        return Candidate(None, Evidence(), problem=str(error))
    evidence = Evidence(
        width=width,
        gap=result.gap,
        found=len(result.shifts),
        restarts=result.restarts,
        misalignment=result.misalignment,
    )
    notes = ("the weights are frozen at the accuracy of the Hessians' differences, as published",)
    return Candidate(result.network, evidence, notes)
