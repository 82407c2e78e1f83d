"""Write formulas as MathML: the site then needs no script and nothing from another host."""

from __future__ import annotations

import re

from docutils import nodes
from latex2mathml.converter import convert
from sphinx.application import Sphinx
from sphinx.util.typing import ExtensionMetadata
from sphinx.writers.html5 import HTML5Translator

_PRIMED = re.compile(r"<msup>(<mi>[^<]*</mi>)<mi>(&#x0203[2-4];)</mi></msup>")


def _written(formula: str, display: str) -> str:
    """Return the formula; primes stand beside their letter, where fonts raise them already."""
    text: str = convert(formula, display=display)
    return _PRIMED.sub(r'<mrow>\1<mo lspace="0" rspace="0">\2</mo></mrow>', text)


def _inline(self: HTML5Translator, node: nodes.math) -> None:
    self.body.append(_written(node.astext(), "inline"))
    raise nodes.SkipNode


def _block(self: HTML5Translator, node: nodes.math_block) -> None:
    self.body.append(f'<div class="math">{_written(node.astext(), "block")}</div>\n')
    raise nodes.SkipNode


def setup(app: Sphinx) -> ExtensionMetadata:
    """Register the renderer."""
    app.add_html_math_renderer("mathml", (_inline, None), (_block, None))
    app.config["html_math_renderer"] = "mathml"
    return {"parallel_read_safe": True, "parallel_write_safe": True}
