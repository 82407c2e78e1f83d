"""Run a search to its end, its budget or Ctrl-C: the only place that catches what ends one."""

from __future__ import annotations

from contextlib import nullcontext
from dataclasses import replace

import numpy as np

from unweave.errors import BudgetExhausted
from unweave.numerics.threads import single_threaded_blas
from unweave.search import Candidate, GaveUp, Search


def run_search(search: Search) -> Candidate:
    """Run ``search`` and return the best candidate it holds, with what ended it as its problem."""
    problem, interrupted = None, False
    try:
        with single_threaded_blas() if search.single_thread else nullcontext():
            search.run()
    except BudgetExhausted as error:
        problem = _told(str(error), search.so_far())
    except GaveUp as error:
        problem = str(error)
    except KeyboardInterrupt:
        problem, interrupted = "interrupted", True
    except np.linalg.LinAlgError as error:
        problem = _told(f"the numbers broke down ({error}): not a network of this class", search.so_far())
    candidate = search.candidate()
    return replace(candidate, problem=problem or candidate.problem, interrupted=interrupted)


def _told(what: str, so_far: str) -> str:
    return f"{what}; {so_far}" if so_far else what
