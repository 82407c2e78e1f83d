"""What enters a one-hidden-layer network linearly: output constant, skip matrix, and mirrored neurons.

Given the neurons, the constant c and the skip S are averages of what the neurons leave of values and
gradients. Activations with g(-z) = g(z) + l z (softplus, gelu, swish) have Hessians that cannot tell a
neuron from its mirror image (-w, -b); every wrongly mirrored one leaves l a_k w_k in the skip, so the skip
tells which to mirror back, by least squares when there are no more neurons than equations.
"""

from __future__ import annotations

from dataclasses import replace

import numpy as np

from unweave.arrays import Array
from unweave.derivatives.stencils import Jets
from unweave.networks.shallow_model import ShallowModel

_ROUND_TO_MIRROR = 0.2  # how far from 0 or 1 a mirror indicator may be and still be read


def fit_linear_part(model: ShallowModel, jets: Jets, with_skip: bool) -> ShallowModel:
    """The model with the constant, and the skip if wanted, that fit ``jets`` best."""
    bare = replace(model, offset=np.zeros_like(model.offset), skip=None)
    skip = None
    remainder = jets.values - bare.values(jets.sites)
    if with_skip:
        skip = skip_matrix(bare, jets)
        remainder = remainder - jets.sites @ skip
    return replace(bare, offset=remainder.mean(axis=0), skip=skip)


def skip_matrix(model: ShallowModel, jets: Jets) -> Array:
    """(d, K) mean of the gradients that the neurons of ``model`` leave unexplained."""
    neurons = replace(model, skip=None)
    unexplained = jets.gradients - neurons.difference_gradients(jets.sites, jets.step, jets.rule)
    return np.asarray(unexplained.mean(axis=0).T)


def mirror_back(model: ShallowModel) -> ShallowModel:
    """Mirror the neurons that the skip shows to be mirrored, if that can be decided; else unchanged."""
    reflection = model.activation.reflection
    if model.skip is None or reflection is None or reflection.sign != 1 or reflection.slope == 0:
        return model
    (d, m), k = model.weights.shape, model.outgoing.shape[1]
    if m > d * k:
        return model
    # Mirroring neuron j replaces a g(z) by a g(-z) - a l z in terms of the same z: S changes by -l a w.
    contribution = reflection.slope * model.weights[:, None, :] * model.outgoing.T[None, :, :]  # (d, K, m)
    indicator, *_ = np.linalg.lstsq(contribution.reshape(d * k, m), model.skip.reshape(-1), rcond=None)
    mirrored = np.round(indicator)
    if np.abs(indicator - mirrored).max() > _ROUND_TO_MIRROR or not np.isin(mirrored, (0.0, 1.0)).all():
        return model
    sign = np.where(mirrored == 1.0, -1.0, 1.0)
    affine = contribution @ mirrored
    shift = reflection.slope * (model.biases * mirrored) @ model.outgoing
    return replace(
        model,
        weights=model.weights * sign,
        biases=model.biases * sign,
        skip=model.skip - affine,
        offset=model.offset - shift,
    )
