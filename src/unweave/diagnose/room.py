"""`unweave.diagnose` itself, called: how hard a network is to recover, in one answer."""

from __future__ import annotations

from dataclasses import dataclass
from types import ModuleType

from unweave.diagnose.deep import DeepDiagnostics, diagnose_layers
from unweave.diagnose.weights import WeightDiagnostics, diagnose_network
from unweave.errors import InvalidInput
from unweave.networks.html_tables import html_figures, number
from unweave.networks.network import Network


@dataclass(frozen=True, eq=False, repr=False)
class Diagnosis:
    """How hard a network is to recover, judged by its parameters."""

    network: Network
    layers: DeepDiagnostics
    """Hypotheses of the theory, layer by layer."""
    weights: WeightDiagnostics | None
    """Figures of the weights of a network with one hidden layer; None for deeper ones."""

    def figures(self) -> dict[str, float]:
        """Return the figures that say most, by name."""
        first = self.layers.layers[0].incoherence
        found: dict[str, float] = {"units": self.layers.units, "coherence": first.coherence}
        found["condition of G2"] = first.gram2_condition
        if self.weights is not None and self.weights.learnability is not None:
            found["learnability"] = self.weights.learnability.alpha
        return found

    def __repr__(self) -> str:
        figures = ", ".join(f"{name} {number(value)}" for name, value in self.figures().items())
        return f"Diagnosis({self.network!r}, {figures})"

    def _repr_html_(self) -> str:
        """Show the figures in a notebook."""
        rows = [(name, number(value)) for name, value in self.figures().items()]
        rows.append(("pyramidal", "yes" if self.layers.pyramidal else "no"))
        return html_figures(f"Diagnosis of {self.network!r}", rows)


def diagnose(network: Network) -> Diagnosis:
    """Tell how hard ``network`` is to recover: coherence, conditioning, hypotheses of the theory.

    Example
    -------
    >>> from unweave.networks.random import random_network
    >>> diagnose(random_network([10, 8, 5, 1], seed=0)).layers.pyramidal
    True
    """
    if not isinstance(network, Network) or not network.hidden:
        raise InvalidInput(
            f"network must be a Network with a hidden layer. Got {network!r} instead. A target that "
            "can only be asked is for the command: unweave diagnose TARGET."
        )
    network.require_floats("diagnose")
    weights = diagnose_network(network) if len(network.hidden) == 1 else None
    return Diagnosis(network, diagnose_layers(network), weights)


class DiagnoseRoom(ModuleType):
    """The module `unweave.diagnose`, which can be called like `diagnose`."""

    def __call__(self, network: Network) -> Diagnosis:
        """Tell how hard ``network`` is to recover; see `diagnose`."""
        return diagnose(network)
