"""Messages say what was received only where something was."""

from __future__ import annotations

import ast
import re
from collections.abc import Iterator
from pathlib import Path

import pytest

SOURCE = Path(__file__).resolve().parents[1] / "src" / "unweave"
NOTHING_RECEIVED = re.compile(r"Got (none|None|no|nothing|neither|others|something else)\b[^.]*\binstead")


def texts(tree: ast.AST) -> Iterator[str]:
    """Yield the strings of a module; what an f-string computes is left out."""
    for node in ast.walk(tree):
        if isinstance(node, ast.JoinedStr):
            yield "".join(str(part.value) for part in node.values if isinstance(part, ast.Constant))
        elif isinstance(node, ast.Constant) and isinstance(node.value, str):
            yield node.value


@pytest.mark.parametrize("room", sorted(path.name for path in SOURCE.iterdir() if path.name[0] != "_"))
def test_no_message_calls_an_absence_something_received(room: str) -> None:
    place = SOURCE / room
    paths = [place] if place.suffix == ".py" else sorted(place.rglob("*.py"))
    found = [
        (path.name, text)
        for path in paths
        for text in texts(ast.parse(path.read_text(encoding="utf-8")))
        if NOTHING_RECEIVED.search(text)
    ]
    assert found == []


def test_the_rule_sees_such_a_message() -> None:
    (told,) = [
        text
        for text in texts(ast.parse('f"x must be given. Got none for {x} instead."'))
        if "must" in text and "instead" in text
    ]
    assert NOTHING_RECEIVED.search(told)
