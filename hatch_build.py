"""Metadata that depends on where the repository lives: the long description and the links of the package.

A package index shows the README without the repository around it, so that relative links and pictures lead
nowhere there. With UNWEAVE_REPOSITORY set to the address of the repository (a release sets it, see
docs/releasing.md), they become absolute and the package names its links. Without it, pictures are left out
and relative links become plain text.
"""

from __future__ import annotations

import os
import re
from pathlib import Path
from typing import Any

from hatchling.metadata.plugin.interface import MetadataHookInterface

_PICTURE = re.compile(r"!\[([^\]]*)\]\(([^)\s]+)\)")
_LINK = re.compile(r"(?<!!)\[([^\]]+)\]\((?!https?://|#)([^)\s]+)\)")


def description(readme: str, repository: str | None) -> str:
    """Return the README as a package index should show it."""
    if repository is None:
        return _LINK.sub(r"\1", re.sub(r"\n{3,}", "\n\n", _PICTURE.sub("", readme)))
    base = repository.rstrip("/")
    readme = _PICTURE.sub(rf"![\1]({base}/raw/main/\2)", readme)
    return _LINK.sub(rf"[\1]({base}/blob/main/\2)", readme)


def links(repository: str | None) -> dict[str, str]:
    """Return the links of the package, none if the repository is not named."""
    if repository is None:
        return {}
    base = repository.rstrip("/")
    return {
        "Source": base,
        "Issues": f"{base}/issues",
        "Changelog": f"{base}/blob/main/CHANGELOG.md",
        "Documentation": os.environ.get("UNWEAVE_DOCUMENTATION", f"{base}/blob/main/docs/index.md"),
    }


class CustomMetadataHook(MetadataHookInterface):
    """Called by hatchling for every build and installation."""

    def update(self, metadata: dict[str, Any]) -> None:
        """Fill in what pyproject.toml calls dynamic."""
        repository = os.environ.get("UNWEAVE_REPOSITORY")
        text = (Path(self.root) / "README.md").read_text(encoding="utf-8")
        metadata["readme"] = {"content-type": "text/markdown", "text": description(text, repository)}
        metadata["urls"] = links(repository)
