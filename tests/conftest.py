"""What several test files share: targets that watch what they are asked."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import Any

import numpy as np
import pytest

from browsing import find_browser, open_browser
from durations import long_tests
from unweave.networks.activations import registry


@pytest.hookimpl(tryfirst=True)
def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    """Mark the cases that `durations` lists."""
    listed = long_tests()
    for item in items:
        module = item.nodeid.partition("::")[0].removesuffix(".py").replace("/", ".")
        owner = getattr(item, "cls", None)
        place = module if owner is None else f"{module}.{owner.__name__}"
        if f"{place.removeprefix('tests.')}::{item.name}" in listed:
            item.add_marker("long")


class Recorder:
    """A target that only answers, and keeps every row that it was asked."""

    def __init__(self, function: Callable[[np.ndarray], Any]) -> None:
        self._function = function
        self._asked: list[np.ndarray] = []

    def __call__(self, x: np.ndarray) -> Any:
        self._asked.append(np.array(x))
        return self._function(x)

    @property
    def rows(self) -> np.ndarray:
        """(n, D) everything asked so far."""
        return np.concatenate(self._asked) if self._asked else np.empty((0, 0))


@pytest.fixture(autouse=True)
def activations_of_one_test() -> Iterator[None]:
    """Forget the activations that a test, or an example it runs, has registered."""
    before = dict(registry._REGISTERED)
    yield
    registry._REGISTERED.clear()
    registry._REGISTERED.update(before)


@pytest.fixture
def recorder() -> type[Recorder]:
    return Recorder


@pytest.fixture(scope="session")
def browser(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Any]:
    """A headless Chromium, started when the first test asks for it; see `browsing`."""
    if find_browser() is None:
        pytest.fail("chromium and chromedriver must be on the path: run make browser")
    with open_browser(tmp_path_factory.mktemp("browser")) as driver:
        yield driver
