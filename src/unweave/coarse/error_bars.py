"""Standard errors of every parameter, in the target's own inputs.

cov(theta) = (J^T J)^{-1} with J the Jacobian over the rows that were fitted, divided by the answers' standard
deviations. Taken in the target's inputs, because biases there mix with the weights' errors.
"""

from __future__ import annotations

import numpy as np
import scipy.linalg

from unweave.access.region import Region
from unweave.arrays import Array
from unweave.deep.layered_model import LayeredModel
from unweave.deep.value_fit import ValueJacobian
from unweave.network import Network

_MOST_ROWS = 16.0  # per parameter: of more, so many are used, and the result scaled


def standard_error_network(
    model: LayeredModel, region: Region, points: Array, weights: Array
) -> Network | None:
    """A network whose parameters are the standard errors of ``model``'s (which reads the target's inputs).

    ``points`` (n, D) are the normalised rows of the fit, ``weights`` (n, K) one over the standard deviation
    of each answer, 0 where it was not used. None if the rows do not determine all parameters. For a softmax
    output errors are those of classes minus the last one, whose own are zero.
    """
    rows = min(len(points), int(np.ceil(_MOST_ROWS * model.size)))
    gram = ValueJacobian(model, region.to_inputs(points[:rows]), weights[:rows]).gram()
    scale = np.sqrt(np.diag(gram))
    if not (scale > 0).all():
        return None
    gram = gram / (scale[:, None] * scale)
    try:
        inverse = scipy.linalg.cholesky(gram, lower=False, check_finite=False)
        variances = np.square(
            scipy.linalg.solve_triangular(inverse, np.eye(len(gram)), check_finite=False)
        ).sum(1)
    except np.linalg.LinAlgError:
        return None
    errors = np.sqrt(variances * rows / len(points)) / scale
    return model.from_vector(errors).to_network_as_is()
