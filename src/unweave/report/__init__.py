"""A recovery as one HTML file: the answer, the evidence as pictures, and how to repeat it.

    Recovery -> to_dict() -> Facts (every number that is shown) + pictures (SVG) -> page

jinja2 and matplotlib are loaded when a report is made, not when this package is imported.
"""

from unweave.report.page import report_html, report_pictures, write_report

__all__ = ["report_html", "report_pictures", "write_report"]
