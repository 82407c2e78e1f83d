"""The table of experiments: complete, well named, and light."""

from __future__ import annotations

import importlib
import pkgutil
import re
import subprocess
import sys

import pytest

import unweave.experiments
from unweave.experiments import EXPERIMENTS, studies
from unweave.experiments.study import Study


def test_every_run_is_registered_and_every_row_has_one():
    names = [module.name for module in pkgutil.iter_modules(unweave.experiments.__path__)]
    modules = [importlib.import_module(f"unweave.experiments.{name}") for name in names]
    runs = [name for module in modules for name in vars(module) if name.startswith("run_")]
    claims = [name for name, experiment in EXPERIMENTS.items() if experiment.study is None]
    assert sorted(runs) == sorted(f"run_{name.replace('-', '_')}" for name in claims)


def test_every_study_is_registered_and_every_row_has_one():
    found = [module.name for module in pkgutil.iter_modules(studies.__path__)]
    modules = [importlib.import_module(f"unweave.experiments.studies.{name}") for name in found]
    held = [study for module in modules for study in vars(module).values() if isinstance(study, Study)]
    listed = [experiment.study() for experiment in EXPERIMENTS.values() if experiment.study is not None]
    assert {id(study) for study in held} == {id(study) for study in listed}


def test_rows_do_not_hide_each_other():
    assert len(EXPERIMENTS) == len(unweave.experiments.catalogue._EXPERIMENT_ROWS)


@pytest.mark.parametrize("experiment", EXPERIMENTS.values(), ids=EXPERIMENTS)
def test_rows_say_what_a_reader_needs(experiment):
    assert re.fullmatch(r"[a-z]+(-[a-z]+)*", experiment.name)
    source, comma, place = experiment.source.partition(", ")
    assert source
    assert comma
    assert place
    assert experiment.claim.endswith(".")
    assert len(experiment.claim) <= 66  # one line of the list
    assert experiment.setting
    assert 0 < experiment.seconds < 120


def test_all_five_sources_are_there():
    assert len({experiment.source.partition(",")[0] for experiment in EXPERIMENTS.values()}) == 5


def test_the_list_loads_no_experiment_and_no_numpy():
    code = (
        "import sys; from unweave.experiments import EXPERIMENTS; list(EXPERIMENTS.values());"
        "print(*sorted(name for name in sys.modules if name in ('numpy', 'scipy', 'torch', 'rich')"
        " or name.startswith('unweave.')))"
    )
    done = subprocess.run([sys.executable, "-c", code], check=True, capture_output=True, text=True)
    parts = ("catalogue", "experiment")
    assert done.stdout.split() == ["unweave.experiments", *(f"unweave.experiments.{part}" for part in parts)]
