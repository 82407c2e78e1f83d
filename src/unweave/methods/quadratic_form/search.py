"""Quadratic polynomials behind a link: y = T(x^T M x + s . x + c), one form M per output.

Linear, logistic and softmax models on polynomial features of degree two are such, and so are networks of
quadratic units. z = T^{-1}(y) is linear in the (D+1)(D+2)/2 monomials, and weighted least squares solves for
their coefficients. The eigenvectors of M are quadratic units, its eigenvalues their outgoing weights; s is
the skip matrix. Biases are left out: those of units with a small eigenvalue would be huge.
"""

from __future__ import annotations

from dataclasses import dataclass, field

import numpy as np

from unweave.arrays import Array
from unweave.methods.shared.linked_least_squares import (
    LINK_NAMES,
    LinkedRows,
    evidence_of,
    solve_linked,
)
from unweave.networks.links import Link
from unweave.networks.network import Network
from unweave.search import Candidate, GaveUp, Reason, Search
from unweave.targets.change_of_inputs import in_own_inputs

AMBIGUITY = "only the quadratic polynomial is determined: other units with the same sum give the same answers"


@dataclass(frozen=True, kw_only=True)
class QuadraticFormOptions:
    """How many rows are asked, and which units count."""

    rows: LinkedRows = field(default_factory=lambda: LinkedRows(rows_per_unknown=1.25))
    """Rows of precise answers: random ones barely as many as the monomials tell these badly apart."""
    largest_residual: float = 1e3
    """Residual over the precision of the answers beyond which the target is no quadratic polynomial."""
    most_monomials: int = 5000
    """Coefficients of one output that are solved for: ten seconds, in 98 inputs."""
    smallest_eigenvalue: float = 30.0
    """Eigenvalue of a unit, in eps of the answers times the largest one."""


class QuadraticFormReason(Reason):
    """Why no polynomial was found."""

    NOT_EXPLAINED = "a quadratic polynomial leaves {residual:.1e} of the answers' spread"
    MORE_UNITS = "the quadratic polynomial takes {rank} units, more than the {width} told"


def monomials(points: Array) -> Array:
    """Return (n, P): products of two inputs, less the mean of squares, then the inputs, then ones."""
    first, second = np.triu_indices(points.shape[1])
    products = points[:, first] * points[:, second] - (first == second)
    return np.concatenate([products, points, np.ones((len(points), 1))], axis=1)


def count_monomials(inputs: int) -> int:
    """Return how many there are."""
    return (inputs + 1) * (inputs + 2) // 2


class QuadraticFormSearch(Search):
    """Solves for the coefficients, and reads units off the eigenvectors of every output's form."""

    _found = Candidate()

    def candidate(self) -> Candidate:
        """Return the units."""
        return self._found

    def run(self) -> None:
        """Ask the rows and solve, behind the likeliest link."""
        findings, region = self.findings, self.findings.region
        options: QuadraticFormOptions = self.context.options
        told = self.request.output_activation
        link = Link(told or (findings.parabolic_links or ("identity",))[-1])
        unknowns = count_monomials(region.n_inputs)
        with self.journal.stage("quadratic form") as stage:
            solved = solve_linked(self.context, link, monomials, unknowns, options.rows)
            network = self._network(solved.weights, link)
            evidence = evidence_of(solved, network, unknowns, findings, options.rows)
            residual, width = evidence.fit_history[-1], network.hidden[0] if network.hidden else 0
            stage.figures.update(residual=residual, width=width)
        if not residual <= options.largest_residual * findings.noise.relative:  # no need to trouble the judge
            raise GaveUp(QuadraticFormReason.NOT_EXPLAINED, residual=residual)
        if self.request.width is not None and width > self.request.width:
            raise GaveUp(QuadraticFormReason.MORE_UNITS, rank=width, width=self.request.width)
        behind = f" behind {LINK_NAMES[link.name]}" if link.name in LINK_NAMES else ""
        note = f"the target is a quadratic polynomial of its inputs{behind}"
        self._found = Candidate(in_own_inputs(network, region), evidence, (note,), ambiguity=AMBIGUITY)

    def _network(self, coefficients: Array, link: Link) -> Network:
        """Return quadratic units of all outputs, side by side, with the linear part as a skip matrix."""
        inputs, outputs = self.findings.region.n_inputs, coefficients.shape[1]
        first, second = np.triu_indices(inputs)
        products, slopes, offsets = np.split(coefficients, [len(first), len(first) + inputs])
        noise = self.findings.noise.number_format
        least = (
            self.context.options.smallest_eigenvalue * (np.finfo(np.float64) if noise is None else noise).eps
        )
        units, heights = [], []
        for output in range(outputs):
            form = np.zeros((inputs, inputs))
            form[first, second] = products[:, output] / 2
            form += form.T  # squares get their whole coefficient, other products half of it twice
            values, vectors = np.linalg.eigh(form)
            kept = np.abs(values) > least * np.abs(values).max()
            units.append(vectors[:, kept])
            heights.append(np.outer(values[kept], np.eye(outputs)[output]))
        constant = offsets[0] - products[first == second].sum(axis=0)
        weights = np.concatenate(units, axis=1)
        return Network(
            [weights, np.concatenate(heights)],
            [np.zeros(weights.shape[1]), constant],
            ["quadratic", link.name],
            slopes,
        )
