"""Every kind of report, made once for all tests of this folder."""

from __future__ import annotations

from collections.abc import Callable

import pytest
from reading_reports import KINDS

import unweave
from unweave.report import report_html


@pytest.fixture(scope="package")
def recovery_of() -> Callable[[str], unweave.Recovery]:
    """Kind -> recovery, run when it is first asked for."""
    kept: dict[str, unweave.Recovery] = {}

    def find(kind: str) -> unweave.Recovery:
        if kind not in kept:
            kept[kind] = KINDS[kind]()
        return kept[kind]

    return find


@pytest.fixture(scope="package")
def page_of(recovery_of: Callable[[str], unweave.Recovery]) -> Callable[[str], str]:
    """Kind -> HTML."""
    kept: dict[str, str] = {}

    def find(kind: str) -> str:
        if kind not in kept:
            kept[kind] = report_html(recovery_of(kind))
        return kept[kind]

    return find
