"""Recover a neural network from what it answers, with a certificate of how sure that is.

Names are loaded when they are first used: importing the package costs milliseconds, and a room such as
``unweave.exact`` needs no import of its own.
"""

from importlib import import_module
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from unweave.access.adapters.command_target import CommandTarget
    from unweave.access.queries import Queries
    from unweave.access.samples import Samples
    from unweave.activations import (
        Activation,
        Reflection,
        activation_names,
        get_activation,
        register_activation,
    )
    from unweave.auditing import Audit, audit
    from unweave.comparison import Comparison, compare
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
    from unweave.journal import Progress, Stage
    from unweave.network import Network
    from unweave.planning import Plan, plan
    from unweave.random_networks import random_network
    from unweave.recovering import recover
    from unweave.result import Certificate, Check, Recovery, Status
    from unweave.symmetry import canonical

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
    "Samples",
    "Stage",
    "Status",
    "TargetError",
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
    "access.adapters.command_target": ("CommandTarget",),
    "access.queries": ("Queries",),
    "access.samples": ("Samples",),
    "activations": (
        *("Activation", "Reflection"),
        *("activation_names", "get_activation", "register_activation"),
    ),
    "auditing": ("Audit", "audit"),
    "comparison": ("Comparison", "compare"),
    "errors": (
        *("BudgetExhausted", "CheckpointError", "ExecutionError", "Interrupted"),
        *("InvalidInput", "TargetError", "UnweaveError"),
    ),
    "files": ("load",),
    "journal": ("Progress", "Stage"),
    "network": ("Network",),
    "planning": ("Plan", "plan"),
    "random_networks": ("random_network",),
    "recovering": ("recover",),
    "result": ("Certificate", "Check", "Recovery", "Status"),
    "symmetry": ("canonical",),
}
_HOME = {name: home for home, names in _HOMES.items() for name in names}
_ROOMS = (
    *("auditing", "certify", "construct", "deep", "derivatives", "diagnose", "exact", "execution"),
    *("experiments", "gates", "hermite", "optimize", "projection", "quadratic", "relu", "report"),
    *("sklearn", "smooth", "sparse_coding", "subspace", "tensor_start"),
)


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
