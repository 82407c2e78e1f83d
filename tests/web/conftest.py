"""One page for all tests of this folder that need none of their own, and a target that takes its time."""

from __future__ import annotations

from collections.abc import Iterator

import pytest
from served_page import KEY, TEACHER, Page

from unweave.serving import Faults, ReferenceServer
from unweave.serving.model import ServedModel


@pytest.fixture(scope="package")
def page(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Page]:
    """A page that takes files up to 1 MB."""
    with Page(tmp_path_factory.mktemp("runs"), "--max-upload-mb", 1) as served:
        yield served


@pytest.fixture(scope="package")
def locked(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Page]:
    """A page beyond loopback, with a key."""
    folder = tmp_path_factory.mktemp("locked")
    with Page(folder, "--host", "0.0.0.0", "--token-env", "PAGE_KEY", PAGE_KEY=KEY) as served:
        yield served


@pytest.fixture(scope="package")
def slow_target() -> Iterator[ReferenceServer]:
    """The teacher behind HTTP, every request answered late: a recovery takes several seconds."""
    faults = Faults(delay=1.0, delay_seconds=0.25)
    with ReferenceServer(ServedModel(TEACHER, TEACHER.n_inputs, TEACHER.n_outputs), faults=faults) as server:
        yield server
