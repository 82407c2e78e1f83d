"""Networks of two and three hidden layers with nothing told: neither depth nor widths nor activations.

tanh units with weights and biases of the "generic" law of deep_table.py, linear and tanh outputs. Measured:
at how many seeds depth and widths came out exactly, and what came out at the others. Queries are all that
were sent; what was spent on explaining the target by one hidden layer before it was seen to have more, if
anything, is the group "one layer". ``--rows`` and ``--json`` as in deep_table.py.
"""

from __future__ import annotations

from collections.abc import Sequence

from deep_table import COLUMNS, Setting, deep_figures, deep_row
from harness import Row, parser, run_recovery, say, seeds_of, tell
from named_rows import measure_all, read_rows

ARCHITECTURES = (
    (20, (20, 12, 3)),
    (20, (15, 8, 1)),
    (30, (30, 20, 5)),
    (20, (10, 5, 1)),
    (30, (30, 20, 12, 6)),
    (20, (16, 12, 8, 2)),
)
OUTPUTS = ("identity", "tanh")
SETTINGS = tuple(Setting(inputs, widths, output) for output in OUTPUTS for inputs, widths in ARCHITECTURES)
QUICK = (20, (10, 5, 1))


def measure(setting: Setting, seeds: range) -> Row:
    """The row of one architecture."""
    say(f"deep_unknown: {setting.label}")
    runs = [run_recovery(setting.plant(seed), seed, extra=deep_figures) for seed in seeds]
    found = {run.seed: run.extra.get("hidden") for run in runs}
    hidden = list(setting.widths[:-1])
    return deep_row(
        setting.label,
        runs,
        inputs=setting.inputs,
        widths=list(setting.widths),
        output=setting.output,
        widths_exact=sum(widths == hidden for widths in found.values()),
        widths_wrong=[
            f"{seed}: {'none' if widths is None else '-'.join(map(str, widths))}"
            for seed, widths in found.items()
            if widths != hidden
        ],
    )


def main(argv: Sequence[str] | None = None) -> list[Row]:
    """Run the rows that are not done and print the table."""
    options = parser(__doc__, "0:10", f"{Setting(*QUICK).label} only, 1 seed")
    arguments, settings = read_rows(options, SETTINGS, [Setting(*QUICK)], argv)
    rows = measure_all(settings, measure, seeds_of(arguments, 10, 1), arguments.json)
    tell(rows, {**COLUMNS, "widths_exact": "widths exact", "widths_wrong": "other widths"})
    return rows


if __name__ == "__main__":
    main()
