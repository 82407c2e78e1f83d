"""Networks as JSON text: for reading by eye and by other languages, exact all the same."""

from __future__ import annotations

import json
from pathlib import Path

from unweave.files.contents import FORMAT, VERSION, build_network, check_header, not_a_network
from unweave.networks.network import Network


def encode_json(network: Network, dtype: str) -> bytes:
    """Return the text of a .json file; ``network`` is already rounded to ``dtype``, which is not recorded."""
    content = {
        "format": FORMAT,
        "version": VERSION,
        "activations": list(network.activations),
        "weights": [w.tolist() for w in network.weights],
        "biases": [b.tolist() for b in network.biases],
        "skip": None if network.skip is None else network.skip.tolist(),
    }
    # json writes the shortest decimal that reads back as the same float64.
    return (json.dumps(content, allow_nan=False) + "\n").encode("utf-8")


def read_json(path: Path) -> Network:
    """Return the network in a .json file."""
    try:
        content = json.loads(path.read_text(encoding="utf-8"))
    except (OSError, ValueError, RecursionError) as error:
        not_a_network(path, f"not readable as JSON: {error}", error)
    if not isinstance(content, dict):
        not_a_network(path, f"a JSON {type(content).__name__}, not an object")
    check_header(path, content.get("format"), content.get("version"))
    return build_network(path, content)
