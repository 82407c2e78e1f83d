"""Recover a neural network from what it answers, with a certificate of how sure that is.

Names are loaded when they are first used: importing the package costs milliseconds, and a room such as
``unweave.exact`` needs no import of its own.
"""

from importlib import import_module
from typing import TYPE_CHECKING

if TYPE_CHECKING:  # what `__getattr__` finds, with its types
    from unweave import certify as certify
    from unweave import construct as construct
    from unweave import derivatives as derivatives
    from unweave import exact as exact
    from unweave import execution as execution
    from unweave import experiments as experiments
    from unweave import gates as gates
    from unweave import methods as methods
    from unweave import networks as networks
    from unweave import numerics as numerics
    from unweave import optimize as optimize
    from unweave import plot as plot
    from unweave import published as published
    from unweave import quadratic as quadratic
    from unweave import report as report
    from unweave import sklearn as sklearn
    from unweave import sparse_coding as sparse_coding
    from unweave import subspace as subspace
    from unweave import targets as targets
    from unweave import tensor_start as tensor_start
    from unweave.audits import Audit, audit
    from unweave.diagnose.room import DiagnoseRoom
    from unweave.errors import (
        BudgetExhausted,
        CheckpointError,
        ExecutionError,
        Interrupted,
        InvalidInput,
        TargetError,
        UnweaveError,
    )
    from unweave.files import load
    from unweave.networks.activations import (
        Activation,
        Reflection,
        activation_names,
        get_activation,
        register_activation,
    )
    from unweave.networks.comparison import Comparison, compare
    from unweave.networks.network import Network
    from unweave.networks.random import random_network
    from unweave.networks.ridge_sum import RidgeSum
    from unweave.networks.symmetry import canonical
    from unweave.networks.trees import TreeEnsemble
    from unweave.recovery.plan import Plan, plan
    from unweave.recovery.recover import recover
    from unweave.recovery.result import Certificate, Recovery, Status
    from unweave.search.evidence import Check
    from unweave.search.journal import Progress, Stage
    from unweave.targets.adapters.command_target import CommandTarget
    from unweave.targets.queries import Queries
    from unweave.targets.samples import Samples

    diagnose: DiagnoseRoom

__version__ = "0.1.0"

__all__ = [
    "Activation",
    "Audit",
    "BudgetExhausted",
    "Certificate",
    "Check",
    "CheckpointError",
    "CommandTarget",
    "Comparison",
    "ExecutionError",
    "Interrupted",
    "InvalidInput",
    "Network",
    "Plan",
    "Progress",
    "Queries",
    "Recovery",
    "Reflection",
    "RidgeSum",
    "Samples",
    "Stage",
    "Status",
    "TargetError",
    "TreeEnsemble",
    "UnweaveError",
    "activation_names",
    "audit",
    "canonical",
    "compare",
    "get_activation",
    "load",
    "plan",
    "random_network",
    "recover",
    "register_activation",
]

# No module may have a public name of another: importing it would put the module in that name's place.
_HOMES = {
    "audits": ("Audit", "audit"),
    "errors": (
        *("BudgetExhausted", "CheckpointError", "ExecutionError", "Interrupted"),
        *("InvalidInput", "TargetError", "UnweaveError"),
    ),
    "files": ("load",),
    "networks.activations": (
        *("Activation", "Reflection"),
        *("activation_names", "get_activation", "register_activation"),
    ),
    "networks.comparison": ("Comparison", "compare"),
    "networks.network": ("Network",),
    "networks.random": ("random_network",),
    "networks.ridge_sum": ("RidgeSum",),
    "networks.symmetry": ("canonical",),
    "networks.trees": ("TreeEnsemble",),
    "recovery.plan": ("Plan", "plan"),
    "recovery.recover": ("recover",),
    "recovery.result": ("Certificate", "Recovery", "Status"),
    "search.evidence": ("Check",),
    "search.journal": ("Progress", "Stage"),
    "targets.adapters.command_target": ("CommandTarget",),
    "targets.queries": ("Queries",),
    "targets.samples": ("Samples",),
}
_HOME = {name: home for home, names in _HOMES.items() for name in names}
_ROOMS = (
    *("certify", "construct", "derivatives", "diagnose", "exact", "execution", "experiments", "gates"),
    *("methods", "networks", "numerics", "optimize", "plot", "published", "quadratic", "report", "sklearn"),
    *("sparse_coding", "subspace", "targets", "tensor_start"),
)


if not TYPE_CHECKING:  # a type checker would take every misspelt name for one of these

    def __getattr__(name: str) -> object:
        if name in _ROOMS:
            return import_module(f"{__name__}.{name}")
        if name not in _HOME:
            raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
        value = getattr(import_module(f"{__name__}.{_HOME[name]}"), name)
        globals()[name] = value  # found without this function from now on
        return value


def __dir__() -> list[str]:
    return sorted({*globals(), *__all__, *_ROOMS})
