"""A subspace of Sym(D) and its alignment with rank-one matrices.

For a subspace V with orthogonal projection P the functional

    Phi(u) = || P(u u^T) ||_F^2,   |u| = 1,

is at most one, and equals one exactly when u u^T lies in V. The rank-one members of the span of a
network's Hessians are the w_k w_k^T of its units, so the maximizers of Phi are the weights.

    gradient      4 P(u u^T) u
    Hessian       v^T H v = 8 || P(u v^T) ||_F^2 + 4 v^T P(u u^T) v

Written once for every array library that follows the array API.
"""

from __future__ import annotations

from typing import Literal

import numpy as np
import scipy.linalg
from array_api_compat import array_namespace

from unweave.arrays import AnyArray, Array, in_numpy
from unweave.errors import InvalidInput
from unweave.numerics.clock import check
from unweave.subspace.symmetric import SymmetricPacking

Representation = Literal["basis", "complement", "dense"]

_MOST_KEPT_NUMBERS = 8_000_000  # of unpacked matrices that every Newton step needs: 64 MB of float64
_ROWS_PER_CURVATURE = 256  # rows whose D x D matrices are formed at once: limits memory


class RankOneSpace:
    """Projection onto a subspace of Sym(D), in whichever of three forms costs the fewest flops.

    Parameters
    ----------
    basis : (p, m) array
        Orthonormal columns, packed coordinates.
    packing
        The packing of Sym(D).
    representation
        ``"basis"`` (2m flops per entry), ``"complement"`` (2(p-m)) or ``"dense"`` (p).
        Default: the cheapest.
    """

    def __init__(
        self, basis: AnyArray, packing: SymmetricPacking, representation: Representation | None = None
    ) -> None:
        size, rank = basis.shape
        # In products per packed entry; the dense form has one matrix product instead of two, which wins where
        # the others cost about the same.
        costs: list[tuple[float, Representation]] = [
            (2 * rank, "basis"),
            (2 * (size - rank), "complement"),
            (0.9 * size, "dense"),
        ]
        self.representation: Representation = representation or min(costs)[1]
        self.packing = packing
        self.basis = basis
        self.rank = int(rank)
        self._factor = self._build_factor(basis)

    def _build_factor(self, basis: AnyArray) -> AnyArray:
        if self.representation == "basis":
            return basis
        if self.representation == "dense":
            return basis @ basis.T
        xp = array_namespace(basis)
        check(2 * basis.shape[0] ** 2 * self.rank)
        complement = scipy.linalg.qr(in_numpy(basis))[0][:, self.rank :]
        return xp.asarray(np.ascontiguousarray(complement), dtype=basis.dtype, device=basis.device)

    def astype(self, dtype: AnyArray) -> RankOneSpace:
        """The same subspace in another precision; the factor is converted, not recomputed."""
        xp = array_namespace(self.basis)
        other = object.__new__(type(self))
        other.representation, other.packing, other.rank = self.representation, self.packing, self.rank
        other.basis = xp.astype(self.basis, dtype)
        other._factor = other.basis if self.representation == "basis" else xp.astype(self._factor, dtype)
        return other

    def on_device(self, device: str) -> RankOneSpace:
        """The same subspace as torch tensors on ``device``, for instance "cuda"; the factor is moved."""
        try:
            import torch

            basis = torch.asarray(self.basis, device=device)
        except (ImportError, RuntimeError) as error:
            raise InvalidInput(
                f"device must be one that torch has here. Got {device!r} instead ({error}). "
                "Leave it out, or install a torch that knows it."
            ) from error
        other = object.__new__(RankOneSpace)
        other.representation, other.packing, other.rank = self.representation, self.packing, self.rank
        other.basis = basis
        same = self.representation == "basis"
        other._factor = other.basis if same else torch.asarray(self._factor, device=device)
        return other

    def asarray(self, rows: Array) -> AnyArray:
        """``rows`` in the library, precision and device of the basis."""
        xp = array_namespace(self.basis)
        return xp.asarray(rows, dtype=self.basis.dtype, device=self.basis.device)

    def project(self, packed: AnyArray) -> AnyArray:
        """Orthogonal projection of packed matrices (n, p)."""
        if self.representation == "dense":
            return packed @ self._factor
        inside = (packed @ self._factor) @ self._factor.T
        return inside if self.representation == "basis" else packed - inside

    def objective_and_image(self, directions: AnyArray) -> tuple[AnyArray, AnyArray]:
        """Phi(u) (n,) and P(u u^T) u (n, D) for unit rows u (n, D)."""
        xp = array_namespace(directions)
        columns, image = self._columns_and_images(directions)
        return xp.sum(image * columns, axis=0), image.T

    def gradient(self, directions: AnyArray) -> AnyArray:
        """A quarter of the gradient of Phi on the sphere, (n, D), at unit rows u (n, D)."""
        xp = array_namespace(directions)
        columns, image = self._columns_and_images(directions)
        return (image - xp.sum(image * columns, axis=0) * columns).T

    def _columns_and_images(self, directions: AnyArray) -> tuple[AnyArray, AnyArray]:
        """u and P(u u^T) u in columns (D, n)."""
        xp = array_namespace(directions)
        columns = xp.asarray(directions.T, copy=True)
        packed = self.packing.outer_in_columns(columns)
        dense = self.representation == "dense"
        inside = self._factor @ (packed if dense else self._factor.T @ packed)
        image = xp.sum(self.packing.unpack_columns(inside) * columns, axis=1)
        if self.representation == "complement":
            image = xp.sum(columns * columns, axis=0) * columns - image
        return columns, image

    def objective(self, directions: AnyArray) -> AnyArray:
        """Phi(u) for unit rows u (n, D)."""
        return self.objective_and_image(directions)[0]

    def misalignment(self, directions: AnyArray) -> AnyArray:
        """1 - Phi(u) = squared distance of u u^T to the subspace, without cancellation near zero."""
        xp = array_namespace(directions)
        packed = self.packing.outer(directions)
        if self.representation == "complement":
            outside = packed @ self._factor
        else:
            outside = packed - self.project(packed)
        return xp.sum(outside * outside, axis=1)

    def curvature(self, directions: AnyArray) -> tuple[AnyArray, AnyArray]:
        """P(u u^T) u (n, D) and P(u u^T) + 2 sum_k (B_k u)(B_k u)^T (n, D, D) for unit rows u.

        The second is a quarter of the Hessian of Phi. The sum over the basis costs O(m D^2) per row;
        with the complement C of the subspace, sum_k (B_k u)(B_k u)^T is the full sum over Sym(D),
        (I + u u^T)/2, minus the sum over C.
        """
        xp = array_namespace(directions)
        n, dimension = directions.shape
        over_complement = self.representation == "complement"
        factor = self._factor if over_complement else self.basis
        images = xp.reshape(directions @ self._matrices(factor), (n, factor.shape[1], dimension))  # B_k u
        coefficients = xp.matmul(images, directions[:, :, None])[:, :, 0]
        gram = xp.matmul(xp.permute_dims(images, (0, 2, 1)), images)
        weighted = self.packing.unpack(coefficients @ factor.T)
        if over_complement:
            outer = directions[:, :, None] * directions[:, None, :]
            identity = xp.eye(dimension, dtype=directions.dtype, device=directions.device)
            weighted = outer - weighted
            gram = (identity + outer) / 2 - gram
        image = xp.matmul(weighted, directions[:, :, None])[:, :, 0]
        return image, weighted + 2 * gram

    def _matrices(self, factor: AnyArray) -> AnyArray:
        """The matrices of ``factor`` (p, r) beside each other, (D, r D); kept while they are small."""
        kept: AnyArray = getattr(self, "_kept_matrices", None)
        if kept is None:
            xp = array_namespace(factor)
            matrices = xp.permute_dims(self.packing.unpack(factor.T), (1, 0, 2))
            kept = xp.reshape(matrices, (self.packing.dimension, -1))
            if factor.shape[1] * self.packing.dimension**2 <= _MOST_KEPT_NUMBERS:
                self._kept_matrices = kept
        return kept

    def contraction_rates(self, directions: AnyArray) -> AnyArray:
        """Local rate rho (n,) of the power step at unit rows u that are critical points of Phi.

        The largest tangential eigenvalue of P(u u^T) + 2 sum_k (B_k u)(B_k u)^T, over Phi(u): below one the
        step contracts towards u, and 1/(1 - rho) is how sensitive u is to errors of the subspace.
        """
        xp = array_namespace(directions)
        identity = xp.eye(directions.shape[1], dtype=directions.dtype, device=directions.device)
        rates = []
        for start in range(0, directions.shape[0], _ROWS_PER_CURVATURE):
            check()
            u = directions[start : start + _ROWS_PER_CURVATURE]
            image, curvature = self.curvature(u)
            tangential = identity - u[:, :, None] * u[:, None, :]
            largest = xp.linalg.eigvalsh(tangential @ curvature @ tangential)[:, -1]
            rates.append(largest / xp.sum(image * u, axis=1))
        return xp.concat(rates) if rates else directions[:, 0]


def orthonormal_basis(columns: Array) -> Array:
    """Orthonormal basis (QR) of the span of independent columns (p, m)."""
    basis: Array = scipy.linalg.qr(columns, mode="economic", check_finite=False)[0]
    return basis
