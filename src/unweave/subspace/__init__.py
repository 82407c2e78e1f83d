"""Subspaces of symmetric matrices and the rank-one matrices in them."""

from unweave.subspace.collector import RankOneDirections, distinct_directions
from unweave.subspace.hessian_span import HessianSpan, hessian_span
from unweave.subspace.joint_diagonal import JointDiagonalisation, jointly_diagonalise
from unweave.subspace.power_method import PowerMethodOptions, subspace_power_method
from unweave.subspace.rank_one_space import RankOneSpace, orthonormal_basis
from unweave.subspace.spectral_ascent import SpectralAscentOptions, spectral_ascent
from unweave.subspace.symmetric import SymmetricPacking, symmetric_packing
from unweave.subspace.whitened import Whitening, along_duals, dual_basis, dual_profiles, whiten

__all__ = [
    "HessianSpan",
    "JointDiagonalisation",
    "PowerMethodOptions",
    "RankOneDirections",
    "RankOneSpace",
    "SpectralAscentOptions",
    "SymmetricPacking",
    "Whitening",
    "along_duals",
    "distinct_directions",
    "dual_basis",
    "dual_profiles",
    "hessian_span",
    "jointly_diagonalise",
    "orthonormal_basis",
    "spectral_ascent",
    "subspace_power_method",
    "symmetric_packing",
    "whiten",
]
