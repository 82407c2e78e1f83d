"""The look at samples: scales of inputs and answers, and how precise the answers are."""

from __future__ import annotations

import numpy as np

from unweave.errors import InvalidInput
from unweave.probing.answer_range import out_of_range
from unweave.probing.findings import Findings
from unweave.probing.lines import KinkEvidence
from unweave.probing.noise import Noise, NoiseKind
from unweave.targets.region import Region
from unweave.targets.samples import Samples

_NOISE_OF_SAMPLES: dict[str, NoiseKind] = {"decimals": "rounded", "replicates": "noisy", "float32": "float32"}


def look_at_samples(samples: Samples) -> Findings:
    """Return the scales of inputs and outputs and the precision of the answers; kinks are left open."""
    x, y = samples.x, samples.y
    told = out_of_range(y)
    if told:
        raise InvalidInput(f"y {told}")
    precision = samples.precision()
    with np.errstate(over="ignore", invalid="ignore"):  # entries near the largest number have no spread
        location, scale, spread = x.mean(axis=0), x.std(axis=0), y.std(axis=0)
    sigma, size = float(precision.sigma.max()), float(np.sqrt(np.mean(spread**2)))
    noise = Noise(
        kind=_NOISE_OF_SAMPLES.get(precision.kind, "float64"),
        sigma=sigma,
        sigma_per_output=precision.sigma,
        decimals=None,
        scale=size,
        relative=sigma / size if size else np.inf,
        repeatable=precision.kind != "replicates",
    )
    usable = np.isfinite(scale) & (scale > 0)
    return Findings(
        region=Region(np.where(np.isfinite(location), location, 0.0), np.where(usable, scale, 1.0)),
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
