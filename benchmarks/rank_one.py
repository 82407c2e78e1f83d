"""All rank-one components of a span: d = 40, r = 600, against the GEMM time that cannot be avoided.

The subspace is the exact span of w w^T over 600 random unit vectors in R^40 (p = 820 packed coordinates).

**Lower bound.** A power step on one row is a projection of a packed matrix, that is two products with a
factor of k columns (k = r for a basis, p - r for the complement) or one product with a p x p matrix:
4 p k or 2 p^2 flops. Let S be the number of power steps made, summed over all restarts (rows that have
converged make none). The bound is

    S x flops per step / GEMM rate,

with the rate (of float64; of float32 in a column of its own) measured in the same run, on the same
factor's shapes at a full batch of r rows, best of
several repetitions, in CPU seconds. It leaves out everything but those products: packing and unpacking,
Newton steps, new starts, sorting out duplicates. The ratio of the CPU seconds to it is what all that costs.

``--peer PATH`` runs a public implementation beside it, in the same process on the same planted directions: a
file whose ``subspace_power_method(T, d, 4, r)`` returns the components (d, r), and weights, of the symmetric
tensor T = sum of w w w w. Its seconds count from the tensor on; ours count from the span on.
"""

from __future__ import annotations

import importlib
import sys
import time
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

import numpy as np

from harness import Row, Run, parser, peak_rss_mb, say, search_seed, seeds_of, summarise, tell, unasked
from planted import FOUND, exact_span, planted_directions
from unweave.arrays import AnyArray, Array
from unweave.experiments.planted import distances
from unweave.subspace import RankOneSpace, subspace_power_method

SETTING = (40, 600)
QUICK = (20, 120)
COLUMNS = {
    "restarts": "restarts / r",
    "power_steps": "power steps S",
    "gemm_gflops": "GEMM Gflop/s",
    "gemm_seconds": "GEMM lower bound s",
    "ratio": "CPU s / lower bound",
    "single_ratio": "the same with products in float32",
    "missed": "components missed",
}
PEER_COLUMNS = {"peer_cpu_seconds": "peer's CPU s", "peer_missed": "components the peer missed"}
_SHORTEST_TIMING = 0.05  # seconds of products per repetition: well above the clock's resolution
_REPETITIONS = 5


class CountingSpace(RankOneSpace):
    """A subspace that counts the rows on which a power step was made."""

    rows_stepped = 0  # by all spaces of a search, in either precision

    def objective_and_image(self, directions: AnyArray) -> tuple[AnyArray, AnyArray]:
        """As in `RankOneSpace`; the power steps are its only callers during a search."""
        CountingSpace.rows_stepped += len(directions)
        return super().objective_and_image(directions)

    @property
    def inner(self) -> int | None:
        """Columns k of the factor; None for the dense form."""
        columns = {"basis": self.rank, "complement": self.packing.size - self.rank, "dense": None}
        return columns[self.representation]

    @property
    def flops_per_step(self) -> int:
        """4 p k, or 2 p^2 for the dense form."""
        size = self.packing.size
        return 2 * size * size if self.inner is None else 4 * size * self.inner


def gemm_rate(space: CountingSpace, dtype: type[np.floating[Any]] = np.float64) -> float:
    """Flops per CPU second of the projection's products at a full batch; best of a few repetitions."""
    rng = np.random.default_rng(0)
    size, inner = space.packing.size, space.inner
    rows = rng.standard_normal((space.rank, size)).astype(dtype)
    factor = rng.standard_normal((size, size if inner is None else inner)).astype(dtype)
    best = 0.0
    for _ in range(_REPETITIONS):
        products, began = 0, time.process_time()
        while time.process_time() - began < _SHORTEST_TIMING:
            inside = rows @ factor
            if inner is not None:
                inside @ factor.T
            products += 1
        rate = products * space.rank * space.flops_per_step / (time.process_time() - began)
        best = max(best, rate)
    return best


Peer = Callable[..., tuple[Array, Array]]


def load_peer(path: Path) -> Peer:
    """The public implementation in the file at ``path``, which may import its neighbors."""
    sys.path.insert(0, str(path.resolve().parent))
    try:
        peer: Peer = importlib.import_module(path.stem).subspace_power_method
    finally:
        sys.path.pop(0)
    return peer


def peer_figures(peer: Peer, planted: Array, seed: int) -> dict[str, float]:
    """CPU seconds of the peer on the tensor of the planted rows (r, d), and how many of them it missed."""
    rank, dimension = planted.shape
    squares = np.einsum("ri,rj->ijr", planted, planted).reshape(dimension**2, rank)
    tensor = (squares @ squares.T).reshape((dimension,) * 4)
    np.random.seed(seed)  # noqa: NPY002 - what public code draws from
    began = time.process_time()
    components = peer(tensor, dimension, 4, rank)[0]
    seconds = time.process_time() - began
    missed = int((distances(planted, np.asarray(components).T) > FOUND).sum())
    say(f"  seed {seed}: peer {missed} missed, {seconds:.2f} CPU s")
    return {"peer_cpu_seconds": seconds, "peer_missed": missed}


def search(dimension: int, rank: int, seed: int, peer: Peer | None = None) -> Run:
    """One search of one planted span, with its lower bound."""
    planted = planted_directions(dimension, rank, seed)
    space = exact_span(planted, CountingSpace)
    assert isinstance(space, CountingSpace)
    rate, single = gemm_rate(space), gemm_rate(space, np.float32)
    CountingSpace.rows_stepped = 0
    wall, cpu = time.perf_counter(), time.process_time()
    result = subspace_power_method(space, np.random.default_rng(search_seed(seed)))
    wall, cpu = time.perf_counter() - wall, time.process_time() - cpu
    errors = distances(planted, result.directions)
    missed = int((errors > FOUND).sum())
    bound = CountingSpace.rows_stepped * space.flops_per_step / rate
    say(f"  seed {seed}: {missed} missed, {cpu:.2f} CPU s, lower bound {bound:.2f} s")
    return Run(
        seed,
        recovered=missed == 0,
        parameter_error=float(errors.max()),
        seconds=wall,
        cpu_seconds=cpu,
        stages={"power method": wall},
        extra={
            "restarts": result.restarts / rank,
            "power_steps": CountingSpace.rows_stepped,
            "gemm_gflops": rate / 1e9,
            "gemm_seconds": bound,
            "ratio": cpu / bound,
            "single_ratio": cpu / bound * single / rate,
            "missed": missed,
            **({} if peer is None else peer_figures(peer, planted, seed)),
        },
        peak_rss_mb=peak_rss_mb(),
    )


def measure(dimension: int, rank: int, seeds: range, peer: Peer | None = None) -> Row:
    """The row of one setting; medians over the seeds, the sum of what was missed."""
    say(f"rank_one: d = {dimension}, r = {rank}")
    runs = [search(dimension, rank, seed, peer) for seed in seeds]
    columns = COLUMNS if peer is None else COLUMNS | PEER_COLUMNS
    medians = {key: float(np.median([run.extra[key] for run in runs])) for key in columns}
    medians |= {key: sum(run.extra[key] for run in runs) for key in columns if key.endswith("missed")}
    return summarise(f"d={dimension}, r={rank}", runs, **medians)


def main(argv: Sequence[str] | None = None) -> list[Row]:
    """Run the benchmark and print its table."""
    commands = parser(__doc__, "0:3", f"d, r = {QUICK}, 1 seed")
    commands.add_argument("--peer", type=Path, metavar="PATH", help="a public implementation to run besides")
    arguments = commands.parse_args(argv)
    peer = None if arguments.peer is None else load_peer(arguments.peer)
    rows = [measure(*(QUICK if arguments.quick else SETTING), seeds_of(arguments, 3, 1), peer)]
    columns = COLUMNS if peer is None else COLUMNS | PEER_COLUMNS
    tell(rows, {**unasked("worst_fresh_error", "wrong"), **columns}, arguments.json)
    return rows


if __name__ == "__main__":
    main()
