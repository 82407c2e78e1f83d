"""The audit as a browser shows it: on a screen and on a telephone, light, dark and printed."""

from __future__ import annotations

import pytest

from browsing import console
from page_looks import PAPER, SCROLLED, check_colours, emulate, luminance


@pytest.fixture
def opened(browser, audited, tmp_path):
    audited.save_html(tmp_path / "audit.html")
    console(browser)
    browser.get((tmp_path / "audit.html").as_uri())
    yield browser
    browser.execute_cdp_cmd("Emulation.setEmulatedMedia", {"media": "", "features": []})
    browser.execute_cdp_cmd("Emulation.clearDeviceMetricsOverride", {})


def test_an_audit_in_a_browser(opened):
    assert opened.execute_script("return performance.getEntriesByType('resource').length") == 0
    for width in (1200, 390):
        size = {"width": width, "height": 900, "deviceScaleFactor": 1, "mobile": False}
        opened.execute_cdp_cmd("Emulation.setDeviceMetricsOverride", size)
        wide, inner = opened.execute_script("return [document.documentElement.scrollWidth, innerWidth]")
        assert wide <= inner
        assert opened.execute_script(SCROLLED) == []
        for scheme, is_dark in (("light", False), ("dark", True)):
            emulate(opened, prefers_color_scheme=scheme)
            assert (luminance(opened.execute_script(PAPER)) < 0.05) == is_dark
            check_colours(opened)
    dark = [{"name": "prefers-color-scheme", "value": "dark"}]
    opened.execute_cdp_cmd("Emulation.setEmulatedMedia", {"media": "print", "features": dark})
    assert luminance(opened.execute_script(PAPER)) == 1  # print stays light
    check_colours(opened)
    assert console(opened) == []
