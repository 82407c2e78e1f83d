"""
A ReLU gate: measured errors under their bounds
===============================================

A gate ``y = relu(w . x)`` is learned from a stream, in one pass and with a few numbers of memory. Theory
says how fast it converges, and how close it comes if every label may be off by theta. Left: root mean
square error of 100 streams with the published step lambda/c1 and with the sharper step lambda/Lambda, each
under its bound. Right: the error that three attacks on the labels leave, below the floor theta
kappa/lambda. A gate that updates wherever y > 0 is lost at once.
"""

import matplotlib.pyplot as plt
import numpy as np

from unweave.gates import ReluGateLearner, error_floor, gate_constants, gate_update, poison

rng = np.random.default_rng(1000)
truth = rng.standard_normal(20)
truth /= np.linalg.norm(truth)
sample = rng.standard_normal((100_000, 20))
constants = gate_constants(sample, np.maximum(sample @ truth, 0))

figure, (left, right) = plt.subplots(1, 2, figsize=(10, 3.8), layout="constrained")
for rule, colour, length in (("theorem", "#1b4965", 6000), ("sharper", "#c1121f", 1200)):
    squares = []
    for _ in range(100):
        x = rng.standard_normal((length, 20))
        learner = ReluGateLearner(step=rule, constants=constants, truth=truth)
        fit = learner.partial_fit(x, np.maximum(x @ truth, 0)).fit()
        squares.append(fit.errors**2)
    factor = constants.theorem_factor if rule == "theorem" else constants.sharper_factor
    left.semilogy(fit.times, np.sqrt(np.mean(squares, axis=0)), color=colour, label=f"{rule} step")
    left.semilogy(fit.times, factor ** (fit.times / 2), "--", color=colour, lw=1, label="its bound")
left.set(xlabel="samples", ylabel="error of w", ylim=(1e-6, 2), title="clean labels, 20 inputs")
left.legend()

# %%
# Poison the labels: 10 inputs, 100 streams at once, errors at the end.

inputs, streams = 10, 100
truth = rng.standard_normal(inputs)
truth /= np.linalg.norm(truth)
sample = rng.standard_normal((100_000, inputs))
thetas = (0.01, 0.03, 0.1, 0.2, 0.4)
floors = []
errors = {attack: [] for attack in ("random", "biased", "adaptive", "adaptive, gate at 0")}
for theta in thetas:
    constants = gate_constants(sample, np.maximum(sample @ truth, 0), theta, truth)
    floors.append(error_floor(constants))
    for attack, measured in errors.items():
        name, gate = attack.split(",")[0], 0.0 if "gate" in attack else theta
        weights = np.zeros((streams, inputs))
        for _ in range(1500):
            x = rng.standard_normal((streams, inputs))
            y = np.maximum(x @ truth, 0) + poison(name, theta, x, weights, truth, rng)
            weights = gate_update(weights, x, y, constants.robust_step, gate)
        measured.append(np.sqrt(np.mean(np.sum((weights - truth) ** 2, axis=1))))

right.loglog(thetas, floors, "k--", lw=1, label="floor")
for attack, measured in errors.items():
    right.loglog(thetas, measured, "x:" if "gate" in attack else "o-", ms=4, label=attack)
right.set(xlabel="theta", ylabel="error of w", title="poisoned labels")
right.legend()
plt.show()
