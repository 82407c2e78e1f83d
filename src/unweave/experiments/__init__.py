"""Published tables, figures and claims, measured again: published values beside measured ones.

>>> from unweave.experiments import EXPERIMENTS
>>> figures = EXPERIMENTS["sign-ambiguity"].run(0, print)

Importing this loads no experiment, and no NumPy.
"""

from unweave.experiments.catalogue import EXPERIMENTS
from unweave.experiments.experiment import Experiment, Figure, agree

__all__ = ["EXPERIMENTS", "Experiment", "Figure", "agree"]
