"""
Recover two hidden layers
=========================

Two hidden layers of tanh units; neither depth, widths nor activation are told. Far from the origin every
unit of the first layer is a step, so that circles out there show its hyperplanes. Between them the first
layer is a pattern of signs, and the second layer becomes one hidden layer with known inputs.
"""

import sys

import matplotlib.pyplot as plt
import numpy as np

import unweave

secret = unweave.random_network([8, 12, 10, 1], activation="tanh", seed=0, outer="normal", bias=0.5)
result = unweave.recover(lambda x: secret(x), input_dim=8)
print(result)
print(unweave.compare(secret, result.network))
assert result.status is unweave.Status.RECOVERED

# %%
# Left: answers along a far circle, steps between plateaus, one for every unit of the first layer and side.
# Right: rows asked by every stage of the recovery.
rng = np.random.default_rng(1)
u, v = np.linalg.qr(rng.standard_normal((8, 2)))[0].T
angle = np.linspace(0, np.pi, 4000)
circle = 1e4 * (np.cos(angle)[:, None] * u + np.sin(angle)[:, None] * v)
figure, (left, right) = plt.subplots(1, 2, figsize=(10, 3.6), layout="constrained")
left.plot(angle, secret(circle), color="#1b4965", lw=1.2)
left.set(title="half a far circle", xlabel="angle", ylabel="answer")
names = [stage.name for stage in result.stages]
right.barh(names, [stage.queries for stage in result.stages], color="#1b4965")
right.invert_yaxis()
right.set(title=f"{result.queries:,} rows in all", xlabel="rows")
if len(sys.argv) > 1:
    figure.savefig(sys.argv[1])
