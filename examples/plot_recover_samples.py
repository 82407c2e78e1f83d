"""
Recover a network from a table
==============================

A table of inputs and answers is already paid for, and nothing more can be asked. unweave holds some rows out,
fits the others and judges on the rows that no fit has seen. Too few rows do not decide, and the verdict says
so.
"""

import sys

import matplotlib.pyplot as plt
import numpy as np

import unweave

secret = unweave.random_network([6, 4, 1], activation="tanh", seed=0, outer="normal")
x = np.random.default_rng(1).standard_normal((1000, 6))
y = secret(x)

sizes = (40, 80, 200, 500, 1000)
results = [unweave.recover(unweave.Samples(x[:n], y[:n]), hidden=[4], activation="tanh") for n in sizes]
for n, result in zip(sizes, results, strict=True):
    print(f"{n:5d} rows: {result.status.name}")
assert results[-1].status is unweave.Status.RECOVERED

# %%
# The true error of the parameters, which unweave never sees, against the number of rows. The network has 33
# parameters.
errors = [unweave.compare(secret, result.network).parameter_error for result in results]
figure, axes = plt.subplots(figsize=(7, 3.8), layout="constrained")
for recovered, mark, colour in ((True, "o", "#1b4965"), (False, "X", "#c1121f")):
    here = [i for i, each in enumerate(results) if (each.status is unweave.Status.RECOVERED) == recovered]
    label = "verdict: RECOVERED" if recovered else "another verdict"
    axes.loglog(
        [sizes[i] for i in here], [min(errors[i], 10) for i in here], mark, ms=9, color=colour, label=label
    )
axes.set(xlabel="rows of the table", ylabel="worst parameter error (at most 10 shown)")
axes.legend()
if len(sys.argv) > 1:
    figure.savefig(sys.argv[1])
