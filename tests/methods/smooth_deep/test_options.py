from __future__ import annotations

import unweave
from unweave.methods.shared.far_field import CircleOptions
from unweave.methods.smooth_deep.options import SmoothDeepOptions


def failed(options: SmoothDeepOptions) -> str:
    network = unweave.random_network([6, 5, 4, 3, 1], seed=1000, outer="normal", norms=(0.7, 1.4))
    result = unweave.recover(network, method="smooth_deep", options=options)
    assert result.status is unweave.Status.FAILED
    return result.message


def test_options_reach_the_search_and_its_stages() -> None:
    assert "no end after 1 layers" in failed(SmoothDeepOptions(most_layers=1))
    assert "far away only 0 units of layer 1 are seen" in failed(
        SmoothDeepOptions(circles=CircleOptions(clean=0.0, most=2))
    )
