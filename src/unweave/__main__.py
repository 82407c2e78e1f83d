"""``python -m unweave``: the command line."""

from __future__ import annotations

from unweave.cli import main

if __name__ == "__main__":
    main()
