"""What a recovery gives back: network, status, error, cost, stages and certificate."""

from __future__ import annotations

import json
from dataclasses import asdict, dataclass, field, fields
from enum import Enum
from pathlib import Path
from typing import Any

import numpy as np

from unweave.errors import InvalidInput
from unweave.files import network_arrays, network_from_arrays, read_archive
from unweave.networks.network import Network
from unweave.recovery.describe import describe, evidence_figures, parameter_ranges
from unweave.search import Check, Evidence, Stage

_FORMAT = "unweave-recovery"
_VERSION = 2
_EVIDENCE = "evidence_"
_KNOWN = "known_"
_ERRORS = "standard_errors_"
_PLAIN = ("error", "message", "queries", "probing_queries", "verification_queries", "seconds")

FRESH_CHECKS = ("fresh error", "held-out error")
"""Names under which a certificate keeps the error on rows that nothing was fitted to."""


class Status(Enum):
    """The verdict on a recovery; ``str`` of it explains."""

    RECOVERED = "recovered: fresh answers agree to the target's precision, and nothing else fits"
    RECOVERED_UP_TO_AMBIGUITY = "recovered up to ambiguity: the same function, but other parameters fit too"
    APPROXIMATE = "approximate: not shown to agree with fresh answers to the target's precision"
    FAILED = "failed: no usable network"

    def __str__(self) -> str:
        return self.value

    @property
    def is_recovered(self) -> bool:
        """Whether the function is recovered, perhaps with parameters that are not unique."""
        return self in (Status.RECOVERED, Status.RECOVERED_UP_TO_AMBIGUITY)

    @property
    def rank(self) -> int:
        """Place among the statuses, the best first."""
        return list(Status).index(self)


@dataclass(frozen=True)
class Certificate:
    """Checked hypotheses and bounds behind a result."""

    checks: tuple[Check, ...] = ()

    def __getitem__(self, name: str) -> Check:
        return {check.name: check for check in reversed(self.checks)}[name]

    def __contains__(self, name: str) -> bool:
        return any(check.name == name for check in self.checks)

    def __iter__(self) -> Any:
        return iter(self.checks)

    def __len__(self) -> int:
        return len(self.checks)

    @property
    def holds(self) -> bool:
        """Whether every check that decides holds, and there is one: exactly then a network is recovered."""
        deciding = [check.holds for check in self.checks if check.decides]
        return bool(deciding) and all(deciding)

    def __str__(self) -> str:
        marks = {True: "ok  ", False: "NO  ", None: "    "}
        rows = []
        for check in self.checks:
            bound = "" if check.threshold is None else f" (against {check.threshold:.3g})"
            rows.append(f"{marks[check.holds]}{check.name}: {check.value:.3g}{bound} - {check.implies}")
        return "\n".join(rows)


@dataclass(frozen=True, eq=False)
class Recovery:
    """The result of `unweave.recover`."""

    network: Network | None
    """The best network found, in the target's own inputs; None if there is none."""
    status: Status
    error: float
    """Largest error on fresh queries relative to the largest answer; nan if it could not be measured."""
    message: str
    """What was found, in a sentence or two."""
    queries: int
    """Rows sent to the target, probing and verification included."""
    probing_queries: int
    verification_queries: int
    seconds: float
    stages: tuple[Stage, ...]
    certificate: Certificate
    notes: tuple[str, ...] = ()
    evidence: Evidence = field(default_factory=Evidence)
    """What was measured on the way: spectrum, misalignments, rates, convergence of the final fit."""
    known_layers: Network | None = None
    """Without a network: the first layers as far as they were found, from the inputs to hidden states."""
    standard_errors: Network | None = None
    """The standard error of every parameter, in the shapes of ``network``, where the answers are noisy."""
    settings: dict[str, Any] = field(default_factory=dict)
    """What `recover` was asked, in words of JSON, with the versions that computed; see `settings`."""

    @property
    def queries_per_parameter(self) -> float:
        """(queries - probing - verification) / parameters of the network; nan without a network."""
        spent = self.queries - self.probing_queries - self.verification_queries
        return np.nan if self.network is None else spent / self.network.n_parameters

    def __repr__(self) -> str:
        return (
            f"Recovery({self.status.name}, {self.network!r}, error {self.error:.2g}, "
            f"{self.queries} queries, {self.seconds:.1f} s)"
        )

    def to_dict(self) -> dict[str, Any]:
        """Everything but the network's parameters, ready for JSON (nan and infinity become null)."""
        network, errors = self.network, self.standard_errors
        plain: dict[str, Any] = _for_json(
            {
                "status": self.status.name,
                "network": network and repr(network),
                "architecture": network and describe(network),
                "hidden": network and list(network.hidden),
                "activations": network and list(network.activations),
                "n_parameters": network and network.n_parameters,
                "parameters": network and parameter_ranges(network),
                "known_layers": None if self.known_layers is None else repr(self.known_layers),
                "error": self.error,
                "message": self.message,
                "notes": list(self.notes),
                "queries": self.queries,
                "probing_queries": self.probing_queries,
                "verification_queries": self.verification_queries,
                "queries_per_parameter": self.queries_per_parameter,
                "seconds": self.seconds,
                "stages": [asdict(stage) for stage in self.stages],
                "layers": [asdict(layer) for layer in self.evidence.layers],
                "certificate": [asdict(check) for check in self.certificate.checks],
                "evidence": evidence_figures(self.evidence),
                "standard_errors": errors and parameter_ranges(errors),
                "settings": self.settings,
            }
        )
        return plain

    def save_report(self, path: str | Path) -> None:
        """Write a report for people: one HTML file with pictures, which needs neither network nor scripts.

        The file is written whole or not at all. It needs jinja2 and matplotlib, which come with unweave.
        """
        from unweave.report import write_report  # drawing is only loaded when something is drawn

        write_report(self, path)

    def save(self, path: str | Path) -> None:
        """Write the result to an .npz file, which `Recovery.load` reads back."""
        path = Path(path)
        if path.suffix != ".npz":
            raise InvalidInput(f"path must end in .npz. Got {str(path)!r} instead.")
        exact: dict[str, Any] = {
            "status": self.status.name,
            **{name: getattr(self, name) for name in _PLAIN},
            "notes": list(self.notes),
            "settings": self.settings,
            "stages": [asdict(stage) for stage in self.stages],
            "checks": [asdict(check) for check in self.certificate.checks],
        }
        arrays: dict[str, Any] = {}
        for start, kept in (("", self.network), (_KNOWN, self.known_layers), (_ERRORS, self.standard_errors)):
            if kept is not None:
                arrays |= {start + key: value for key, value in network_arrays(kept).items()}
        exact["evidence"], exact["evidence_kind"] = {}, type(self.evidence).__name__
        for entry in fields(self.evidence):
            value = getattr(self.evidence, entry.name)
            if isinstance(value, np.ndarray):
                arrays[_EVIDENCE + entry.name] = value
            elif entry.name == "layers":
                exact["evidence"]["layers"] = [asdict(layer) for layer in value]
            else:
                exact["evidence"][entry.name] = value
        header = json.dumps({"format": _FORMAT, "version": _VERSION, **exact}, default=float)
        try:
            with path.open("wb") as file:
                np.savez(file, recovery=np.array(header), **arrays)
        except OSError as error:
            raise InvalidInput(
                f"path must be a file that can be written. Got {str(path)!r} instead ({error.strerror})."
            ) from error

    @staticmethod
    def load(path: str | Path) -> Recovery:
        """Read a result that `save` has written."""
        path = Path(path)
        if not path.is_file():
            raise InvalidInput(f"path must be an existing file. Got {str(path)!r} instead.")
        content = read_archive(path)
        if "recovery" not in content:
            raise InvalidInput(f"path must hold a saved recovery. Got {str(path)!r} instead, which does not.")
        header = json.loads(str(content["recovery"]))
        if header.get("format") != _FORMAT or header.get("version") != _VERSION:
            raise InvalidInput(f"{str(path)!r} must be a recovery of version {_VERSION}.")
        network = network_from_arrays(path, content) if "weight_0" in content else None
        known, errors = _named(content, _KNOWN), _named(content, _ERRORS)
        return Recovery(
            network=network,
            status=Status[header["status"]],
            **{name: header[name] for name in _PLAIN},
            stages=tuple(Stage(**stage) for stage in header["stages"]),
            certificate=Certificate(tuple(Check(**check) for check in header["checks"])),
            notes=tuple(header["notes"]),
            evidence=_read_evidence(header["evidence_kind"], header["evidence"], content),
            known_layers=network_from_arrays(path, known) if known else None,
            standard_errors=network_from_arrays(path, errors) if errors else None,
            settings=header.get("settings", {}),
        )


def _read_evidence(kind: str, plain: dict[str, Any], content: dict[str, Any]) -> Evidence:
    from unweave.methods.table import METHODS  # every method may bring a class of its own

    kinds: list[type[Evidence]] = [Evidence, *(method.evidence for method in METHODS)]
    known = {each.__name__: each for each in kinds}
    if kind not in known:
        raise InvalidInput(f"the evidence must be one of {', '.join(known)}. Got {kind!r} instead.")
    return known[kind].restored(plain, _named(content, _EVIDENCE))


def _named(content: dict[str, Any], start: str) -> dict[str, Any]:
    """The entries whose names begin with ``start``, without it."""
    return {key.removeprefix(start): value for key, value in content.items() if key.startswith(start)}


def _for_json(value: Any) -> Any:
    """Plain Python values; what JSON has no word for becomes None."""
    if isinstance(value, dict):
        return {key: _for_json(entry) for key, entry in value.items()}
    if isinstance(value, list | tuple):
        return [_for_json(entry) for entry in value]
    if isinstance(value, np.generic):
        value = value.item()
    if isinstance(value, float) and not np.isfinite(value):
        return None
    return value
