"""
Recover a logistic regression from three decimals
=================================================

A logistic regression behind a scaler answers probabilities with three decimals.
Nothing is told but the number of inputs. The scaler folds into the weights: what comes back reads raw inputs.
At ordinary inputs every answer is 0 or 1, and the recovery looks for where it is not.
"""

from __future__ import annotations

import sys

import matplotlib.pyplot as plt
import numpy as np

import unweave


def main(path: str | None) -> None:
    """Plant the model, recover it, compare and draw."""
    rng = np.random.default_rng(0)
    scale, location = 10.0 ** np.linspace(-3, 3, 8), rng.standard_normal(8)
    weights = rng.standard_normal(8) / scale
    truth = unweave.Network([weights[:, None]], [[-location @ weights]], ["sigmoid"])
    result = unweave.recover(lambda x: np.round(truth(x), 3), input_dim=8)
    print(result.status.name, result.queries, "rows")
    print("parameter error", unweave.compare(truth, result.network).parameter_error)

    figure, axes = plt.subplots(figsize=(6, 3.6), layout="constrained")
    axes.loglog(np.abs(weights), np.abs(result.network.weights[0][:, 0]), "o", color="#1b4965")
    axes.set(title="weights in raw inputs, seven orders apart", xlabel="true", ylabel="recovered")
    if path is not None:
        figure.savefig(path)


if __name__ == "__main__":
    main(sys.argv[1] if len(sys.argv) > 1 else None)
