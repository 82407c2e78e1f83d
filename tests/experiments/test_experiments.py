"""Every experiment agrees with its source, with the default seed and with one that nothing was chosen by."""

from __future__ import annotations

import pytest

from unweave.experiments import EXPERIMENTS

CHEAP = 2.0  # seconds


def cases():
    for experiment in EXPERIMENTS.values():
        marks = [] if experiment.seconds < CHEAP else [pytest.mark.slow, pytest.mark.paper]
        for seed in (0, 1000):
            yield pytest.param(experiment, seed, marks=marks, id=f"{experiment.name}-{seed}")


@pytest.mark.parametrize(("experiment", "seed"), list(cases()))
def test_agrees(experiment, seed):
    said: list[str] = []
    figures = list(experiment.run(seed, said.append))
    assert said
    assert [figure for figure in figures if figure.agrees is False] == []
    assert any(figure.agrees for figure in figures)
    for figure in figures:
        assert figure.agrees is None or isinstance(figure.agrees, bool)
        assert figure.quantity
        assert figure.rule
        assert figure.relation in ("", "<=", ">=")
    assert len({(figure.quantity, figure.relation) for figure in figures}) == len(figures)


def test_same_seed_same_figures():
    first, second, other = (
        list(EXPERIMENTS["quadratic-threshold"].run(seed, lambda text: None)) for seed in (3, 3, 4)
    )
    assert first == second != other
