"""Samples that are read in chunks: from disk, from Dask, from a generator, within a limit of rows."""

from __future__ import annotations

import tracemalloc

import numpy as np
import pytest

import unweave
from unweave import Samples
from unweave.targets.samples import chunks_of


def test_few_rows_are_kept_as_they_are() -> None:
    rng = np.random.default_rng(1000)
    x, y = rng.standard_normal((100, 3)), rng.standard_normal(100)
    samples = Samples.from_chunks(chunks_of(x, y, 30))
    assert len(samples) == 100
    order = np.lexsort(samples.x.T)
    np.testing.assert_array_equal(samples.x[order], x[np.lexsort(x.T)])
    np.testing.assert_array_equal(samples.y[order, 0], y[np.lexsort(x.T)])


def test_rows_are_drawn_evenly_from_all_chunks() -> None:
    numbers = np.arange(20_000.0)[:, None]
    samples = Samples.from_chunks(chunks_of(numbers, numbers, 999), most_rows=2000)
    assert len(samples) == 2000
    assert samples.notes == ("2,000 of 20,000 rows were kept, drawn at random",)
    # The mean of 2000 of the numbers has standard error 20000 / sqrt(12 * 2000) = 129: four of these.
    assert abs(samples.x.mean() - 10_000) < 520
    again = Samples.from_chunks(chunks_of(numbers, numbers, 999), most_rows=2000)
    np.testing.assert_array_equal(samples.x, again.x)


def test_a_generator_never_fills_the_memory() -> None:
    def chunks():
        rng = np.random.default_rng(1000)
        for _ in range(200):
            x = rng.standard_normal((5000, 10))
            yield x, x.sum(axis=1)

    tracemalloc.start()
    samples = Samples.from_chunks(chunks(), most_rows=4000)
    peak = tracemalloc.get_traced_memory()[1]
    tracemalloc.stop()
    assert len(samples) == 4000
    assert peak < 8e6  # all of it would be 88 MB


def test_a_network_comes_back_from_an_array_on_disk(tmp_path) -> None:
    net = unweave.random_network([5, 3, 1], activation="relu", seed=1000, outer="signed")
    x = np.random.default_rng(1000).standard_normal((20_000, 5))
    np.save(tmp_path / "x.npy", x)
    np.save(tmp_path / "y.npy", net(x))
    opened = (np.load(tmp_path / f"{name}.npy", mmap_mode="r") for name in "xy")
    samples = Samples.from_chunks(chunks_of(*opened, 3000), most_rows=600)
    result = unweave.recover(samples, hidden=[3], activation="relu")
    assert result.status is unweave.Status.RECOVERED
    assert unweave.compare(net, result.network).is_same


def test_dask_arrays_are_read_block_by_block() -> None:
    import dask.array

    x = dask.array.random.default_rng(1).standard_normal((1000, 4), chunks=(300, 4))
    samples = Samples.from_chunks(chunks_of(x, x[:, 0], 250))
    assert len(samples) == 1000
    unknown = x[x[:, 0] > 0]
    with pytest.raises(unweave.InvalidInput, match="compute_chunk_sizes"):
        next(chunks_of(unknown, unknown[:, 0]))


def test_chunks_that_do_not_fit_are_refused() -> None:
    x = np.zeros((4, 2))
    with pytest.raises(unweave.InvalidInput, match="at least one pair"):
        Samples.from_chunks([])
    with pytest.raises(unweave.InvalidInput, match="as many rows"):
        Samples.from_chunks([(x, np.zeros(3))])
    with pytest.raises(unweave.InvalidInput, match="columns of the first one"):
        Samples.from_chunks([(x, np.zeros(4)), (x[:, :1], np.zeros(4))])
    with pytest.raises(unweave.InvalidInput, match="most_rows must be"):
        Samples.from_chunks([(x, np.zeros(4))], most_rows=0)
