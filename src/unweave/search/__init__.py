"""What a method is told and what it hands back: request, context, candidate, evidence, reasons."""

from unweave.search.chart import Bars, Chart, Mark, Series
from unweave.search.cost import Cost, Question
from unweave.search.evidence import Candidate, Check, Evidence, LayerEvidence
from unweave.search.journal import Journal, Progress, Stage
from unweave.search.method import Context, GaveUp, Likelihood, Method, Reason, Search
from unweave.search.request import Request

__all__ = [
    "Bars",
    "Candidate",
    "Chart",
    "Check",
    "Context",
    "Cost",
    "Evidence",
    "GaveUp",
    "Journal",
    "LayerEvidence",
    "Likelihood",
    "Mark",
    "Method",
    "Progress",
    "Question",
    "Reason",
    "Request",
    "Search",
    "Series",
    "Stage",
]
