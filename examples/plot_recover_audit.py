"""
Audit what answers give away
============================

How many decimals may an endpoint publish? The audit recovers the target once. The network found then stands
in for it, and every level and budget is attacked by a recovery of its own, which asks the target nothing.
"""

import sys

import matplotlib.pyplot as plt

import unweave

priced = unweave.random_network([6, 4, 1], activation="tanh", seed=0, outer="normal")
found = unweave.audit(
    lambda x: priced(x),
    decimals=(4, 2),
    noise=(0.01,),
    budgets=(1_000, 6_000, 20_000),
    input_dim=6,
    hidden=[4],
    activation="tanh",
)
print(found.verdict)
print(found.recommendation)

# %%
# What the best attack within each budget knows about the weights: median relative error over the units of the
# first layer. A budget without a mark gave no network. Noise that is drawn afresh stops bisection.
figure, axes = plt.subplots(figsize=(7, 4), layout="constrained")
for level, mark in zip(found.levels, "o^sD", strict=False):
    best = [(budget, found.best(level, budget)) for budget in found.budgets]
    known = [(budget, point.median_weight_error) for budget, point in best if point and point.has_network]
    if known:
        axes.loglog(*zip(*known, strict=True), f"{mark}--", ms=8, lw=1, label=level.label)
axes.axhline(found.alarm, color="0.4", ls="--", label="alarm")
axes.set(xlabel="queries allowed", ylabel="median error of the weights", title="what each level gives away")
axes.legend()
if len(sys.argv) > 1:
    figure.savefig(sys.argv[1])
