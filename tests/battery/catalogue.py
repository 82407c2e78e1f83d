"""The 2,000 cases: case i is of family i mod F with seed i // F, so that any first part is a fair sample."""

from __future__ import annotations

import zlib
from collections.abc import Callable

import numpy as np

from battery.case import Case, Rng
from battery.families import (
    functions,
    jumps,
    limits,
    places,
    planted,
    precision,
    tables,
    units,
    unsteady,
)

COUNT = 2000
"""Cases in all."""

_FAMILIES: tuple[Callable[[Rng], Case], ...] = (
    planted.smooth_layer,
    limits.clipped_outputs,
    precision.halves,
    jumps.trees,
    planted.kinked_layer,
    units.foreign,
    places.clusters,
    precision.rounding_rules,
    planted.smooth_layers,
    limits.missing_values,
    units.mixed,
    unsteady.drifting,
    planted.kinked_layers,
    places.corner_units,
    precision.uneven_noise,
    functions.formulas,
    planted.no_layer,
    limits.clipped_inputs,
    tables.coarse_samples,
    jumps.steps,
    planted.links,
    units.near_duplicates,
    places.far_units,
    precision.coarse_foreign,
    planted.boxes,
    limits.flat_regions,
    units.rewritable,
    unsteady.stateful,
    precision.single,
    jumps.step_and_network,
    units.weak_units,
    functions.largest_of_planes,
    precision.decimals,
    limits.input_rules,
    places.bumps,
    tables.sampled_functions,
    precision.noise,
    limits.saturating_posts,
    units.narrow_kinked,
    units.products,
    tables.sampled_networks,
    limits.not_a_number,
    units.idle_units,
    jumps.labels,
    planted.powers,
    functions.deeper,
    precision.scales,
)
FAMILIES = {make.__name__: make for make in _FAMILIES}
"""Every family by name."""


def family_of(index: int) -> str:
    """The family of case ``index``."""
    return list(FAMILIES)[index % len(FAMILIES)]


def make(index: int) -> Case:
    """Case ``index``, which depends on its family's name and its place within it only."""
    name = family_of(index)
    rng = np.random.default_rng([zlib.crc32(name.encode()), index // len(FAMILIES)])
    with np.errstate(all="ignore"):
        return FAMILIES[name](rng)
