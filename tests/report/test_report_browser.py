"""Reports as a browser shows them: nothing complains, nothing is fetched, nothing overlaps."""

from __future__ import annotations

import base64
import io

import pytest
from matplotlib import image
from reading_reports import KINDS

from browsing import console
from page_looks import PAPER, SCROLLED, check_colours, emulate, luminance

WIDTHS = (1060, 390)
"""Pixels: a laptop, a telephone."""

OVERLAPS = """
const found = [];
for (const picture of document.querySelectorAll('svg.picture')) {
  const texts = [...picture.querySelectorAll('text')].filter(t => t.textContent.trim());
  const boxes = texts.map(t => t.getBoundingClientRect());
  for (let i = 0; i < boxes.length; i++) for (let j = i + 1; j < boxes.length; j++) {
    const a = boxes[i], b = boxes[j];
    const width = Math.min(a.right, b.right) - Math.max(a.left, b.left);
    const height = Math.min(a.bottom, b.bottom) - Math.max(a.top, b.top);
    // Boxes of lines are a little taller than their letters: a few pixels of them may touch.
    if (width > 2 && height > 5) found.push([texts[i].textContent.trim(), texts[j].textContent.trim()]);
  }
}
return found;
"""

OUTSIDE = """
const found = [];
for (const picture of document.querySelectorAll('svg.picture')) {
  const frame = picture.getBoundingClientRect();
  for (const text of picture.querySelectorAll('text')) {
    const box = text.getBoundingClientRect();
    if (box.left < frame.left - 2 || box.right > frame.right + 2 ||
        box.top < frame.top - 4 || box.bottom > frame.bottom + 4)
      found.push(text.textContent.trim());
  }
}
return found;
"""


@pytest.fixture(params=KINDS)
def opened(request, browser, page_of, tmp_path):
    """The browser with a report in it."""
    place = tmp_path / "report.html"
    place.write_text(page_of(request.param), encoding="utf-8")
    browser.set_window_size(WIDTHS[0], 900)
    console(browser)
    browser.get(place.as_uri())
    return browser


def test_a_report_in_a_browser(opened):
    assert console(opened) == []
    assert opened.execute_script("return performance.getEntriesByType('resource').length") == 0
    assert opened.execute_script(OVERLAPS) == []
    assert opened.execute_script(OUTSIDE) == []
    check_colours(opened)
    for picture in opened.find_elements("css selector", "svg.picture"):
        drawn = image.imread(io.BytesIO(picture.screenshot_as_png))[:, :, :3]
        assert (drawn.min(axis=2) < 0.5).mean() > 1e-3  # ink, not an empty panel
    for width in WIDTHS:
        opened.execute_cdp_cmd(
            "Emulation.setDeviceMetricsOverride",
            {"width": width, "height": 900, "deviceScaleFactor": 1, "mobile": False},
        )
        wide, inner = opened.execute_script("return [document.documentElement.scrollWidth, innerWidth]")
        assert wide <= inner  # nothing has to be scrolled sideways
        assert opened.execute_script(SCROLLED) == []
    opened.execute_cdp_cmd("Emulation.clearDeviceMetricsOverride", {})
    emulate(opened, prefers_color_scheme="dark")
    assert luminance(opened.execute_script(PAPER)) < 0.05
    check_colours(opened)
    opened.execute_cdp_cmd(
        "Emulation.setEmulatedMedia",
        {"media": "print", "features": [{"name": "prefers-color-scheme", "value": "dark"}]},
    )
    assert luminance(opened.execute_script(PAPER)) == 1  # print stays light
    check_colours(opened)
    opened.execute_cdp_cmd("Emulation.setEmulatedMedia", {"media": "", "features": []})
    assert console(opened) == []
    assert base64.b64decode(opened.print_page()).startswith(b"%PDF")
