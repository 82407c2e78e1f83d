"""Recover a neural network from what it answers, with a certificate of how sure that is."""

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
from unweave.audit import Audit, audit
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
from unweave.plan import Plan, plan
from unweave.random_networks import random_network
from unweave.recover import recover
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
