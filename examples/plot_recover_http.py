"""
Recover the network behind an endpoint
======================================

A server on this machine answers predictions over HTTP and drops some of them. unweave asks again, counts
every answer once, and finds the same network, bit for bit, as without the server.
"""

import sys

import matplotlib.pyplot as plt
import numpy as np

import unweave
from unweave.serving import Faults, ReferenceServer, ServedModel
from unweave.targets import HttpOptions, open_http_target

secret = unweave.random_network([10, 8, 1], activation="tanh", seed=0, outer="normal")
model = ServedModel(secret, n_inputs=10, n_outputs=1)
with (
    ReferenceServer(model, faults=Faults(drop=0.05, seed=0)) as server,
    open_http_target(server.url, HttpOptions(batch_rows=64)) as target,
):
    result = unweave.recover(target)
    print(result)
    print(f"{target.requests} requests, {target.retries} of them sent again")
print(unweave.compare(secret, result.network))

inside = unweave.recover(lambda x: secret(x), input_dim=10)
assert inside.network == result.network

# %%
# True and recovered parameters, and the rows that every stage asked.
pairs = [
    (np.sort(np.abs(np.r_[true.ravel()])), np.sort(np.abs(np.r_[found.ravel()])))
    for true, found in zip(secret.weights, result.network.weights, strict=True)
]
figure, (left, right) = plt.subplots(1, 2, figsize=(9, 3.6), layout="constrained")
for (true, found), name, colour in zip(
    pairs, ("first layer", "output layer"), ("#1b4965", "#c1121f"), strict=True
):
    left.plot(true, found, "o", ms=4, color=colour, label=name)
left.set(title="sizes of the weights", xlabel="true", ylabel="recovered")
left.legend()
right.barh(
    [stage.name for stage in result.stages], [stage.queries for stage in result.stages], color="#1b4965"
)
right.invert_yaxis()
right.set(title=f"{result.queries:,} rows over HTTP", xlabel="rows")
if len(sys.argv) > 1:
    figure.savefig(sys.argv[1])
