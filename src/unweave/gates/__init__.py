"""Single gates y = relu(w . x) from samples, streaming, with predicted beside measured errors.

| samples | call |
|---|---|
| clean or poisoned, one pass, exact | `relu_gate_ols` |
| clean stream | `relu_gate_sgd` |
| poisoned stream | `relu_gate_sgd_robust` |
| any monotone activation, several passes | `glm_tron` |
| descent with noise, and the ball that confines it | `noisy_gd_gate` |

Each has a class with `partial_fit` behind it, for data that does not fit into memory.
"""

from unweave.gates.common import gate_network
from unweave.gates.constants import GateConstants, GateMoments, error_curve, error_floor, gate_constants
from unweave.gates.glm_tron import LIPSCHITZ, BenignNoise, GlmTron, GlmTronFit, benign_noise, glm_tron
from unweave.gates.least_squares import GateLeastSquares, ReluGateLeastSquares, relu_gate_ols
from unweave.gates.noisy_descent import (
    Confinement,
    NoisyDescent,
    NoisyDescentFit,
    NoisyDescentOptions,
    confinement,
    noisy_gd_gate,
)
from unweave.gates.recursion import Recursion, azuma_tail, recursion_steps
from unweave.gates.stochastic import (
    Attack,
    GateFit,
    ReluGateLearner,
    gate_update,
    poison,
    relu_gate_sgd,
    relu_gate_sgd_robust,
)

__all__ = [
    "LIPSCHITZ",
    "Attack",
    "BenignNoise",
    "Confinement",
    "GateConstants",
    "GateFit",
    "GateLeastSquares",
    "GateMoments",
    "GlmTron",
    "GlmTronFit",
    "NoisyDescent",
    "NoisyDescentFit",
    "NoisyDescentOptions",
    "Recursion",
    "ReluGateLearner",
    "ReluGateLeastSquares",
    "azuma_tail",
    "benign_noise",
    "confinement",
    "error_curve",
    "error_floor",
    "gate_constants",
    "gate_network",
    "gate_update",
    "glm_tron",
    "noisy_gd_gate",
    "poison",
    "recursion_steps",
    "relu_gate_ols",
    "relu_gate_sgd",
    "relu_gate_sgd_robust",
]
