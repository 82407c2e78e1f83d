"""
Recover a smooth network
========================

A network of 40 tanh units answers; nothing is told but the number of inputs. Its derivatives span exactly the
squares of its weight vectors, so their spectrum ends at the width. Gauss-Newton on all parameters then brings
the error down to rounding.
"""

import sys

import matplotlib.pyplot as plt
import numpy as np

import unweave

secret = unweave.random_network(
    [20, 40, 1], activation="tanh", seed=0, outer="normal", norms=(0.5, 2), bias=1
)
result = unweave.recover(lambda x: secret(x), input_dim=20)
print(result)
print(unweave.compare(secret, result.network))
assert result.status is unweave.Status.RECOVERED

# %%
# Left: singular values of the sampled derivatives, with their gap at the width. Right: residual of the final
# fit, step by step, against what rounding of the answers leaves.
evidence = result.evidence
figure, (left, right) = plt.subplots(1, 2, figsize=(9, 3.6), layout="constrained")
index = np.arange(1, len(evidence.spectrum) + 1)
inside = index <= evidence.width
left.semilogy(index[inside], evidence.spectrum[inside], "o", ms=4, color="#1b4965", label="units")
left.semilogy(index[~inside], evidence.spectrum[~inside], "x", ms=5, color="#c1121f", label="rounding")
left.set(title=f"the spectrum ends at {evidence.width} units", xlabel="index", ylabel="singular value")
left.legend()
right.semilogy(evidence.fit_history, "o-", color="#1b4965")
right.axhline(evidence.fit_floor, color="0.5", ls="--", label="rounding of the answers")
right.set(title="fit of all parameters", xlabel="step", ylabel="residual (rms)")
right.legend()
if len(sys.argv) > 1:
    figure.savefig(sys.argv[1])
