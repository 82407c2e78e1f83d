"""
Recover a network from two decimals
===================================

An endpoint publishes two decimals, the same ones whenever it is asked. Rounding is then no noise: the input
at which the last digit flips can be bisected, and every flip is one exact equation. With more equations
than parameters, all parameters come back to rounding.
"""

import sys

import matplotlib.pyplot as plt
import numpy as np

import unweave

secret = unweave.random_network([6, 4, 1], activation="tanh", seed=2, outer="normal")
result = unweave.recover(lambda x: np.round(secret(x), 2), input_dim=6)
exact = unweave.compare(secret, result.network)
print(result)
print(exact)
assert exact.parameter_error < 1e-10

# %%
# With ``averaging`` the flips are left alone, as if the rounding were noise: least squares on that many rows
# per parameter. The error then falls only with the square root of the rows.
rows = (16, 64, 256, 1024)
averaged = [
    unweave.recover(
        lambda x: np.round(secret(x), 2), input_dim=6, hidden=[4], activation="tanh", averaging=each
    )
    for each in rows
]
errors = [unweave.compare(secret, each.network).parameter_error for each in averaged]

figure, (left, right) = plt.subplots(1, 2, figsize=(9, 3.6), layout="constrained")
t = np.linspace(-1, 1, 801)
path = t[:, None] * np.eye(6)[0] * 0.1
left.plot(t, secret(path), color="#1b4965", label="network")
left.step(t, np.round(secret(path), 2), where="mid", color="#c1121f", lw=1, label="what is published")
left.set(title="every step is an equation", xlabel="place on a short line", ylabel="answer")
left.legend()
right.loglog([each.queries for each in averaged], errors, "s--", color="0.4", label="averaging")
right.loglog(
    result.queries, exact.parameter_error, "o", ms=9, color="#1b4965", label="flips of the last digit"
)
right.set(title="error of the parameters", xlabel="queries", ylabel="worst parameter error", ylim=(1e-16, 1))
right.legend(loc="lower right")
if len(sys.argv) > 1:
    figure.savefig(sys.argv[1])
