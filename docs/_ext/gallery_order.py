"""Show first in the gallery what `unweave.recover` does."""

from __future__ import annotations


class RecoverFirst:
    """Key that sorts the files of the gallery."""

    def __init__(self, folder: str) -> None:
        """Take the folder of the examples, which Sphinx-Gallery gives."""

    def __call__(self, name: str) -> tuple[bool, str]:
        """Return the key of a file."""
        return not name.startswith(("plot_recover", "linear")), name

    def __repr__(self) -> str:
        return "<RecoverFirst>"  # the same for every build, so that nothing is built again
