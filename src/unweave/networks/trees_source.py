"""The source of a Python function that answers as a sum of trees does."""

from __future__ import annotations

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from unweave.networks.trees import TreeEnsemble

_OUTPUTS = {
    "identity": "total",
    "sigmoid": "[1 / (1 + math.exp(-z)) if z > -700 else math.exp(z) for z in total]",
    "tanh": "[math.tanh(z) for z in total]",
    "exp": "[math.exp(z) for z in total]",
    "softmax": "[math.exp(z - max(total)) / sum(math.exp(t - max(total)) for t in total) for z in total]",
}


def python_source(trees: TreeEnsemble, name: str) -> str:
    """Return the text of a function ``name`` of one row, a sequence of ``trees.n_inputs`` numbers."""
    tables = trees.arrays()
    nodes = [
        f"    ({int(f)}, {float(t)!r}, {int(a)}, {int(b)}, {tuple(map(float, v))!r}),"
        for f, t, a, b, v in zip(
            *(tables[key] for key in ("feature", "threshold", "left", "right", "value")), strict=True
        )
    ]
    names = "" if trees.input_names is None else f"INPUTS = {list(trees.input_names)!r}\n"
    return "\n".join(
        [
            f'"""{trees.describe()}."""',
            "",
            "import math",
            "",
            f"{names}ROOTS = {trees.roots.tolist()!r}",
            "NODES = [  # input (-1: leaf), threshold, node if x <= threshold, node if not, leaf's value",
            *nodes,
            "]",
            "",
            "",
            f"def {name}(x):",
            f"    total = [0.0] * {trees.n_outputs}",
            "    for node in ROOTS:",
            "        feature, threshold, left, right, value = NODES[node]",
            "        while feature >= 0:",
            "            node = left if x[feature] <= threshold else right",
            "            feature, threshold, left, right, value = NODES[node]",
            "        total = [a + b for a, b in zip(total, value)]",
            f"    return {_OUTPUTS[trees.output]}",
            "",
        ]
    )
