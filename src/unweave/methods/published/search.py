"""The published pipeline as one of the methods of `unweave.recover`.

The class is f(x) = sum_k g(w_k . x + tau_k) with |w_k| = 1 in the target's own inputs.
"""

from __future__ import annotations

from unweave.errors import BudgetExhausted, UnweaveError
from unweave.methods.shared.span_evidence import SpanEvidence
from unweave.published.shallow.pipeline import recover_published
from unweave.search import Candidate, GaveUp, Reason, Search


class PublishedReason(Reason):
    """Why the pipeline ended."""

    STOPPED = "{why}"


class PublishedSearch(Search):
    """Runs Algorithm 3.1 and hands its network to the judge."""

    _found = Candidate()
    single_thread = False

    def run(self) -> None:
        """Run the pipeline on the target."""
        view, width, activation = self.context.view, self.request.width, self.request.activation
        assert width is not None
        assert activation is not None
        with self.journal.stage("published") as stage:
            try:
                result = recover_published(
                    view, view.n_inputs, width, activation, self.rng, self.context.options
                )
            except BudgetExhausted:
                raise
            except UnweaveError as error:
                raise GaveUp(PublishedReason.STOPPED, why=error) from error
            stage.figures.update(
                found=len(result.shifts),
                needed=width,
                restarts=result.restarts,
                gap=result.gap,
                **{f"seconds {name}": seconds for name, seconds in result.seconds.items()},
            )
        evidence = SpanEvidence(
            width=width,
            gap=result.gap,
            found=len(result.shifts),
            restarts=result.restarts,
            misalignment=result.misalignment,
        )
        notes = ("the weights are frozen at the accuracy of the Hessians' differences, as published",)
        self._found = Candidate(result.network, evidence, notes)

    def candidate(self) -> Candidate:
        """Return the network of the pipeline."""
        return self._found
