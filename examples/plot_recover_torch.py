"""
Recover a torch module
======================

A torch module answers in float32. unweave finds the precision of the answers, takes wider steps, and brings
every parameter back to about the precision of single numbers. It never reads the parameters of the module.
"""

import sys

import matplotlib.pyplot as plt
import numpy as np
import torch

import unweave

torch.manual_seed(0)
module = torch.nn.Sequential(torch.nn.Linear(8, 6), torch.nn.Tanh(), torch.nn.Linear(6, 1))
with torch.no_grad():  # torch's own start is so small that tanh is nearly straight
    module[0].weight.mul_(3)

result = unweave.recover(module)
print(result)
truth = unweave.Network.from_torch(module)  # only to compare
print(unweave.compare(truth, result.network))
copy = result.network.to_torch()  # a module again, in double precision
print(copy)

# %%
# With ``derivatives="autodiff"`` the module is differentiated instead of asked for differences: far fewer
# passes for the same parameters.
passes = unweave.recover(module, derivatives="autodiff")
x = torch.as_tensor(np.random.default_rng(0).standard_normal((500, 8)), dtype=torch.float32)
with torch.no_grad():
    difference = (copy(x.double()) - module(x)).abs().numpy().ravel()
figure, (left, right) = plt.subplots(1, 2, figsize=(9, 3.6), layout="constrained")
left.hist(np.log10(difference + 1e-12), bins=30, color="#1b4965")
left.axvline(np.log10(np.finfo(np.float32).eps), color="#c1121f", ls="--", label="float32 rounding of 1")
left.set(title="copy against the module", xlabel="log10 of the difference", ylabel="rows of 500")
left.legend()
right.bar(["answers", "autodiff"], [result.queries, passes.queries], color=["#1b4965", "#62b6cb"])
right.set(title="rows and passes asked", ylabel="queries")
if len(sys.argv) > 1:
    figure.savefig(sys.argv[1])
