"""What samples show before anything is fitted to them."""

from __future__ import annotations

import numpy as np

from unweave.probing.lines import KinkEvidence
from unweave.probing.look import Findings
from unweave.probing.noise import Noise, NoiseKind
from unweave.targets.region import Region
from unweave.targets.samples import Samples

_KINDS: dict[str, NoiseKind] = {
    "float64": "float64",
    "float32": "float32",
    "decimals": "rounded",
    "replicates": "noisy",
}


def look_at_samples(samples: Samples) -> Findings:
    """Return the scales of inputs and outputs and the precision of the answers; kinks are left open."""
    x, y, precision = samples.x, samples.y, samples.precision()
    with np.errstate(over="ignore", invalid="ignore"):  # entries near the largest number have no spread
        location, scale, spread = x.mean(axis=0), x.std(axis=0), y.std(axis=0)
    sigma, size = float(precision.sigma.max()), float(np.sqrt(np.mean(spread**2)))
    noise = Noise(
        kind=_KINDS[precision.kind],
        sigma=sigma,
        sigma_per_output=precision.sigma,
        decimals=None,
        scale=size,
        relative=sigma / size if size else np.inf,
        repeatable=precision.kind != "replicates",
    )
    return Findings(
        region=Region(
            np.where(np.isfinite(location), location, 0.0),
            np.where(np.isfinite(scale) & (scale > 0), scale, 1.0),
        ),
        noise=noise,
        n_outputs=samples.n_outputs,
        output_scale=spread,
        kinks=False,
        kink_evidence=KinkEvidence((), np.zeros(0), np.zeros(0), judged=0, broken=0),
        constant=bool((spread == 0).all()),
        linear=False,
        searched=False,
        queries=0,
    )
