"""Write the table of docs/reproduce.md from docs/results.jsonl: python docs/results.py."""

from __future__ import annotations

from pathlib import Path

from unweave.experiments.stored import ResultFile
from unweave.experiments.summary import markdown, summaries

DOCS = Path(__file__).resolve().parent
BEGIN, END = "<!-- results: written by docs/results.py -->", "<!-- end of results -->"


def page() -> str:
    """The page with its table made anew from the stored results."""
    text = (DOCS / "reproduce.md").read_text(encoding="utf-8")
    head, _, rest = text.partition(BEGIN)
    tail = rest.partition(END)[2]
    items = summaries(ResultFile(DOCS / "results.jsonl").results())
    decided, agreeing = sum(item.decided for item in items), sum(item.agreeing for item in items)
    counts = f"Of {decided:,} figures with a rule, {agreeing:,} agree with every seed that was measured."
    return f"{head}{BEGIN}\n{counts}\n\n{markdown(items)}\n{END}{tail}"


if __name__ == "__main__":
    (DOCS / "reproduce.md").write_text(page(), encoding="utf-8")
