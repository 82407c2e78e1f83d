"""Lines through what strong units leave show weak ones."""

from __future__ import annotations

from contextlib import suppress

import numpy as np

from unweave.methods.shared.kinked.line_search import (
    LineSearchOptions,
    UnitsOnLines,
    coarse_line_options,
    finer_line_options,
)
from unweave.methods.shared.kinked.lines import LineNoise, random_line, scan
from unweave.methods.shared.kinked.reading import open_reading
from unweave.methods.shared.kinked.units import Units
from unweave.networks.absolute_form import AbsoluteForm
from unweave.networks.links import Link
from unweave.probing.look import look
from unweave.search import GaveUp, Journal
from unweave.targets.region import NormalisedQueries, Region
from unweave.targets.target import as_queries

INPUTS, STRONG, WEAK = 8, 30, 4
SINGLE = float(np.finfo(np.float32).eps)


def planted() -> AbsoluteForm:
    """Strong units, and weak ones with heights of 1e-4."""
    rng = np.random.default_rng(1000)
    weights = rng.standard_normal((INPUTS, STRONG + WEAK))
    weights /= np.linalg.norm(weights, axis=0)
    heights = rng.uniform(0.5, 1.0, (STRONG + WEAK, 1)) * rng.choice([-1, 1], (STRONG + WEAK, 1))
    heights[STRONG:] *= 1e-4
    biases = rng.uniform(-0.5, 0.5, STRONG + WEAK)
    return AbsoluteForm(weights, biases, heights, np.zeros((INPUTS, 1)), np.zeros(1))


def weak_units_found(known: bool) -> tuple[int, int]:
    """Return how many of the weak units are found, and how many units in all."""
    form = planted()
    rng = np.random.default_rng(1001)
    ledger = as_queries(lambda x: form(x).astype(np.float32), INPUTS)
    findings = look(ledger, rng=rng)
    view = NormalisedQueries(ledger, findings.region)
    reading = open_reading(view, findings.noise, Link("identity"), findings.spread, rng)
    assert reading is not None
    strong = form.keep(np.arange(STRONG + WEAK) < STRONG).scaled(1 / reading.spread)
    options = coarse_line_options(findings.noise.relative)
    lines = UnitsOnLines(
        reading,
        Journal(ledger),
        rng,
        finer_line_options(options) if known else options,
        lambda form: None,
        known=strong if known else None,
    )
    with suppress(GaveUp):
        lines.search()
    cosines = np.abs(form.weights[:, STRONG:].T @ lines.units.weights)
    if known:
        np.testing.assert_array_equal(lines.every_unit[0][:, :STRONG], strong.weights)
    return int((cosines.max(axis=1, initial=0.0) > 0.98).sum()), lines.units.width


def test_weak_units_are_found_in_what_strong_ones_leave():
    found, units = weak_units_found(known=True)
    assert found == WEAK
    assert units <= finer_line_options(coarse_line_options(SINGLE)).most_short_lines * WEAK


def test_strong_units_hide_them():
    assert weak_units_found(known=False)[0] < WEAK


def close_kinks_found(options: LineSearchOptions) -> int:
    """Return how many kinks of nearly parallel units are found on five lines, in single precision."""
    rng = np.random.default_rng(1000)
    weights = np.full((10, 1), 10**-0.5) + 0.02 * rng.standard_normal((10, 60))
    form = AbsoluteForm(
        weights / np.linalg.norm(weights, axis=0),
        -rng.uniform(0.35, 0.6, 60),
        rng.uniform(0.001, 0.002, (60, 1)),
        np.zeros((10, 1)),
        np.zeros(1),
    )
    found = 0
    for _ in range(5):
        line = random_line(Region.standard(10), 30.0, rng)
        noise = LineNoise.constant(SINGLE)
        kinks = scan(lambda x: form(x).astype(np.float32), line, noise, options.lines)[0].positions
        true = Units.of(form).crossings(line)
        found += int((np.abs(kinks[:, None] - true).min(axis=0) < 1e-3).sum())
    return found


def test_finer_lines_tell_close_kinks_apart():
    coarse = coarse_line_options(SINGLE)
    assert close_kinks_found(coarse) < 100
    assert close_kinks_found(finer_line_options(coarse)) >= 150  # of 300


def test_forms_are_summed_and_scaled():
    form = planted()
    strong = np.arange(STRONG + WEAK) < STRONG
    x = np.random.default_rng(0).standard_normal((20, INPUTS))
    halves = form.keep(strong), form.keep(~strong)
    np.testing.assert_allclose(halves[0].joined(halves[1])(x), form(x), atol=1e-13)
    np.testing.assert_allclose(form.scaled(np.array([3.0]))(x), 3 * form(x), atol=1e-12)
