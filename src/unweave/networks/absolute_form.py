"""One hidden layer of kinked units without the units' signs.

A (leaky) ReLU with slope p below zero is p-relu(z) = ((1-p) |z| + (1+p) z) / 2, so that

    sum_i a_i p-relu(s_i z_i)  =  sum_i h_i |z_i| + S^T x + c,      z_i = w_i . x + b_i,

    h_i = (1-p)/2 a_i,    S = (1+p)/2 sum_i s_i w_i a_i^T,    c = offset + (1+p)/2 sum_i s_i b_i a_i,

whatever the signs s_i = +-1: they only enter the affine part. What has been found up to signs is kept like
this, and `unweave.networks.signs` finds signs that explain the affine part.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from unweave.arrays import Array, BoolArray


@dataclass(frozen=True, eq=False)
class AbsoluteForm:
    """f(x) = |x W + b| H + x S + c, with unit columns of W."""

    weights: Array
    """W, (d, m); columns of length one."""
    biases: Array
    """b, (m,)."""
    heights: Array
    """H, (m, K): half the jump of the slope across each unit's hyperplane."""
    slope: Array
    """S, (d, K)."""
    offset: Array
    """c, (K,)."""

    def __call__(self, x: Array) -> Array:
        """Return values (n, K) at x (n, d)."""
        return np.asarray(
            np.abs(x @ self.weights + self.biases) @ self.heights + x @ self.slope + self.offset
        )

    def gradient(self, x: Array) -> Array:
        """Return the gradients (d, K) at one point x (d,)."""
        signs = np.sign(x @ self.weights + self.biases)
        return np.asarray((self.weights * signs) @ self.heights + self.slope)

    @property
    def width(self) -> int:
        """m"""
        return len(self.biases)

    def keep(self, units: BoolArray) -> AbsoluteForm:
        """Return the form with only the ``units`` (m,); the affine part stays."""
        return AbsoluteForm(
            self.weights[:, units], self.biases[units], self.heights[units], self.slope, self.offset
        )

    def joined(self, other: AbsoluteForm) -> AbsoluteForm:
        """Return the sum of both."""
        return AbsoluteForm(
            np.hstack([self.weights, other.weights]),
            np.concatenate([self.biases, other.biases]),
            np.concatenate([self.heights, other.heights]),
            self.slope + other.slope,
            self.offset + other.offset,
        )

    def scaled(self, factors: Array) -> AbsoluteForm:
        """Return the form of values that are ``factors`` (K,) times as large."""
        return AbsoluteForm(
            self.weights, self.biases, self.heights * factors, self.slope * factors, self.offset * factors
        )
