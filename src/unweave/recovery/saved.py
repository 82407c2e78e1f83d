"""A `Recovery` in an .npz file: a header in JSON, the networks and the measured arrays.

A file may be cut, mixed up or written by somebody else. So every value is held against the type of the field
that it fills, and whatever does not fit is one `InvalidInput` that names the file.
"""

from __future__ import annotations

import io
import json
from dataclasses import asdict, fields
from pathlib import Path
from typing import Any, get_type_hints

import numpy as np

from unweave.errors import InvalidInput
from unweave.files import model_from_arrays, network_arrays, network_from_arrays, read_archive, write_file
from unweave.files.typed_values import Misfit, built, typed
from unweave.networks.network import Network
from unweave.recovery.result import Certificate, Recovery, Status
from unweave.search import Check, Evidence, LayerEvidence, Stage

_FORMAT = "unweave-recovery"
_VERSION = 2
_EVIDENCE = "evidence_"
_KNOWN = "known_"
_ERRORS = "standard_errors_"
_PLAIN = ("error", "message", "queries", "probing_queries", "verification_queries", "seconds")


def write_recovery(recovery: Recovery, path: Path) -> None:
    """Write ``recovery`` to ``path``, whole or not at all."""
    if path.suffix != ".npz":
        raise InvalidInput(f"path must end in .npz. Got {str(path)!r} instead.")
    exact: dict[str, Any] = {
        "status": recovery.status.name,
        **{name: getattr(recovery, name) for name in _PLAIN},
        "notes": list(recovery.notes),
        "settings": recovery.settings,
        "stages": [asdict(stage) for stage in recovery.stages],
        "checks": [asdict(check) for check in recovery.certificate.checks],
    }
    arrays: dict[str, Any] = {}
    networks = {"": recovery.network, _KNOWN: recovery.known_layers, _ERRORS: recovery.standard_errors}
    for start, kept in networks.items():
        if kept is not None:
            held = network_arrays(kept) if isinstance(kept, Network) else kept.arrays()
            arrays |= {start + key: value for key, value in held.items()}
    exact["evidence"], exact["evidence_kind"] = {}, type(recovery.evidence).__name__
    for entry in fields(recovery.evidence):
        value = getattr(recovery.evidence, entry.name)
        if isinstance(value, np.ndarray):
            arrays[_EVIDENCE + entry.name] = value
        elif entry.name == "layers":
            exact["evidence"]["layers"] = [asdict(layer) for layer in value]
        else:
            exact["evidence"][entry.name] = value
    header = json.dumps({"format": _FORMAT, "version": _VERSION, **exact}, default=float)
    content = io.BytesIO()
    np.savez(content, recovery=np.array(header), **arrays)
    write_file(path, content.getvalue())


def read_recovery(path: Path) -> Recovery:
    """Return the result that `write_recovery` has written."""
    if not path.is_file():
        raise InvalidInput(f"path must be an existing file. Got {str(path)!r} instead.")
    content = read_archive(path)
    if "recovery" not in content:
        raise InvalidInput(f"path must hold a saved recovery. Got {str(path)!r} instead, which does not.")
    try:
        header = typed(json.loads(str(content["recovery"])), dict[str, Any], "the header")
        if header.get("format") != _FORMAT or header.get("version") != _VERSION:
            raise InvalidInput(f"{str(path)!r} must be a recovery of version {_VERSION}.")
        return _restored(path, header, content)
    except (ValueError, KeyError, RecursionError) as error:
        if isinstance(error, InvalidInput) and not isinstance(error, Misfit):
            raise
        why = f"{error} is missing" if isinstance(error, KeyError) else str(error)
        raise InvalidInput(
            f"path must hold a recovery as it was saved. Got {str(path)!r} instead, which is damaged "
            f"({why}). Save it again, or recover the network again."
        ) from error


def _restored(path: Path, header: dict[str, Any], content: dict[str, Any]) -> Recovery:
    kinds, statuses = _evidence_kinds(), Status.__members__
    kind = kinds.get(header["evidence_kind"]) if isinstance(header["evidence_kind"], str) else None
    if kind is None:
        raise Misfit(
            f"the evidence must be one of {', '.join(kinds)}. Got {header['evidence_kind']!r} instead"
        )
    if header["status"] not in list(statuses):
        raise Misfit(f"the status must be one of {', '.join(statuses)}. Got {header['status']!r} instead")
    plain = {**typed(header["evidence"], dict[str, Any], "evidence"), **_named(content, _EVIDENCE)}
    plain["layers"] = tuple(built(LayerEvidence, entry) for entry in _entries(plain, "layers"))
    plain["fit_history"] = tuple(_entries(plain, "fit_history"))
    hints = get_type_hints(Recovery)
    given = {name: typed(header[name], hints[name], name) for name in _PLAIN}
    return Recovery(
        network=_network(path, content, ""),
        status=statuses[header["status"]],
        **given,
        stages=tuple(built(Stage, entry) for entry in _entries(header, "stages")),
        certificate=Certificate(tuple(built(Check, entry) for entry in _entries(header, "checks"))),
        notes=tuple(typed(header["notes"], list[str], "notes")),
        evidence=built(kind, plain),
        known_layers=_network(path, content, _KNOWN),
        standard_errors=_network(path, content, _ERRORS),
        settings=typed(header.get("settings", {}), dict[str, Any], "settings"),
    )


def _evidence_kinds() -> dict[str, type[Evidence]]:
    from unweave.methods.table import METHODS  # every method may bring a class of its own

    kinds: list[type[Evidence]] = [Evidence, *(method.evidence for method in METHODS)]
    return {kind.__name__: kind for kind in kinds}


def _network(path: Path, content: dict[str, Any], start: str) -> Any:
    arrays = _named(content, start)
    if "format" in arrays and "weight_0" not in arrays:
        return model_from_arrays(path, arrays)
    return network_from_arrays(path, arrays) if "weight_0" in arrays else None


def _named(content: dict[str, Any], start: str) -> dict[str, Any]:
    """The entries whose names begin with ``start``, without it."""
    return {key.removeprefix(start): value for key, value in content.items() if key.startswith(start)}


def _entries(content: dict[str, Any], name: str) -> list[Any]:
    entries: list[Any] = typed(content.get(name, []), list[Any], name)
    return entries
