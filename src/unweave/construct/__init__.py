"""Networks by construction, in floats or exact fractions: piecewise linear functions, maxima, hard families.

`hard` holds the families that need depth, with their numbers of pieces; `bounds` what a number of pieces says
about size and depth; `restrictions` and `sign_rank` what Boolean circuits lose when inputs are fixed or
weights are ordered.
"""

from unweave.construct import bounds, hard, restrictions, sign_rank
from unweave.construct.algebra import add, affine_network, compose, pad, stack
from unweave.construct.approximation import hat, interpolant, lq_distance, mean_distance, sawtooth_distance
from unweave.construct.boolean import AndreevLayout, andreev, andreev_net, ltf_gate, parity_net, vertex_net
from unweave.construct.cones import Cone, arrangement_cones, zonotope_maps
from unweave.construct.exactness import as_exact, as_float, depth, size
from unweave.construct.filters import single_filter_net, windows
from unweave.construct.flatten import difference_of_maxima, flatten, maxima_of_difference, signed_maxima
from unweave.construct.fourier import boolean_net, fourier_coefficients, fourier_net, min_threshold_gates
from unweave.construct.pieces import Piece, affine_map_at, distinct_maps, pieces_1d, pieces_on_line
from unweave.construct.pwl import max_net, max_net_size, pwl1d_to_relu, pwl_to_relu

__all__ = [
    "AndreevLayout",
    "Cone",
    "Piece",
    "add",
    "affine_map_at",
    "affine_network",
    "andreev",
    "andreev_net",
    "arrangement_cones",
    "as_exact",
    "as_float",
    "boolean_net",
    "bounds",
    "compose",
    "depth",
    "difference_of_maxima",
    "distinct_maps",
    "flatten",
    "fourier_coefficients",
    "fourier_net",
    "hard",
    "hat",
    "interpolant",
    "lq_distance",
    "ltf_gate",
    "max_net",
    "max_net_size",
    "maxima_of_difference",
    "mean_distance",
    "min_threshold_gates",
    "pad",
    "parity_net",
    "pieces_1d",
    "pieces_on_line",
    "pwl1d_to_relu",
    "pwl_to_relu",
    "restrictions",
    "sawtooth_distance",
    "sign_rank",
    "signed_maxima",
    "single_filter_net",
    "size",
    "stack",
    "vertex_net",
    "windows",
    "zonotope_maps",
]
