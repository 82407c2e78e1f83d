"""Quadratic units from samples, of which never more than W W^T is known."""

from __future__ import annotations

from dataclasses import replace

from unweave.errors import InvalidInput
from unweave.methods.shared.sample_evidence import SampleEvidence
from unweave.quadratic import recover_quadratic
from unweave.search import Candidate, Search


class SamplesQuadraticSearch(Search):
    """Solves for the quadratic form and factors it."""

    _found = Candidate()

    def run(self) -> None:
        """Solve for W W^T, one output at a time."""
        rows = self.context.view
        if rows.y.shape[1] != 1:
            raise InvalidInput(
                f"samples must have one output for quadratic units. Got {rows.y.shape[1]} instead. "
                "Recover each output by itself."
            )
        with self.journal.stage("fit quadratic") as stage:
            found = recover_quadratic(rows.x, rows.y[:, 0], self.request.width)
            stage.figures.update(rows=len(rows.x))
        seen = found.evidence
        evidence = SampleEvidence(
            width=seen.width,
            condition=seen.condition,
            fit_history=seen.fit_history,
            fit_floor=seen.fit_floor,
            parameter_error_bar=seen.parameter_error_bar,
        )
        family = found.ambiguity or "only W W^T is determined by quadratic units"
        self._found = replace(
            found,
            evidence=evidence,
            problem=None,
            objection=found.problem,
            ambiguity=family,
            needs_no_rows=True,
        )

    def candidate(self) -> Candidate:
        """Return the factored form."""
        return self._found
