"""Numbers stand in the open: what decides what is found is an option; what stays private says why."""

from __future__ import annotations

import ast
import inspect
from collections import Counter
from collections.abc import Iterator
from dataclasses import fields, is_dataclass
from pathlib import Path
from typing import NamedTuple

import pytest

import unweave
from unweave.methods.table import METHODS

FLOOR = Path(unweave.__file__).parent / "methods"
MOST_NUMBERS = 100
"""Module-level numbers on the whole floor of methods."""


class Number(NamedTuple):
    name: str
    path: Path
    explained: bool


def _is_number(node: ast.expr) -> bool:
    if isinstance(node, ast.Constant):
        return isinstance(node.value, int | float) and not isinstance(node.value, bool)
    if isinstance(node, ast.UnaryOp):
        return _is_number(node.operand)
    if isinstance(node, ast.BinOp):
        return _is_number(node.left) and _is_number(node.right)
    if isinstance(node, ast.Tuple | ast.List):
        return bool(node.elts) and all(_is_number(each) for each in node.elts)
    return isinstance(node, ast.Dict) and bool(node.values) and all(_is_number(each) for each in node.values)


def numbers() -> Iterator[Number]:
    for path in sorted(FLOOR.rglob("*.py")):
        text = path.read_text(encoding="utf-8")
        lines, body = text.splitlines(), ast.parse(text).body
        for node, after in zip(body, [*body[1:], None], strict=True):
            target = node.targets[0] if isinstance(node, ast.Assign) else getattr(node, "target", None)
            value = getattr(node, "value", None)
            if not isinstance(node, ast.Assign | ast.AnnAssign) or value is None or not _is_number(value):
                continue
            documented = isinstance(after, ast.Expr) and isinstance(after.value, ast.Constant)
            commented = "#" in "".join(lines[node.lineno - 1 : node.end_lineno])
            names = target.elts if isinstance(target, ast.Tuple) else [target]
            yield from (Number(ast.unparse(name), path, documented or commented) for name in names)


def test_private_numbers_of_methods_are_few_and_say_why() -> None:
    found = list(numbers())
    assert len(found) <= MOST_NUMBERS
    assert [number for number in found if not number.explained] == []


def test_no_name_stands_for_two_numbers() -> None:
    counts = Counter(number.name for number in numbers())
    assert {name: count for name, count in counts.items() if count > 1} == {}


@pytest.mark.parametrize("method", METHODS, ids=lambda method: method.name)
def test_every_option_of_a_method_is_documented(method) -> None:
    pending = [] if method.options() is None else [method.options()]
    while pending:
        options = pending.pop()
        source = ast.parse(Path(inspect.getfile(type(options))).read_text(encoding="utf-8"))
        classes = {node.name: node for node in source.body if isinstance(node, ast.ClassDef)}
        documented = _documented(classes[type(options).__name__])
        own = inspect.get_annotations(type(options))
        nested = {each.name for each in fields(options) if is_dataclass(getattr(options, each.name))}
        assert set(own) - documented - nested == set(), type(options)
        pending += [getattr(options, name) for name in nested]


def _documented(node: ast.ClassDef) -> set[str]:
    pairs = zip(node.body, node.body[1:], strict=False)
    return {
        ast.unparse(first.target)
        for first, second in pairs
        if isinstance(first, ast.AnnAssign)
        and isinstance(second, ast.Expr)
        and isinstance(second.value, ast.Constant)
    }
