"""The first look at a target: where it lives, how precise it is, whether it has kinks."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np

from unweave.arrays import Array
from unweave.errors import InvalidInput, NonFiniteAnswers, TargetError
from unweave.networks.links import Link
from unweave.numerics.axis_moves import answers_along_axes, one_call_is_enough
from unweave.probing.answer_range import possible_links
from unweave.probing.labels import count_labels
from unweave.probing.lines import (
    KinkEvidence,
    Lines,
    ask_lines,
    bending,
    is_constant,
    is_linear,
    look_for_kinks,
    look_for_kinks_behind,
    roughness,
    slope_share,
)
from unweave.probing.moderate_region import find_moderate_region
from unweave.probing.noise import FEW_NOISE_ROWS, MANY_NOISE_ROWS, Noise, NoiseKind, NoiseRows, estimate_noise
from unweave.probing.region_search import find_region
from unweave.probing.steps import answers_in_steps, is_piecewise_constant
from unweave.probing.straight import StraightLines, read_lines, stays_straight
from unweave.targets.queries import Queries
from unweave.targets.region import NormalisedQueries, Region
from unweave.targets.samples import Samples

_EPS = float(np.finfo(np.float64).eps)
_LEAST_ANSWER, _LARGEST_ANSWER = 1e-161, 1e151  # beyond, squares of answers become zero or infinite
_MOST_FEATURES = 1000  # whose slopes are compared where there are too many inputs to ask about all
_BLIND_SLOPE_NOISE = 3e-3  # relative noise above which slopes of single features say nothing
_ONE_SCALE_SLOPE_RATIO = 30.0  # features whose slopes differ by a smaller factor are on one scale
_FEW_FEATURES = 0.05  # share of the features at either end that may be hardly used, as the rim of an image is
_SLOPE_RATIO_EXTREMES = 10.0  # factor by which a few features may be weaker still
_LEAST_BENDING = 0.05  # less, and the units do not leave their linear range within the region
_ROUGH_AS_NOISE = 0.02  # relative scatter of repeatable answers that may be steps too narrow to resolve
_BETTER_REGION_SHARE = 0.1  # of the noise before: how much clearer answers must be to move to another region
_LEAST_SLOPE_SHARE = 0.2  # of short steps against long ones: less is flat
_NOISE_OF_SAMPLES: dict[str, NoiseKind] = {"decimals": "rounded", "replicates": "noisy", "float32": "float32"}
_NEARER = 0.1  # of the standard region, where answers overflow in it
_READABLE_NOISE = 0.02  # standard deviation of an answer with which probabilities can be compared
_LABEL_LIKE = 0.3  # noise relative to the spread at which anything looks straight
_NOT_NEGATIVE_SIGMAS = 5.0  # by which noise takes a positive answer below zero
_MAGNITUDES = 300.0  # largest over median answer: more is an exponential's range
_MOST_ROUGHNESS = 0.6  # more, and the units switch within a fraction of the region: steps on flat ground


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
class Findings:
    """What a cheap look at the target has found.

    ``region`` normalises the inputs; ``noise`` is the error of the answers; ``output_scale`` (m,) their
    standard deviation over the region. ``kinks``: piecewise smooth, not smooth, with ``kink_evidence``; or so
    behind one of the ``links``. ``constant`` and ``linear``: so to within the noise, as far as the probe
    went. ``searched``: location and scales had to be searched for. ``queries``: what the look has cost.
    """

    region: Region
    noise: Noise
    n_outputs: int
    output_scale: Array
    kinks: bool
    kink_evidence: KinkEvidence
    constant: bool
    linear: bool
    searched: bool
    queries: int
    layered: bool = False
    """Whether the far field rules out a single hidden layer; only looked at when the depth is not known."""
    rectifies: bool | None = None
    """Whether answers grow along rays far out as those of rectifying units do; None where nobody looked."""
    links: tuple[str, ...] = ("identity",)
    """Output activations whose range holds all answers seen, the simplest first."""
    labels: int = 0
    """Number of different answers if they are names of classes, else 0."""
    straight_links: tuple[str, ...] = ()
    """Output activations behind which all lines were straight, as far as they could be read."""
    steps: bool = False
    """Whether the target answers in steps at thresholds of single inputs, as trees do."""
    examples: Array | None = None
    """(n, D) typical inputs that the user gave."""
    flat: bool = False
    """Whether answers are piecewise constant, as far as the probe went."""

    @property
    def spread(self) -> Array:
        """(m,) standard deviation of the answers, 1 where they do not vary: what errors are measured in."""
        return np.where(self.output_scale > 0, self.output_scale, 1.0)

    @property
    def is_affine(self) -> bool:
        """Whether nothing curved or kinked was seen."""
        return self.constant or self.linear

    @property
    def is_noisy(self) -> bool:
        """Whether the answers' error is known as a number, and no rounding of floating-point arithmetic."""
        return self.noise.kind in ("rounded", "noisy")


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
    region = Region.standard(queries.n_inputs) if known is None else known
    try:
        view, noise, lines = _measure(queries, region, rng, examples, size)
    except NonFiniteAnswers:
        if known is not None:
            raise
        # An exponential overflows where others only grow: nearer to zero it may not.
        region = Region(region.location, _NEARER * region.scale)
        view, noise, lines = _measure(queries, region, rng, None, size)
    told = _out_of_range(lines.answers)
    if told:
        raise TargetError(f"The target's answers {told}", ledger=queries)
    if answers_in_steps(view, lines, noise, anywhere=known is None and size.searches):
        return _in_steps(view, lines, noise, examples, queries.sent - before)
    straight = _straight(lines, noise)
    stays = any(found.straight and found.is_readable for found in straight)
    if stays and known is None:
        stays = any(stays_straight(view, found, lines, noise) for found in straight if found.is_readable)
    searched = False
    readable = noise.repeatable or noise.sigma < _READABLE_NOISE or _spans_magnitudes(lines.answers)
    if not stays and not region.has_box and readable:
        moderate = _measure_moderate(view, straight, lines, rng, size)
        if moderate is not None:
            view, noise, lines = moderate
            straight, stays, searched = _straight(lines, noise), True, True
    if known is None and not stays and size.searches:
        searched = not _fits(view, lines, noise, size.slope_points)
    if searched and not stays:
        scattered = _scatters(noise)
        sigma = _EPS * noise.scale if scattered else noise.sigma_per_output
        found = find_region(queries, sigma, rng)
        if found is not None:
            measured = _measure(queries, found, rng, None, size)
            clearer = not scattered or measured[1].relative < _BETTER_REGION_SHARE * noise.relative
            if clearer and not _is_frozen(measured[2], measured[1], lines, noise):
                view, noise, lines = measured
                straight = _straight(lines, noise)
    links = _links(lines, noise)
    evidence = look_for_kinks(lines, noise)
    for name in links if not evidence.kinks else ():
        behind = look_for_kinks_behind(Link(name), lines, noise)
        if behind.kinks:  # straight pieces, which no other link would leave straight
            evidence, links = behind, (name,)
    labels = count_labels(view, lines, noise)
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
        straight_links=tuple(found.link.name for found in straight if found.straight and found.is_readable),
        flat=is_piecewise_constant(lines, noise) and not is_constant(lines, noise),
    )


def _in_steps(view: NormalisedQueries, lines: Lines, noise: Noise, examples: Any, queries: int) -> Findings:
    """Return findings of a target that answers in steps: its answers are as precise as their numbers are."""
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
        region=view.region,
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


def look_at_samples(samples: Samples) -> Findings:
    """Return the scales of inputs and outputs and the precision of the answers; kinks are left open."""
    x, y = samples.x, samples.y
    told = _out_of_range(y)
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


def _out_of_range(answers: Array) -> str:
    """Say what is wrong with answers whose squares float64 cannot hold; nothing of others."""
    size = float(np.abs(answers).max(initial=0.0))
    if size == 0 or _LEAST_ANSWER <= size <= _LARGEST_ANSWER:
        return ""
    return (
        f"must be between {_LEAST_ANSWER:g} and {_LARGEST_ANSWER:g} in size. Got {size:.2g} instead. "
        f"{'Multiply' if size < 1 else 'Divide'} them by a power of ten first."
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
) -> tuple[NormalisedQueries, Noise, Lines]:
    """Estimate the noise in ``region`` and ask the lines there."""
    view = NormalisedQueries(queries, region)
    noise = estimate_noise(view, rng, size.noise)
    centers = None
    if examples is not None:
        rows = np.asarray(examples, dtype=np.float64)
        centers = region.to_normalised(rows[rng.integers(0, rows.shape[0], size.lines)])
    return view, noise, ask_lines(view, size.lines, rng, centers)


def _links(lines: Lines, noise: Noise) -> tuple[str, ...]:
    """Return the output activations whose range holds all answers on the lines."""
    eps = float(np.finfo(np.float32).eps) if noise.kind == "float32" else _EPS
    return possible_links(lines.answers, noise.sigma, noisy=noise.kind == "noisy", eps=eps)


def _straight(lines: Lines, noise: Noise) -> list[StraightLines]:
    """Read z on the lines behind every link that the range of the answers allows and no line contradicts."""
    links = _links(lines, noise)
    if "identity" in links and (lines.answers >= -_NOT_NEGATIVE_SIGMAS * noise.edge_sigma).all():
        links = (*links, "exp")
    clear = noise.relative < _LABEL_LIKE and not is_constant(lines, noise)
    straight_itself = clear and is_linear(lines, noise)
    links = tuple(name for name in links if name != "identity" or straight_itself)
    return [found for found in (read_lines(Link(name), lines, noise) for name in links) if found.straight]


def _measure_moderate(
    view: NormalisedQueries,
    straight: list[StraightLines],
    lines: Lines,
    rng: np.random.Generator,
    size: LookSize,
) -> tuple[NormalisedQueries, Noise, Lines] | None:
    """Look again where a link is not saturated; None unless the lines are straight behind it there."""
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
        read = read_lines(link, measured[2], measured[1])
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


def _scatters(noise: Noise) -> bool:
    """Whether answers that repeat exactly look like noise: perhaps the target lives on a finer scale."""
    return noise.kind == "noisy" and noise.repeatable and noise.relative > _ROUGH_AS_NOISE


def _is_frozen(found: Lines, found_noise: Noise, lines: Lines, noise: Noise) -> bool:
    """Whether answers of a region that was found say less than ``lines`` did: units are saturated there.

    All equal, or so few different ones that the grid they were rounded to is not to be seen any more.
    """
    if is_constant(lines, noise):
        return False
    return is_constant(found, found_noise) or (noise.kind == "rounded" and found_noise.kind != "rounded")


def _fits(view: NormalisedQueries, lines: Lines, noise: Noise, slope_points: int) -> bool:
    """Whether the standard region is one: the target moves, bends, and all features matter alike.

    The latter is seen at ``slope_points``; where there are none it is taken for granted.
    """
    if is_constant(lines, noise) or _scatters(noise):
        return False
    if noise.relative > _BLIND_SLOPE_NOISE:
        return True  # answers as coarse as this would not carry a search either
    frozen = slope_share(lines) < _LEAST_SLOPE_SHARE or roughness(lines, noise) > _MOST_ROUGHNESS
    if frozen or bending(lines) < _LEAST_BENDING:
        return False
    slopes = _feature_slopes(view, lines, noise, slope_points) if slope_points else np.empty(0)
    if slopes.size < 2:
        return True
    few = _FEW_FEATURES * slopes.size
    ordered = np.sort(slopes)[int(few) : slopes.size - int(few)]
    ratio = ordered[-1] / ordered[0]
    typical = np.quantile(slopes, 0.9) / np.quantile(slopes, 0.1)
    return bool(ratio <= _SLOPE_RATIO_EXTREMES * _ONE_SCALE_SLOPE_RATIO and typical <= _ONE_SCALE_SLOPE_RATIO)


def _feature_slopes(view: NormalisedQueries, lines: Lines, noise: Noise, points: int) -> Array:
    """Return the root mean square slopes of the features that have an effect, over a few points."""
    centers, values = lines.centers[:points], lines.center[:points]
    step = float(np.clip(np.sqrt(noise.relative), 1e-6, 0.1))  # balances noise against bending
    n_inputs = view.n_inputs
    if one_call_is_enough(n_inputs):
        moved = centers[:, None, :] + step * np.eye(n_inputs)
        answers = view(moved.reshape(-1, n_inputs)).reshape(centers.shape[0], n_inputs, -1)
    else:  # some of so many features tell how alike they are
        axes = np.linspace(0, n_inputs - 1, _MOST_FEATURES).astype(np.int64)
        steps = np.full(len(axes), step)
        answers = np.stack([answers_along_axes(view, center, steps, axes)[0] for center in centers])
    change = (answers - values[:, None, :]) / noise.sigma_per_output  # in units of the noise
    slopes = np.sqrt(np.mean(change**2, axis=(0, 2)))
    return np.asarray(slopes[slopes > 4.0])  # an unused feature shows noise only: sqrt(2) in these units


def _spread(lines: Lines) -> Array:
    """Return the standard deviation of each output over the centers and the ends of the lines. Shape (m,)."""
    at = -2  # the last step but one: as far as typical points of the region are apart
    rows = np.concatenate([lines.center, lines.plus[:, at], lines.minus[:, at]])
    spread: Array = np.where(np.ptp(rows, axis=0) > 0, rows.std(axis=0), 0.0)
    return spread
