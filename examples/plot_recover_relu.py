"""
Recover a ReLU network
======================

Along a line the answers of a ReLU network are straight pieces. Every unit bends them once, so one long line
shows every unit: where its kink is, and by how much the gradient jumps there.
"""

import sys

import matplotlib.pyplot as plt
import numpy as np

import unweave

secret = unweave.random_network([10, 20, 1], activation="relu", seed=0, outer="normal", bias=1)
result = unweave.recover(lambda x: secret(x), input_dim=10)
print(result)
print(unweave.compare(secret, result.network))
assert result.status is unweave.Status.RECOVERED

# %%
# The first line that was searched, near its start: answers of the network, and the kinks that were found. The
# lower picture takes the straight part away.
start, direction = result.evidence.line
kinks = result.evidence.kinks[np.abs(result.evidence.kinks) < 8]
t = np.linspace(-8, 8, 1601)
answers = secret(start + t[:, None] * direction)[:, 0]
chord = answers[0] + (answers[-1] - answers[0]) * (t - t[0]) / (t[-1] - t[0])
figure, (upper, lower) = plt.subplots(2, 1, sharex=True, figsize=(8, 4.6), layout="constrained")
for axes, values in ((upper, answers), (lower, answers - chord)):
    axes.plot(t, values, color="#1b4965", lw=1.5)
    axes.plot(kinks, np.interp(kinks, t, values), "o", ms=5, color="#c1121f")
upper.set(title=f"{len(kinks)} of {len(result.evidence.kinks)} kinks on the first line", ylabel="answer")
lower.set(xlabel="place on the line", ylabel="without the chord")
if len(sys.argv) > 1:
    figure.savefig(sys.argv[1])
