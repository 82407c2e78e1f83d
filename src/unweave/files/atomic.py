"""Write a file whole or not at all."""

from __future__ import annotations

import contextlib
import errno
import os
import secrets
import shutil
import stat
from collections.abc import Callable
from pathlib import Path
from typing import BinaryIO, NoReturn

from unweave.errors import InvalidInput


def write_atomically(path: Path, write: Callable[[BinaryIO], object]) -> None:
    """Let ``write`` fill a file beside ``path`` and put it in its place once all of it is on the disk.

    Whoever opens ``path`` finds the old content or the new one, whatever happens in between: an error of
    ``write`` or of the disk removes the unfinished file, a killed process leaves it under a name that starts
    with a dot and ends in ``.tmp``. A symbolic link is followed; a replaced file's permissions are kept.

    Example:
        >>> import tempfile
        >>> place = Path(tempfile.mkdtemp()) / "greeting.txt"
        >>> write_atomically(place, lambda file: file.write(b"good morning"))
        >>> place.read_text()
        'good morning'
    """
    place = Path(os.path.realpath(path))
    replaced = place.exists()
    if replaced and not stat.S_ISREG(place.stat().st_mode):
        raise OSError(errno.EINVAL, "not a regular file")
    # os.open instead of tempfile: a new file gets the permissions that the user's umask gives any other.
    unfinished = place.with_name(f".{place.name}.{secrets.token_hex(8)}.tmp")
    descriptor = os.open(unfinished, os.O_CREAT | os.O_EXCL | os.O_WRONLY | getattr(os, "O_BINARY", 0), 0o666)
    try:
        with os.fdopen(descriptor, "wb") as file:
            write(file)
            file.flush()
            os.fsync(file.fileno())
        if replaced:
            shutil.copymode(place, unfinished)
        os.replace(unfinished, place)
    except BaseException:
        with contextlib.suppress(OSError):
            unfinished.unlink()
        raise


def write_file(path: Path, content: bytes) -> None:
    """Write ``content`` as `write_atomically` does; what keeps it from the disk is `InvalidInput`."""
    try:
        write_atomically(path, lambda file: file.write(content))
    except OSError as error:
        _cannot_write(path, len(content), error)


def _cannot_write(path: Path, size: int, error: OSError) -> NoReturn:
    why = error.strerror or str(error)
    if error.errno in (errno.ENOSPC, errno.EDQUOT):
        raise InvalidInput(
            f"path must be on a disk with room for {size:,} bytes. Got {str(path)!r} instead ({why}). "
            f"Free some space or write elsewhere; a file that was there before is unchanged."
        ) from error
    raise InvalidInput(
        f"path must be a file that can be written. Got {str(path)!r} instead ({why}). "
        f"Check that the folder exists and may be written to."
    ) from error
