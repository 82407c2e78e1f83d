"""Inputs of unknown units: features whose scales differ by up to seven orders of magnitude.

The generic network net (20 inputs, 40 units, one output, outer weights of random sign; tanh at odd seeds,
sigmoid at even ones) sits behind

    x -> net((x - shift) / scale),    scale = 10^U[-3, 4],  shift = 3 scale N(0, 1)    per feature.

Where to ask is learnt in three ways: from a domain (shift -+ 3 scale), from 200 example rows, or from
probing alone, with nothing told. The parameter error is taken after the scaling is undone:
W -> scale W, b -> b + shift . W.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

import unweave
from harness import Row, parser, run_recovery, say, seeds_of, summarise, tell
from unweave.arrays import Array

INPUTS, WIDTH = 20, 40
EXAMPLES = 200
_STREAM = 104_729  # second word of the seed of scales and shifts: they share nothing with the network


@dataclass(frozen=True, eq=False)
class Scaling:
    """The affine map in front of the network; both (D,)."""

    scale: Array
    shift: Array

    @staticmethod
    def random(rng: np.random.Generator) -> Scaling:
        """Scales over seven decades, shifts of three scales."""
        scale = 10 ** rng.uniform(-3, 4, INPUTS)
        return Scaling(scale, 3 * scale * rng.standard_normal(INPUTS))

    def before(self, network: unweave.Network) -> Callable[[Array], Array]:
        """The target x -> network((x - shift) / scale)."""
        return lambda x: network((x - self.shift) / self.scale)

    def undo(self, network: unweave.Network) -> unweave.Network:
        """The network in the coordinates (x - shift) / scale."""
        (first, *weights), (bias, *biases) = network.weights, network.biases
        skip = network.skip
        if skip is not None:
            biases[-1] = biases[-1] + self.shift @ skip
            skip = skip * self.scale[:, None]
        return unweave.Network(
            [first * self.scale[:, None], *weights],
            [bias + self.shift @ first, *biases],
            network.activations,
            skip=skip,
        )


def told_domain(scaling: Scaling, rng: np.random.Generator) -> dict[str, Any]:
    """A box of three scales around the shift."""
    return {"domain": (scaling.shift - 3 * scaling.scale, scaling.shift + 3 * scaling.scale)}


def told_examples(scaling: Scaling, rng: np.random.Generator) -> dict[str, Any]:
    """Gaussian rows around the shift."""
    return {"examples": scaling.shift + scaling.scale * rng.standard_normal((EXAMPLES, INPUTS))}


def told_nothing(scaling: Scaling, rng: np.random.Generator) -> dict[str, Any]:
    """Nothing: the target is probed."""
    return {}


WAYS = {"domain": told_domain, "examples": told_examples, "probing": told_nothing}


def measure(way: str, seeds: range) -> Row:
    """The row of one way of learning location and scale."""
    say(f"scaled_inputs: from {way}")
    runs = []
    for seed in seeds:
        truth = unweave.random_network(
            [INPUTS, WIDTH, 1],
            activation="tanh" if seed % 2 else "sigmoid",
            seed=seed,
            outer="signed",
            norms=(0.5, 2),
            bias=2,
        )
        rng = np.random.default_rng([seed, _STREAM])
        scaling = Scaling.random(rng)
        runs.append(
            run_recovery(
                truth,
                seed,
                target=scaling.before(truth),
                undo=scaling.undo,
                input_dim=INPUTS,
                **WAYS[way](scaling, rng),
            )
        )
    return summarise(f"from {way}", runs, way=way)


def main(argv: Sequence[str] | None = None) -> list[Row]:
    """Run the benchmark and print its table."""
    options = parser(__doc__, "0:10", "examples only, 1 seed")
    options.add_argument("--way", choices=list(WAYS), action="append", help="only this way (repeatable)")
    arguments = options.parse_args(argv)
    ways = arguments.way or (["examples"] if arguments.quick else list(WAYS))
    rows = [measure(way, seeds_of(arguments, 10, 1)) for way in ways]
    tell(rows, file=arguments.json)
    return rows


if __name__ == "__main__":
    main()
