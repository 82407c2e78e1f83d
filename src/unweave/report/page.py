"""The page: facts, pictures and advice put into a template, and written whole or not at all."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

from unweave.errors import InvalidInput
from unweave.files.atomic import write_file

if TYPE_CHECKING:
    from markupsafe import Markup

    from unweave.recovery.result import Recovery
    from unweave.report.facts import Facts
    from unweave.report.picture import Picture

STAGES = "stages"
"""Name of the picture of the cost, which stands apart from the evidence."""
_ENDINGS = (".html", ".htm")
_TONES = {"RECOVERED": "good", "RECOVERED_UP_TO_AMBIGUITY": "good", "APPROXIMATE": "fair", "FAILED": "bad"}
"""Status -> color, beside the word that says it."""


def write_report(recovery: Recovery, path: str | Path) -> None:
    """Write the report of ``recovery`` to an .html file."""
    path = Path(path)
    if path.suffix.lower() not in _ENDINGS:
        raise InvalidInput(f"path must end in {' or '.join(_ENDINGS)}. Got {str(path)!r} instead.")
    write_file(path, report_html(recovery).encode("utf-8"))


def report_html(recovery: Recovery, pictures: Sequence[Picture] | None = None) -> str:
    """The report as text: same recovery, same text. ``pictures`` saves drawing those of `report_pictures`."""
    from jinja2 import Environment, PackageLoader, StrictUndefined

    environment = Environment(
        loader=PackageLoader("unweave.report"),
        autoescape=True,
        undefined=StrictUndefined,
        trim_blocks=True,
        lstrip_blocks=True,
    )
    return environment.get_template("report.html.j2").render(
        _content(recovery, report_pictures(recovery) if pictures is None else pictures)
    )


def report_pictures(recovery: Recovery) -> list[Picture]:
    """The evidence, the parameters and, last, the cost, as far as there is something to see."""
    from unweave.report.charts import evidence_pictures
    from unweave.report.facts import Facts
    from unweave.report.network_pictures import error_picture, stage_picture
    from unweave.report.weight_pictures import weight_picture

    facts = Facts(recovery.to_dict())
    of_network = (error_picture(recovery, facts), weight_picture(recovery, facts))
    drawn = (*evidence_pictures(recovery, facts), *of_network, stage_picture(recovery, facts))
    return [picture for picture in drawn if picture is not None]


def _content(recovery: Recovery, pictures: Sequence[Picture]) -> dict[str, Any]:
    from unweave.recovery.result import FRESH_CHECKS
    from unweave.report.advice import open_questions, suggestions
    from unweave.report.charts import place_of
    from unweave.report.facts import Facts, ordinal
    from unweave.report.repeat import python_call, shell_command

    facts = Facts(recovery.to_dict())
    word, _, explanation = str(recovery.status).partition(": ")
    typed = recovery.settings.get("command")
    return {
        "recovery": recovery,
        "fact": facts,
        "status_word": word,
        "explanation": explanation,
        "tone": _TONES[recovery.status.name],
        "coarse": _known_weights(recovery, facts),
        "ordinal": ordinal,
        "command": typed or python_call(recovery.settings).splitlines()[-1],
        "fresh": place_of(recovery.certificate, *FRESH_CHECKS),
        "bar": place_of(recovery.certificate, "parameter error bar"),
        "broken": [i for i, check in enumerate(recovery.certificate) if check.decides and not check.holds],
        "open_questions": open_questions(recovery),
        "suggestions": suggestions(recovery),
        "pictures": [picture for picture in pictures if picture.name != STAGES],
        "stage_picture": next((picture for picture in pictures if picture.name == STAGES), None),
        "python_call": python_call(recovery.settings),
        "shell_command": shell_command(recovery.settings),
    }


def _known_weights(recovery: Recovery, facts: Facts) -> Markup | None:
    """Say how well the weights are known behind coarse answers, whose own error says little about that."""
    from markupsafe import Markup

    errors = recovery.standard_errors
    kind = next((stage.figures.get("noise") for stage in recovery.stages if stage.name == "look"), None)
    if errors is None or kind not in ("rounded", "noisy"):
        return None
    place = max(range(len(errors.weights)), key=lambda i: float(errors.weights[i].max(initial=0.0)))
    largest = facts(f"/standard_errors/{place}/weights/largest")
    return Markup("The answers are {}; the weights are known to {} (largest standard error).").format(
        kind, largest
    )
