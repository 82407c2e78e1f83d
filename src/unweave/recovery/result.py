"""What a recovery gives back: network, status, error, cost, stages and certificate."""

from __future__ import annotations

from dataclasses import asdict, dataclass, field
from enum import Enum
from pathlib import Path
from typing import Any

import numpy as np

from unweave.networks.html_tables import html_figures, html_table, number
from unweave.networks.network import Network
from unweave.networks.structure import structure_of
from unweave.recovery.describe import describe, evidence_figures, parameter_ranges
from unweave.recovery.wording import counted
from unweave.search import Check, Evidence, Stage

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


@dataclass(frozen=True, repr=False)
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
    def grounds(self) -> tuple[Check, ...]:
        """Checks that the verdict rests on."""
        return tuple(check for check in self.checks if check.decides)

    @property
    def further(self) -> tuple[Check, ...]:
        """Hypotheses of theorems and figures of the way, which decide nothing."""
        return tuple(check for check in self.checks if not check.decides)

    @property
    def holds(self) -> bool:
        """Whether every check that decides holds, and there is one: exactly then a network is recovered."""
        return bool(self.grounds) and all(check.holds for check in self.grounds)

    def __repr__(self) -> str:
        against = sum(check.holds is False for check in self.grounds)
        said = "holds" if self.holds else "does not hold"
        return f"Certificate({said}, {counted(len(self.grounds), 'ground')}, {against} against)"

    def _repr_html_(self) -> str:
        """Show the checks in a notebook, those first that decide."""
        ordered = (*self.grounds, *self.further)
        rows = [(c.name, number(c.value), number(c.threshold), c.mark, c.implies) for c in ordered]
        return html_table(repr(self), ("check", "value", "against", "ok", "implies"), rows)

    def __str__(self) -> str:
        rows = []
        for check in (*self.grounds, *self.further):
            bound = "" if check.threshold is None else f" (against {check.threshold:.3g})"
            rows.append(f"{check.mark:4}{check.name}: {check.value:.3g}{bound} - {check.implies}")
        return "\n".join(rows)


@dataclass(frozen=True, eq=False)
class Recovery:
    """The result of `unweave.recover`."""

    network: Any
    """The best `Network` found, in the target's own inputs; None if there is none.

    It may be a model of another kind (`unweave.networks.model.Model`): a `TreeEnsemble` where the target
    answers in steps.
    """
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

    @property
    def structure(self) -> tuple[str, ...]:
        """What the recovered weights show: a convolution, a skip connection; a sentence each."""
        if not self.status.is_recovered or not isinstance(self.network, Network):
            return ()
        return tuple(str(part) for part in structure_of(self.network))

    def __repr__(self) -> str:
        return (
            f"Recovery({self.status.name}, {self.network!r}, error {self.error:.2g}, "
            f"{self.queries} {'query' if self.queries == 1 else 'queries'}, {self.seconds:.1f} s)"
        )

    @property
    def input_names(self) -> tuple[str, ...]:
        """Names of the inputs, where a table with named columns was given; else none."""
        return tuple(self.settings.get("inputs", ()))

    def _repr_html_(self) -> str:
        """Show the result in a notebook: verdict, network, error, cost."""
        network = "none" if self.network is None else describe(self.network)
        rows: list[tuple[str, object]] = [("status", str(self.status)), ("because", self.message)]
        rows += [
            ("network", network),
            ("error", "not measured" if np.isnan(self.error) else number(self.error)),
        ]
        if self.network is not None:
            rows.append(("parameters", number(int(self.network.n_parameters))))
        rows += [("queries", number(self.queries)), ("seconds", number(self.seconds))]
        if self.input_names:
            rows.append(("inputs", ", ".join(self.input_names)))
        rows += [("note", note) for note in self.notes]
        stages = [(s.name, f"{s.seconds:.2f}", number(s.queries)) for s in self.stages]
        parts = [html_figures(self.status.name, rows)]
        parts += [html_table("Stages", ("stage", "seconds", "queries"), stages)] if stages else []
        return "".join(parts)

    def to_dict(self) -> dict[str, Any]:
        """Everything but the network's parameters, ready for JSON (nan and infinity become null)."""
        network, errors = self.network, self.standard_errors
        plain: dict[str, Any] = _for_json(
            {
                "status": self.status.name,
                "network": network and repr(network),
                "architecture": network and describe(network),
                "kind": network and type(network).__name__,
                "hidden": list(network.hidden) if isinstance(network, Network) else None,
                "activations": list(network.activations) if isinstance(network, Network) else None,
                "n_parameters": network and network.n_parameters,
                "parameters": parameter_ranges(network) if isinstance(network, Network) else None,
                "structure": list(self.structure),
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
        """Write the result to an .npz file, which `Recovery.load` reads back.

        The file is written whole or not at all: what was there before stays until the new one is on the disk.
        """
        from unweave.recovery.saved import write_recovery  # that module builds a `Recovery`

        write_recovery(self, Path(path))

    @staticmethod
    def load(path: str | Path) -> Recovery:
        """Read a result that `save` has written; `InvalidInput` if the file holds anything else."""
        from unweave.recovery.saved import read_recovery

        return read_recovery(Path(path))


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
