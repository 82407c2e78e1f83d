"""Hermite coefficients of a function of Gaussian inputs, from samples.

The coefficient of order k is the tensor T_k = E f(x) He_k(x) (`tensors`, in the packed coordinates of
`symmetric_tensors`). `moments` adds it up from samples, `estimated_coefficients` with the noise of every
order, `contractions` where the tensor itself is too large. `unweave.numerics.whitening` makes inputs
standard; `gaussianity` says whether they could have been Gaussian at all.
"""
