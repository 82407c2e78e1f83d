"""
What the shift xi does to ADAM
==============================

ADAM divides by sqrt(v) + xi. Proofs need a large xi; defaults make it tiny. The pictures show an autoencoder
of digits, with the best step of a grid for each xi: loss, norm of the gradient, and lowest eigenvalue of the
Hessian by Lanczos on exact products.
"""

import matplotlib.pyplot as plt
import numpy as np
from sklearn.datasets import load_digits

from unweave.errors import InvalidInput
from unweave.optimize.first_order import Adam, corrected, descend
from unweave.optimize.first_order_autoencoder import TiedAutoencoder
from unweave.optimize.first_order_tracking import track

images = load_digits().data / 16
rng = np.random.default_rng(1000)
images = images[rng.permutation(len(images))[:200]]
model = TiedAutoencoder(images, width=20)
start = model.start(rng)


def adam(step: float, shift: float) -> Adam:
    """Return ADAM with the usual averages and correction."""
    return Adam(corrected(step, 0.9, 0.999), 0.9, 0.999, shift)


def final_loss(step: float, shift: float) -> float:
    """Return the training loss after all steps; infinite if they diverge."""
    try:
        return model.loss(descend(model.gradient, start, adam(step, shift), STEPS).x)
    except InvalidInput:
        return np.inf


# %%
# Choose the best step for each shift by training loss, then draw its whole run.

STEPS, GRID = 250, (1e-2, 3e-2, 1e-1, 3e-1)
figure, axes = plt.subplots(1, 3, figsize=(12, 3.6), layout="constrained")
for shift, colour in ((1e-8, "#c1121f"), (1e-2, "#e09f3e"), (1.0, "#1b4965")):
    step = min(GRID, key=lambda candidate, shift=shift: final_loss(candidate, shift))
    run = track(
        model.gradient,
        start,
        adam(step, shift),
        STEPS,
        every=25,
        hessian_product=model.hessian_product,
        measure=model.loss,
        rng=np.random.default_rng(0),
    )
    axes[0].semilogy(run.times, run.values, color=colour, label=f"xi = {shift:g}, step {step:g}")
    axes[1].semilogy(run.descent.norms, color=colour, lw=0.8)
    axes[2].plot(run.times, run.lowest, color=colour)
axes[0].set(xlabel="steps", ylabel="training loss")
axes[1].set(xlabel="steps", ylabel="gradient norm")
axes[2].set(xlabel="steps", ylabel="lambda_min of the Hessian")
axes[2].set_yscale("symlog", linthresh=1e-3)
axes[0].legend(fontsize=8)
plt.show()
