"""The sources' algorithms as printed."""

from typing import TYPE_CHECKING

if TYPE_CHECKING:  # folders, which are loaded when they are imported
    from unweave.published import deep as deep
    from unweave.published import relu as relu
    from unweave.published import shallow as shallow

__all__ = ["deep", "relu", "shallow"]
