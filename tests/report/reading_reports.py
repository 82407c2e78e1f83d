"""Reports for tests, and a reader that takes a page apart as a program would."""

from __future__ import annotations

import functools
from dataclasses import dataclass, field
from html.parser import HTMLParser
from typing import Any

import numpy as np

import unweave
from unweave.methods.smooth_values.search import SmoothValuesOptions

VOID = {"meta", "br", "img", "hr", "link", "input"}


@dataclass
class Node:
    tag: str
    attributes: dict[str, str]
    children: list[Any] = field(default_factory=list)

    def text(self, without: tuple[str, ...] = (), without_classes: tuple[str, ...] = ()) -> str:
        """All text inside, but for what is in some kinds of elements."""
        if self.tag in without or set(self.attributes.get("class", "").split()) & set(without_classes):
            return ""
        parts = (
            child if isinstance(child, str) else child.text(without, without_classes)
            for child in self.children
        )
        return " ".join(parts)

    def all(self, *tags: str) -> list[Node]:
        """Elements of these kinds, in the order of the page; all of them without arguments."""
        found = [self] if not tags or self.tag in tags else []
        for child in self.children:
            if isinstance(child, Node):
                found += child.all(*tags)
        return found


class _Builder(HTMLParser):
    def __init__(self) -> None:
        super().__init__(convert_charrefs=True)
        self.root = Node("root", {})
        self._open = [self.root]

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        node = Node(tag, {name: value or "" for name, value in attrs})
        self._open[-1].children.append(node)
        if tag not in VOID:
            self._open.append(node)

    def handle_startendtag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        self._open[-1].children.append(Node(tag, {name: value or "" for name, value in attrs}))

    def handle_endtag(self, tag: str) -> None:
        assert self._open[-1].tag == tag, f"</{tag}> closes <{self._open[-1].tag}>"
        self._open.pop()

    def handle_data(self, data: str) -> None:
        self._open[-1].children.append(data)


@functools.lru_cache(maxsize=16)
def parsed(html: str) -> Node:
    """The page as a tree; every element must be closed where it was opened."""
    builder = _Builder()
    builder.feed(html)
    builder.close()
    assert builder._open == [builder.root]
    return builder.root


def at_pointer(content: Any, pointer: str) -> Any:
    """What RFC 6901 finds at ``pointer``, written down once more for the tests."""
    for part in pointer.split("/")[1:]:
        key = part.replace("~1", "/").replace("~0", "~")
        content = content[int(key)] if isinstance(content, list) else content[key]
    return content


def shallow() -> unweave.Recovery:
    net = unweave.random_network([5, 8, 1], seed=1001, outer="normal")
    return unweave.recover(net, activation="tanh")


def deep() -> unweave.Recovery:
    net = unweave.random_network([8, 5, 3, 1], seed=1002, outer="normal", norms=(0.6, 1.6))
    return unweave.recover(net, hidden=[5, 3], method="smooth_deep")


def relu() -> unweave.Recovery:
    return unweave.recover(unweave.random_network([6, 8, 2], "relu", seed=1003, outer="normal"))


def samples() -> unweave.Recovery:
    net = unweave.random_network([4, 3, 1], activation="relu", seed=1001, outer="signed")
    x = np.random.default_rng(1007).standard_normal((400, 4))
    return unweave.recover(unweave.Samples(x, net(x)), hidden=[3], activation="relu")


def rounded() -> unweave.Recovery:
    net = unweave.random_network([5, 4, 1], seed=1004, outer="normal")
    return unweave.recover(lambda x: np.round(net(x), 3), input_dim=5, activation="tanh")


def noisy() -> unweave.Recovery:
    net = unweave.random_network([4, 3, 1], seed=1001, outer="normal")
    rng = np.random.default_rng(1004)
    return unweave.recover(
        lambda x: net(x) + 0.02 * rng.standard_normal((len(x), 1)),
        input_dim=4,
        hidden=[3],
        activation="tanh",
    )


def failed() -> unweave.Recovery:
    return unweave.recover(
        lambda x: np.sin(x[:, 0] * x[:, 1]) + x[:, 2] ** 3,
        input_dim=3,
        activation="tanh",
        options=SmoothValuesOptions(work=0.3),
    )


def out_of_budget() -> unweave.Recovery:
    return unweave.recover(unweave.random_network([12, 30, 1], seed=1000, outer="normal"), max_queries=900)


_EVERY = (shallow, deep, relu, samples, rounded, noisy, failed, out_of_budget)
KINDS = {function.__name__: function for function in _EVERY}
