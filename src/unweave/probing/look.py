"""The first look at a target: where it lives, how precise it is, whether it has kinks."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np

from unweave.arrays import Array
from unweave.errors import InvalidInput, NonFiniteAnswers, TargetError
from unweave.networks.links import Link
from unweave.probing.answer_range import out_of_range, possible_links
from unweave.probing.findings import Findings
from unweave.probing.labels import count_labels
from unweave.probing.lines import (
    KinkEvidence,
    Lines,
    ask_lines,
    is_constant,
    is_linear,
    look_for_kinks,
    look_for_kinks_behind,
)
from unweave.probing.moderate_region import find_moderate_region
from unweave.probing.noise import FEW_NOISE_ROWS, MANY_NOISE_ROWS, Noise, NoiseRows, estimate_noise
from unweave.probing.region_fit import fits_standard_region, is_frozen, scatters
from unweave.probing.region_search import find_region
from unweave.probing.steps import answers_in_steps, is_piecewise_constant
from unweave.probing.straight import StraightLines, are_parabolas, read_lines, stays_straight
from unweave.targets.queries import Queries
from unweave.targets.region import NormalisedQueries, Region

_EPS = float(np.finfo(np.float64).eps)
_BETTER_REGION_SHARE = 0.1  # of the noise before: how much clearer answers must be to move to another region
_NEARER = 0.1  # of the standard region, where answers overflow in it
_READABLE_NOISE = 0.02  # standard deviation of an answer with which probabilities can be compared
_LABEL_LIKE = 0.3  # noise relative to the spread at which anything looks straight
_NOT_NEGATIVE_SIGMAS = 5.0  # by which noise takes a positive answer below zero
_MAGNITUDES = 300.0  # largest over median answer: more is an exponential's range


@dataclass(frozen=True, kw_only=True)
class LookSize:
    """How much is asked in a look."""

    noise: NoiseRows = MANY_NOISE_ROWS
    lines: int = 6
    """Lines on which kinks, straightness and bending are judged."""
    slope_points: int = 3
    """Points at which every feature's slope is measured."""
    searches: bool = True
    """Whether a region may be searched for."""
    far_pairs: int = 12
    """Pairs of points far out, where the depth is not known."""


FULL_LOOK = LookSize()
SHORT_LOOK = LookSize(noise=FEW_NOISE_ROWS, lines=4, slope_points=0, far_pairs=5)
"""For a small budget: 66 rows, and 15 far out. Features of different scales are taken for alike."""
GLANCE = LookSize(noise=FEW_NOISE_ROWS, lines=1, slope_points=0, searches=False, far_pairs=0)
"""For a small budget where widths and activation are told: 27 rows show precision and spread."""


@dataclass(frozen=True, eq=False)
class _Measured:
    """What was asked in one region."""

    view: NormalisedQueries
    noise: Noise
    lines: Lines


def look(
    queries: Queries,
    *,
    rng: np.random.Generator,
    domain: Any = None,
    examples: Any = None,
    size: LookSize = FULL_LOOK,
) -> Findings:
    """Look at the target: region, precision, kinks, scale of the outputs.

    ``domain = (low, high)``, numbers or one per input, bounds all that will ever be asked; ``examples``
    (n, D) are typical inputs, from which location and scale are taken. With neither, the standard region
    (Gaussian inputs) is tried; if features differ widely in scale there, or the target is frozen or straight,
    the region is searched for. Cost: about 330 queries with a domain or examples, 330 + 3 D if the
    standard region fits, and `find_region` in addition if not; less for a smaller ``size``.

    Example: ``look(as_queries(net), rng=np.random.default_rng(0)).noise.kind``
    """
    before = queries.sent
    known = _given_region(queries.n_inputs, domain, examples)
    seen = _first_measured(queries, known, rng, examples, size)
    told = out_of_range(seen.lines.answers)
    if told:
        raise TargetError(f"The target's answers {told}", ledger=queries)
    if answers_in_steps(seen.view, seen.lines, seen.noise, anywhere=known is None and size.searches):
        return _in_steps(seen, examples, queries.sent - before)
    seen, straight, searched = _where_it_suits(seen, known, rng, size)
    return _findings(seen, straight, searched, queries, before)


def _first_measured(
    queries: Queries, known: Region | None, rng: np.random.Generator, examples: Any, size: LookSize
) -> _Measured:
    """Measure in the region that the user gave, or in the standard one."""
    region = Region.standard(queries.n_inputs) if known is None else known
    try:
        return _measure(queries, region, rng, examples, size)
    except NonFiniteAnswers:
        if known is not None:
            raise
    # An exponential overflows where others only grow: nearer to zero it may not.
    return _measure(queries, Region(region.location, _NEARER * region.scale), rng, None, size)


def _where_it_suits(
    seen: _Measured, known: Region | None, rng: np.random.Generator, size: LookSize
) -> tuple[_Measured, list[StraightLines], bool]:
    """Move to where a link can be read, or where the target moves and bends, if it does not do so here.

    Return what is measured there, the links behind which lines are straight, and whether it was searched for.
    """
    view, noise, lines = seen.view, seen.noise, seen.lines
    straight = _straight(lines, noise)
    stays = any(found.straight and found.is_readable for found in straight)
    if stays and known is None:
        stays = any(stays_straight(view, found, lines, noise) for found in straight if found.is_readable)
    readable = noise.repeatable or noise.sigma < _READABLE_NOISE or _spans_magnitudes(lines.answers)
    if not stays and not view.region.has_box and readable:
        moderate = _measure_moderate(seen, straight, rng, size)
        if moderate is not None:
            return moderate, _straight(moderate.lines, moderate.noise), True
    if known is not None or stays or not size.searches:
        return seen, straight, False
    if fits_standard_region(view, lines, noise, size.slope_points):
        return seen, straight, False
    found = _searched_for(seen, rng, size)
    if found is None:
        return seen, straight, True
    return found, _straight(found.lines, found.noise), True


def _searched_for(seen: _Measured, rng: np.random.Generator, size: LookSize) -> _Measured | None:
    """Search for a region; None if answers say no more there than where the look began."""
    noise, queries = seen.noise, seen.view.ledger
    scattered = scatters(noise)
    try:
        region = find_region(queries, _EPS * noise.scale if scattered else noise.sigma_per_output, rng)
    except NonFiniteAnswers:  # answers overflow far out: where it is asked already, they do not
        return None
    if region is None:
        return None
    found = _measure(queries, region, rng, None, size)
    clearer = not scattered or found.noise.relative < _BETTER_REGION_SHARE * noise.relative
    if not clearer or is_frozen(found.lines, found.noise, seen.lines, noise):
        return None
    return found


def _findings(
    seen: _Measured, straight: list[StraightLines], searched: bool, queries: Queries, before: int
) -> Findings:
    """Read kinks, links and labels from what was measured; ``before`` rows had been sent earlier."""
    view, noise, lines = seen.view, seen.noise, seen.lines
    links = _links(lines, noise)
    evidence = look_for_kinks(lines, noise)
    for name in links:
        behind = look_for_kinks_behind(Link(name), lines, noise)
        if behind.kinks and behind.share > evidence.share:
            evidence, links = behind, (name,)  # straight pieces, which no other link would leave straight
    labels = count_labels(view, lines, noise)
    straight_links = tuple(found.link.name for found in straight if found.straight and found.is_readable)
    affine = is_constant(lines, noise) or is_linear(lines, noise) or bool(straight_links)
    return Findings(
        region=view.region,
        noise=noise,
        n_outputs=lines.center.shape[1],
        output_scale=_spread(lines),
        kinks=evidence.kinks,
        kink_evidence=evidence,
        constant=is_constant(lines, noise),
        linear=is_linear(lines, noise),
        searched=searched,
        queries=queries.sent - before,
        links=links,
        labels=labels,
        straight_links=straight_links,
        parabolic_links=() if affine or noise.relative >= _LABEL_LIKE else _parabolic(lines, noise),
        flat=is_piecewise_constant(lines, noise) and not is_constant(lines, noise),
    )


def _in_steps(seen: _Measured, examples: Any, queries: int) -> Findings:
    """Return findings of a target that answers in steps: its answers are as precise as their numbers are."""
    noise, lines = seen.noise, seen.lines
    answers = lines.answers
    single = noise.kind == "float32"
    eps = float(np.finfo(np.float32 if single else np.float64).eps)
    sigma = np.maximum(eps * np.abs(answers).max(axis=0), np.finfo(np.float64).tiny)
    scale = float(np.sqrt(np.mean(answers.var(axis=0))))
    exact = Noise(
        kind="float32" if single else "float64",
        sigma=float(sigma.max()),
        sigma_per_output=sigma,
        decimals=None,
        scale=scale,
        relative=float(sigma.max()) / scale if scale else np.inf,
        repeatable=True,
    )
    return Findings(
        region=seen.view.region,
        noise=exact,
        n_outputs=lines.center.shape[1],
        output_scale=_spread(lines),
        kinks=False,
        kink_evidence=KinkEvidence((), np.zeros(0), np.zeros(0), judged=0, broken=0),
        constant=False,
        linear=False,
        searched=False,
        queries=queries,
        links=_links(lines, exact),
        steps=True,
        examples=None if examples is None else np.asarray(examples, dtype=np.float64),
    )


def _given_region(n_inputs: int, domain: Any, examples: Any) -> Region | None:
    """Return the region that the user described, None if they did not."""
    if domain is None and examples is None:
        return None
    box = None if domain is None else Region.from_domain(*_bounds(domain), n_inputs)
    if examples is None:
        return box
    seen = Region.from_examples(examples)
    if seen.n_inputs != n_inputs:
        raise InvalidInput(
            f"examples must have {n_inputs} columns, one per input of the target. "
            f"Got {seen.n_inputs} instead."
        )
    if box is None or box.low is None or box.high is None:
        return seen
    scale = np.minimum(seen.scale, box.scale)  # examples tell where the box is used, never to leave it
    return Region(np.clip(seen.location, box.low, box.high), scale, box.low, box.high)


def _bounds(domain: Any) -> tuple[Any, Any]:
    """Return the two bounds of ``domain``."""
    try:
        low, high = domain
    except (TypeError, ValueError) as error:
        raise InvalidInput(
            "domain must be a pair (low, high) of numbers or of one number per input. "
            f"Got {domain!r} instead."
        ) from error
    return low, high


def _measure(
    queries: Queries, region: Region, rng: np.random.Generator, examples: Any, size: LookSize
) -> _Measured:
    """Estimate the noise in ``region`` and ask the lines there."""
    view = NormalisedQueries(queries, region)
    noise = estimate_noise(view, rng, size.noise)
    centers = None
    if examples is not None:
        rows = np.asarray(examples, dtype=np.float64)
        centers = region.to_normalised(rows[rng.integers(0, rows.shape[0], size.lines)])
    return _Measured(view, noise, ask_lines(view, size.lines, rng, centers))


def _links(lines: Lines, noise: Noise) -> tuple[str, ...]:
    """Return the output activations whose range holds all answers on the lines."""
    eps = float(np.finfo(np.float32).eps) if noise.kind == "float32" else _EPS
    return possible_links(lines.answers, noise.sigma, noisy=noise.kind == "noisy", eps=eps)


def _links_and_exp(lines: Lines, noise: Noise) -> tuple[str, ...]:
    """Return the same, and the exponential where no answer is negative."""
    links = _links(lines, noise)
    if "identity" in links and (lines.answers >= -_NOT_NEGATIVE_SIGMAS * noise.edge_sigma).all():
        links = (*links, "exp")
    return links


def _parabolic(lines: Lines, noise: Noise) -> tuple[str, ...]:
    """Return the output activations behind which all lines are parabolas."""
    return tuple(name for name in _links_and_exp(lines, noise) if are_parabolas(Link(name), lines, noise))


def _straight(lines: Lines, noise: Noise) -> list[StraightLines]:
    """Read z on the lines behind every link that the range of the answers allows and no line contradicts."""
    links = _links_and_exp(lines, noise)
    clear = noise.relative < _LABEL_LIKE and not is_constant(lines, noise)
    straight_itself = clear and is_linear(lines, noise)
    links = tuple(name for name in links if name != "identity" or straight_itself)
    return [found for found in (read_lines(Link(name), lines, noise) for name in links) if found.straight]


def _measure_moderate(
    seen: _Measured, straight: list[StraightLines], rng: np.random.Generator, size: LookSize
) -> _Measured | None:
    """Look again where a link is not saturated; None unless the lines are straight behind it there."""
    view, lines = seen.view, seen.lines
    names = [found.link.name for found in straight if not found.is_readable]
    if _spans_magnitudes(lines.answers) and "exp" not in names:
        names.append("exp")  # some answers are too small to be read, or others too large for their digits
    rows = [lines.centers, *_ends(lines)]
    answers = [lines.center, *(part[:, -1] for part in (lines.plus, lines.minus))]
    for link in map(Link, names):
        region = find_moderate_region(view, link.name, np.concatenate(rows), np.concatenate(answers), rng)
        if region is None:
            continue
        measured = _measure(view.ledger, region, rng, None, size)
        read = read_lines(link, measured.lines, measured.noise)
        if read.straight and read.is_readable:
            return measured
    return None


def _spans_magnitudes(answers: Array) -> bool:
    """Whether positive answers of every output (n, K) differ by many powers of ten, as exponentials do."""
    typical, largest = np.median(answers, axis=0), answers.max(axis=0)
    above = largest > _MAGNITUDES * np.maximum(np.abs(typical), 1 / _MAGNITUDES)  # not probabilities
    return bool(above.all() and (-answers.min(axis=0) <= largest / _MAGNITUDES**2).all())


def _ends(lines: Lines) -> tuple[Array, Array]:
    """Return the points (L, D) at the longest step of every line, on either side."""
    reach = lines.steps[-1] * lines.directions
    return lines.centers + reach, lines.centers - reach


def _spread(lines: Lines) -> Array:
    """Return the standard deviation of each output over the centers and the ends of the lines. Shape (m,)."""
    at = -2  # the last step but one: as far as typical points of the region are apart
    rows = np.concatenate([lines.center, lines.plus[:, at], lines.minus[:, at]])
    spread: Array = np.where(np.ptp(rows, axis=0) > 0, rows.std(axis=0), 0.0)
    return spread
