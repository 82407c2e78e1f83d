"""Units behind samples, kinked or smooth: least squares with the linear numbers projected out.

A network with one hidden layer is linear in all but the weights and biases of its units. `problem` minimises
over these alone, `features` says what one unit contributes, `search` and `pruning` start at random with more
units than needed and leave out those that turn out to do nothing, `whitening` makes the inputs fit for it.
"""
