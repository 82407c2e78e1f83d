"""Guarantees for a given network: tolerated noise, bounds on its risk, pieces, curvature."""

from unweave.certify.clusters import (
    Move,
    Spread,
    angle_index,
    cone_of_starts,
    mixture_divergence,
    move,
    spread,
)
from unweave.certify.complexity import KinkEnd, LinePieces, kink_that_ends, line_pieces
from unweave.certify.hessian import HessianMinimum, LossHessian, hessian_min_eig
from unweave.certify.margins import LabelledData, RiskBound, balanced, margins
from unweave.certify.pac_bayes import cluster_bound, dist_from_init_bound, nbs_bound, nice_margins
from unweave.certify.perturbation import (
    LayerNorms,
    deviation_bound,
    draw_noise,
    noise_resilience_sigma,
    noise_resilience_sigmas,
)
from unweave.certify.posteriors import (
    ShrunkPosterior,
    draw_mixture,
    margin_pac_bayes_bound,
    mixture_resilience_sigma,
    pac_bayes_bound,
    shrunk_divergence,
    shrunk_posterior,
)

__all__ = [
    "HessianMinimum",
    "KinkEnd",
    "LabelledData",
    "LayerNorms",
    "LinePieces",
    "LossHessian",
    "Move",
    "RiskBound",
    "ShrunkPosterior",
    "Spread",
    "angle_index",
    "balanced",
    "cluster_bound",
    "cone_of_starts",
    "deviation_bound",
    "dist_from_init_bound",
    "draw_mixture",
    "draw_noise",
    "hessian_min_eig",
    "kink_that_ends",
    "line_pieces",
    "margin_pac_bayes_bound",
    "margins",
    "mixture_divergence",
    "mixture_resilience_sigma",
    "move",
    "nbs_bound",
    "nice_margins",
    "noise_resilience_sigma",
    "noise_resilience_sigmas",
    "pac_bayes_bound",
    "shrunk_divergence",
    "shrunk_posterior",
    "spread",
]
