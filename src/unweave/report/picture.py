"""From a drawing to inline SVG: one look for all pictures, the same bytes every time, nothing to fetch.

Legible without colour (markers, line styles, hatching; one dark ink, contrast above 7) and in print. Text
stays text. Identifiers differ from picture to picture, so that many fit on one page.
"""

from __future__ import annotations

import io
import re
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import matplotlib
import numpy as np
from markupsafe import Markup, escape
from matplotlib.axis import Axis
from matplotlib.figure import Figure
from matplotlib.ticker import FuncFormatter, LogLocator, MaxNLocator, NullLocator

from unweave.arrays import Array, IntArray

INK, ACCENT, QUIET = "#14374d", "#9c1c14", "#595959"
"""Dark blue, dark red and grey on white: contrasts of 12, 8 and 7."""
TEXT, PAPER = "#1a1a1a", "#ffffff"
SHADES = {INK: "ink", ACCENT: "accent", QUIET: "quiet", TEXT: "text", PAPER: "paper"}
"""Color of a drawing -> variable of the style sheet that takes its place; a dark page draws it dark."""
WIDE, NARROW = (9.4, 3.2), (4.6, 3.1)
"""Inches: the width of the page, and half of it."""
MOST_MARKERS = 300
"""Markers of one picture: more cannot be told apart, and would make the file large."""

_DECADES_FOR_POWERS = 2.5  # of a logarithmic axis, from which on powers of ten are ticks enough

_STYLE: Any = {
    "font.family": "sans-serif",
    "font.sans-serif": ["DejaVu Sans", "Verdana", "Arial", "Helvetica"],
    "font.size": 9.5,
    "axes.titlesize": 9.5,
    "axes.spines.top": False,
    "axes.spines.right": False,
    "axes.edgecolor": QUIET,
    "axes.labelcolor": TEXT,
    "text.color": TEXT,
    "xtick.color": TEXT,
    "ytick.color": TEXT,
    "axes.unicode_minus": True,
    "hatch.linewidth": 0.7,
    "legend.frameon": False,
    "lines.linewidth": 1.4,
    "lines.markersize": 4.0,
    "svg.fonttype": "none",
    "text.parse_math": False,  # names are the user's own, dollar signs included
    "svg.image_inline": True,
    "figure.facecolor": "white",
    "savefig.facecolor": "white",
}


@dataclass(frozen=True)
class Picture:
    """A drawing with its title, and a caption that says in words and numbers what it shows."""

    name: str
    title: str
    caption: Markup
    svg: Markup
    wide: bool = False


def draw(
    name: str, title: str, paint: Callable[[Figure], None], size: tuple[float, float] = NARROW
) -> Markup:
    """Let ``paint`` draw, and return the drawing as SVG that a screen reader announces by ``title``."""
    # hashsalt makes identifiers depend on name and content alone instead of on chance.
    with matplotlib.rc_context({**_STYLE, "svg.hashsalt": f"unweave-{name}"}):
        figure = Figure(figsize=size, layout="constrained")
        paint(figure)
        file = io.StringIO()
        figure.savefig(
            file, format="svg", metadata={"Date": None, "Creator": None, "Type": None, "Format": None}
        )
    return _inline(file.getvalue(), name, title)


def _inline(svg: str, name: str, title: str) -> Markup:
    """The drawing without what only a file of its own needs."""
    body = svg[svg.index("<svg") :]
    body = re.sub(r"<metadata>.*?</metadata>", "", body, flags=re.DOTALL)
    body = re.sub(r"<style[^>]*>.*?</style>", "", body, flags=re.DOTALL)  # the page says the same
    view = re.search(r'viewBox="[^"]*"', body)
    opening = (
        f'<svg class="picture" {view.group() if view else ""} role="img" aria-label="{escape(title)}" '
        f'aria-describedby="caption-{name}">'
    )
    body = opening + body[body.index(">") + 1 :]
    used = set(re.findall(r'(?:href="#|url\(#)([^")]+)', body))
    # Salted identifiers are unique; the others (axes_1, ...) repeat in every picture and nobody uses them.
    body = re.sub(r' id="([^"]*)"', lambda found: found.group() if found.group(1) in used else "", body)
    for color, shade in SHADES.items():
        body = body.replace(color, f"var(--{shade}, {color})")
    return Markup(re.sub(r"\n\s*", "\n", body))


_DARK = {"ink": "#93cdf0", "accent": "#f5a29b", "quiet": "#a7b3bd", "text": "#e6ecf1", "paper": "#182129"}


def svg_file(picture: Picture) -> str:
    """Return the drawing as a file of its own, which follows dark mode like the page around it."""
    dark = "; ".join(f"--{name}: {color}" for name, color in _DARK.items())
    style = (
        f"<style>@media (prefers-color-scheme: dark) {{ svg {{ {dark} }} }} "
        f"text {{ fill: var(--text, {TEXT}) }} * {{ stroke-linejoin: round; stroke-linecap: butt }}</style>"
    )
    body = str(picture.svg)
    names = 'xmlns="http://www.w3.org/2000/svg" xmlns:xlink="http://www.w3.org/1999/xlink"'
    end = body.index(">")
    return body[:end].replace("<svg ", f"<svg {names} ", 1) + ">" + style + body[end + 1 :]


def thinned(count: int, keep: tuple[int, ...] = (), most: int = MOST_MARKERS) -> IntArray:
    """Indices of about ``most`` of ``count`` points, evenly spaced, the ends and ``keep`` among them."""
    if count <= most:
        return np.arange(count, dtype=np.int64)
    even = np.linspace(0, count - 1, most).round().astype(np.int64)
    return np.unique(np.concatenate([even, [index for index in keep if 0 <= index < count]]).astype(np.int64))


def logarithmic(axis: Axis) -> None:
    """Ticks of a logarithmic axis, whose limits are set: a few, in plain text."""
    low, high = axis.get_view_interval()
    subs = (1.0,) if np.log10(high / low) >= _DECADES_FOR_POWERS else (1.0, 2.0, 5.0)
    axis.set_major_locator(LogLocator(subs=subs, numticks=7))
    axis.set_minor_locator(NullLocator())
    axis.set_major_formatter(FuncFormatter(lambda value, _: _plain_power(value)))


def _plain_power(value: float) -> str:
    """``1e-5``, ``0.001``, ``20``."""
    return f"{value:.3g}".replace("e-0", "e-").replace("e+0", "e")


def whole_numbers(axis: Axis, most: int = 7) -> None:
    """Ticks at whole numbers only."""
    axis.set_major_locator(MaxNLocator(integer=True, nbins=most, min_n_ticks=1))


def positive(values: Array) -> Array:
    """``values`` for a logarithmic axis: what is zero or below becomes a little less than the smallest."""
    finite = np.asarray(values, dtype=np.float64)
    above = finite[np.isfinite(finite) & (finite > 0)]
    least = float(above.min()) / 2 if len(above) else float(np.finfo(np.float64).eps)
    return np.where(finite > 0, finite, least)
