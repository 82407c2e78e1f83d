"""Networks read from fitted models of scikit-learn and from keras models.

Parameters are read, not asked for: these are ways to get a truth to compare with, or a model to export.
"""

from __future__ import annotations

import warnings
from typing import Any

import numpy as np

from unweave.arrays import Array
from unweave.errors import InvalidInput
from unweave.networks.activations import SOFTMAX
from unweave.networks.activations.catalogue import LEAKY_SLOPE
from unweave.networks.network import Network

_KERAS_NAMES = {"linear": "identity", "silu": "swish", "hard_silu": "hard_swish", "exponential": "exp"}
_IDLE_LAYERS = (
    "InputLayer",
    "Dropout",
    "GaussianNoise",
    "GaussianDropout",
    "AlphaDropout",
    "ActivityRegularization",
)


def from_sklearn(model: Any) -> Network:
    """Return the network in a fitted estimator or pipeline; see `Network.from_sklearn`."""
    steps = [step for _, step in model.steps] if hasattr(model, "steps") else [model]
    network = _estimator(steps[-1])
    for scaler in reversed(steps[:-1]):
        if scaler is None or (isinstance(scaler, str) and scaler == "passthrough"):
            continue
        scale, shift = _scaler(scaler)
        first = network.weights[0]
        biases = (network.biases[0] + shift @ first, *network.biases[1:])
        network = Network((scale[:, None] * first, *network.weights[1:]), biases, network.activations)
    return network


def _estimator(model: Any) -> Network:
    name = type(model).__name__
    if hasattr(model, "coefs_") and hasattr(model, "out_activation_"):
        inner = [model.activation] * (len(model.coefs_) - 1)
        return Network(model.coefs_, model.intercepts_, [*inner, model.out_activation_])
    if hasattr(model, "coef_") and hasattr(model, "intercept_"):
        weights = np.atleast_2d(np.asarray(model.coef_, dtype=np.float64)).T
        biases = np.atleast_1d(np.asarray(model.intercept_, dtype=np.float64))
        biases = np.broadcast_to(biases, (weights.shape[1],))
        return Network([weights], [biases], [_link(model, weights.shape[1])])
    fitted = "" if not hasattr(model, "fit") else " Fit it first, if it was not."
    raise InvalidInput(
        "model must be a fitted MLPRegressor, MLPClassifier or linear model, or a pipeline of scalers that "
        f"ends in one. Got {name} instead.{fitted} Other models can be recovered from their answers: "
        "unweave.recover(model)."
    )


def _link(model: Any, outputs: int) -> str:
    """Return the activation between a linear model and the numbers it answers with."""
    if hasattr(model, "predict_proba"):
        return "sigmoid" if outputs == 1 else SOFTMAX
    links = {"PoissonRegressor": "exp", "GammaRegressor": "exp"}
    return links.get(type(model).__name__, "identity")


def _scaler(scaler: Any) -> tuple[Array, Array]:
    """Return (scale, shift), both (D,), of a transformation x -> scale x + shift."""
    name = type(scaler).__name__
    if name == "MinMaxScaler" and not scaler.clip:
        return np.asarray(scaler.scale_), np.asarray(scaler.min_)
    # StandardScaler keeps the means where it does not subtract them.
    centers = {"StandardScaler": ("mean_", "with_mean"), "RobustScaler": ("center_", "with_centering")}
    if name == "MaxAbsScaler":
        return 1.0 / np.asarray(scaler.scale_), np.zeros(scaler.n_features_in_)
    if name not in centers:
        raise InvalidInput(
            "steps before the last must be StandardScaler, MinMaxScaler (without clip), RobustScaler or "
            f"MaxAbsScaler. Got {name} instead. A pipeline with other steps can be recovered from its "
            "answers: unweave.recover(model)."
        )
    attribute, centered = centers[name]
    width = scaler.n_features_in_
    scale = np.ones(width) if scaler.scale_ is None else 1.0 / np.asarray(scaler.scale_)
    return scale, -np.asarray(getattr(scaler, attribute)) * scale if getattr(scaler, centered) else np.zeros(
        width
    )


def from_keras(model: Any) -> Network:
    """Return the network in a keras model that is a chain of Dense layers; see `Network.from_keras`."""
    if not hasattr(model, "layers") or not hasattr(model, "get_config"):
        raise InvalidInput(f"model must be a keras model. Got {type(model).__name__} instead.")
    weights: list[Array] = []
    biases: list[Array] = []
    names: list[str] = []
    for layer in _chain(model):
        kind = type(layer).__name__
        if kind in _IDLE_LAYERS:
            continue
        if kind == "Dense":
            with warnings.catch_warnings():  # keras hands torch tensors over in a way that NumPy 2 warns of
                warnings.simplefilter("ignore", DeprecationWarning)
                held = [np.asarray(part, dtype=np.float64) for part in layer.get_weights()]
            if not held:
                raise InvalidInput(
                    "model must be built. Got a Dense layer without weights instead. Build it first."
                )
            weights.append(held[0])
            biases.append(held[1] if len(held) > 1 else np.zeros(held[0].shape[1]))
            names.append(_keras_name(layer.activation))
        elif names and names[-1] == "identity" and (name := _activation_layer(layer)) is not None:
            names[-1] = name
        else:
            raise InvalidInput(
                "model must be a chain of Dense and activation layers. "
                f"Got the layer {layer.name!r} of kind {kind} instead. Other models can be recovered from "
                "their answers: unweave.recover(model)."
            )
    if not weights:
        raise InvalidInput("model must have a Dense layer. It has none.")
    return Network(weights, biases, names)


def _chain(model: Any) -> list[Any]:
    """Return the layers of a model, each of which reads what the one before it gives."""
    layers = list(model.layers)
    for layer in layers:
        inbound = getattr(layer, "_inbound_nodes", [])
        if len(inbound) > 1 or any(len(getattr(node, "parent_nodes", ())) > 1 for node in inbound):
            raise InvalidInput(
                "model must be a chain of layers. "
                f"Got the layer {layer.name!r} instead, which is used twice or reads several others."
            )
    return layers


def _keras_name(activation: Any) -> str:
    name = getattr(activation, "__name__", str(activation))
    return _KERAS_NAMES.get(name, name)


def _activation_layer(layer: Any) -> str | None:
    """Return the activation of a layer that is nothing else, or None."""
    kind = type(layer).__name__
    if kind == "Activation":
        return _keras_name(layer.activation)
    if kind == "ReLU" and not layer.max_value and not layer.threshold:
        slope = float(layer.negative_slope)
        return "relu" if slope == 0 else ("leaky_relu" if slope == LEAKY_SLOPE else None)
    if kind == "LeakyReLU":
        return "leaky_relu" if float(layer.negative_slope) == LEAKY_SLOPE else None
    return SOFTMAX if kind == "Softmax" else None
