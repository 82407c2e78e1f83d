"""Networks as NumPy archives, without pickle."""

from __future__ import annotations

import io
import zipfile
from pathlib import Path
from typing import Any

import numpy as np

from unweave.errors import InvalidInput
from unweave.files.contents import network_arrays, network_from_arrays, not_a_network
from unweave.networks.network import Network


def encode_npz(network: Network, dtype: str) -> bytes:
    """Return the bytes of an .npz archive with the arrays of `network_arrays`."""
    buffer = io.BytesIO()
    np.savez(buffer, **network_arrays(network, dtype))
    return buffer.getvalue()


def read_archive(path: Path) -> dict[str, Any]:
    """Return all arrays of an .npz archive, without pickle; `InvalidInput` if it is none."""
    try:
        with path.open("rb") as file:
            archive = np.load(file, allow_pickle=False)
            if not isinstance(archive, np.lib.npyio.NpzFile):
                not_a_network(path, "a single array, not an archive")
            return {key: archive[key] for key in archive.files}
    except InvalidInput:
        raise
    except (OSError, ValueError, EOFError, KeyError, zipfile.BadZipFile) as error:
        not_a_network(path, f"not readable as an .npz archive: {error}", error)


def read_npz(path: Path) -> Network:
    """Return the network in an .npz archive."""
    return network_from_arrays(path, read_archive(path))
