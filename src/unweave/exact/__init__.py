"""Exact fits of small ReLU networks: all dichotomies, the global optimum with a certificate, all optima."""

from unweave.exact.arrangement import cover_count, hyperplane_dichotomies
from unweave.exact.erm import exact_erm
from unweave.exact.line_pieces import PiecesFit, exact_pieces
from unweave.exact.linear_losses import Absolute, Hinge, PiecewiseLinear
from unweave.exact.losses import ConvexLoss, Huber, Logistic, Squared
from unweave.exact.optima import Optima, Optimum, enumerate_optima
from unweave.exact.reliable import ReliableLosses, reliable_losses
from unweave.exact.result import ExactFit, ExactProgress, SearchInterrupted, Stop
from unweave.exact.search import Executor

__all__ = [
    "Absolute",
    "ConvexLoss",
    "ExactFit",
    "ExactProgress",
    "Executor",
    "Hinge",
    "Huber",
    "Logistic",
    "Optima",
    "Optimum",
    "PiecesFit",
    "PiecewiseLinear",
    "ReliableLosses",
    "SearchInterrupted",
    "Squared",
    "Stop",
    "cover_count",
    "enumerate_optima",
    "exact_erm",
    "exact_pieces",
    "hyperplane_dichotomies",
    "reliable_losses",
]
