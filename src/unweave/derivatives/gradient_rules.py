"""How differences become a gradient, and what that does to higher powers.

    axes    G_i = (f(x + h e_i) - f(x - h e_i)) / 2h
    pairs   least squares on these and on the slopes G_i + G_j along e_i + e_j, i < j: a compact Hessian
            stencil contains them, and they leave 1/(d-1) of the variance of the axes alone
    forward G_i = (f(x + h e_i) - f(x)) / h: half the rows of the axes, each of them an equation
    exact   no differences at all, but the derivative itself: nothing becomes of higher powers

All but the last are linear in the differences. For a unit g(w . x + b), whose difference along q is a series
in powers of w . q (odd ones, unless it is forward), a rule therefore turns (w . q)^2, (w . q)^3, ... into
known vectors: the exact truncation error of the rule, with its derivative with respect to w.
"""

from __future__ import annotations

from functools import lru_cache
from typing import Literal

import numpy as np

from unweave.arrays import Array
from unweave.subspace.symmetric import symmetric_packing

GradientRule = Literal["axes", "pairs", "forward", "exact"]

LEADING_POWERS: dict[GradientRule, int] = {"axes": 3, "pairs": 3, "forward": 2}
"""Lowest power of w . q that the rules mistake for a slope."""


def pair_gradient(along_axes: Array, along_pairs: Array, axis: int) -> Array:
    """Least-squares gradient G from slopes G_i along the axes and G_i + G_j along the pairs i < j.

    The normal matrix is (d-1) I + 1 1^T, with inverse (I - 1 1^T / (2d-1)) / (d-1).
    """
    d = along_axes.shape[axis]
    sums = np.moveaxis(along_axes, axis, -1) + np.moveaxis(along_pairs, axis, -1) @ pair_incidence(d)
    result = (sums - sums.sum(axis=-1, keepdims=True) / (2 * d - 1)) / (d - 1)
    return np.moveaxis(result, -1, axis)


@lru_cache(maxsize=16)
def pair_incidence(d: int) -> Array:
    """(d(d-1)/2, d) rows e_i + e_j, i < j, in packed order."""
    packing = symmetric_packing(d)
    off = packing.rows != packing.columns
    axes = np.eye(d)
    incidence: Array = axes[packing.rows[off]] + axes[packing.columns[off]]
    incidence.setflags(write=False)
    return incidence


def power_gradient(directions: Array, power: int, rule: GradientRule) -> Array:
    """What the gradient rule makes of t -> (w . t)^power, for the columns w of ``directions`` (d, m).

    For ``power`` 1 that is w itself; along the axes it is w_i^power; along pairs the least-squares
    gradient of the slopes w_i^power and (w_i + w_j)^power; an exact gradient at 0 sees no higher power.
    """
    if rule == "exact" and power > 1:
        return np.zeros_like(directions)
    if rule in ("axes", "forward") or power == 1:
        return np.asarray(directions**power)
    pairs = (pair_incidence(len(directions)) @ directions) ** power
    return pair_gradient(directions**power, pairs, axis=0)


def power_jacobian(directions: Array, power: int, rule: GradientRule) -> Array:
    """Derivative (m, d, d) of `power_gradient` with respect to each column w."""
    d = len(directions)
    if rule == "exact" and power > 1:
        return np.zeros((directions.shape[1], d, d))
    on_axes = power * directions.T[:, :, None] ** (power - 1) * np.eye(d)  # (m, d, d)
    if rule in ("axes", "forward"):
        return on_axes
    # Along e_i + e_l the slope (w_i + w_l)^power depends on w_i and w_l alone, and enters the sums of both.
    w = directions.T
    mixed = power * (w[:, :, None] + w[:, None, :]) ** (power - 1)
    mixed[:, np.arange(d), np.arange(d)] = 0.0
    sums = on_axes + mixed
    sums[:, np.arange(d), np.arange(d)] += mixed.sum(axis=2)
    return np.asarray((sums - sums.sum(axis=1, keepdims=True) / (2 * d - 1)) / (d - 1))
