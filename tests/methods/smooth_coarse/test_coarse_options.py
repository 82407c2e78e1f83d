"""Options of the methods for coarse answers reach the stage that they are for."""

from __future__ import annotations

import pytest

import unweave
from coarse_targets import planted, rounded
from unweave.methods.relu_coarse.search import ReluCoarseOptions
from unweave.methods.shared.coarse_answers.bisection import BisectionOptions
from unweave.methods.shared.coarse_answers.refinement import CoarseOptions
from unweave.methods.shared.coarse_answers.rows import RowOptions
from unweave.methods.smooth_coarse.hessians_behind_links import SiteOptions
from unweave.methods.smooth_coarse.search import SmoothCoarseOptions

MORE_FLIPS = CoarseOptions(bisection=BisectionOptions(per_parameter=2.0))
NEVER_EXPLAINED = CoarseOptions(rows=RowOptions(rounded_sigma_error=-0.9, misfit_standard_errors=0.0))


@pytest.mark.parametrize(
    ("activation", "kind", "method"),
    [("tanh", SmoothCoarseOptions, "smooth_coarse"), ("relu", ReluCoarseOptions, "relu_coarse")],
)
def test_shared_options_reach_the_bisection_and_the_rows(activation: str, kind: type, method: str) -> None:
    target = rounded(planted(4, 3, 1, 1000, activation), 3)
    told = {"input_dim": 4, "hidden": [3], "activation": activation, "method": method}
    usual = unweave.recover(target, **told)
    more = unweave.recover(target, options=kind(coarse=MORE_FLIPS), **told)
    assert usual.status is more.status is unweave.Status.RECOVERED
    assert more.evidence.flips > 1.3 * usual.evidence.flips
    strict = unweave.recover(target, options=kind(coarse=NEVER_EXPLAINED), **told)
    assert strict.status is not unweave.Status.RECOVERED
    assert strict.evidence.flips == 0


def test_more_sites_are_taken_where_the_first_look_is_larger() -> None:
    target = rounded(planted(4, 3, 1, 1000), 3)
    told = {"input_dim": 4, "hidden": [3], "activation": "tanh", "method": "smooth_coarse"}
    options = SmoothCoarseOptions(sites=SiteOptions(first=30))
    sites = [
        next(stage for stage in result.stages if stage.name == "Hessians").figures["sites"]
        for result in (unweave.recover(target, **told), unweave.recover(target, options=options, **told))
    ]
    assert sites[0] < 30 <= sites[1]
