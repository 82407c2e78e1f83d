"""The page in a real browser: upload, watch, reload, cancel, read, download."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest
from served_page import KEY, PATIENCE, TEACHER, Page, poll

import unweave
from browsing import console
from unweave.serving import Faults, ReferenceServer
from unweave.serving.model import ServedModel

NARROW, WIDE = 400, 1400
"""Pixels: a telephone, a screen."""
LONG_SECONDS = 120.0
SAME = 1e-9

UNLABELLED = """
const fields = [...document.querySelectorAll('input, select, textarea')];
return fields.filter(f => !f.labels.length).map(f => f.id || f.name);
"""
BEYOND = "return document.documentElement.scrollWidth - document.documentElement.clientWidth;"


class Screen:
    """What a person does and sees."""

    def __init__(self, driver: Any, page: Page) -> None:
        self.driver, self.page = driver, page

    def open(self) -> None:
        """Open the first page, and wait until its script has heard from the server."""
        self.driver.get("about:blank")  # so that nothing below speaks to the page before
        self.driver.get(self.page.entrance)
        self.wait(lambda: self.text("#about") != "")

    def width(self, pixels: int) -> None:
        self.driver.execute_cdp_cmd(
            "Emulation.setDeviceMetricsOverride",
            {"width": pixels, "height": 900, "deviceScaleFactor": 1, "mobile": False},
        )

    def find(self, selector: str) -> Any:
        return self.driver.find_element("css selector", selector)

    def text(self, selector: str) -> str:
        script = "return document.querySelector(arguments[0])?.textContent ?? ''"
        return self.driver.execute_script(script, selector)

    def shows(self, selector: str) -> bool:
        script = "const e = document.querySelector(arguments[0]); return !!e && e.checkVisibility()"
        return self.driver.execute_script(script, selector)

    def click(self, selector: str) -> None:
        self.find(selector).click()

    def type(self, selector: str, words: str) -> None:
        self.find(selector).send_keys(words)

    def wait(self, done: Callable[[], bool], seconds: float = PATIENCE) -> None:
        poll(done, seconds, lambda: self.text("body"))

    def start_file(self, path: Path) -> None:
        self.open()
        self.type("#file", str(path))
        self.click("#start")

    def start_endpoint(self, url: str) -> None:
        self.open()
        self.click("[value=endpoint] + span")
        self.type("#url", url)
        self.click("#start")
        self.wait(lambda: self.shows("#going"))

    def wait_end(self, seconds: float = PATIENCE) -> None:
        self.wait(lambda: self.shows("#ended"), seconds)

    def queries(self) -> int:
        return int(self.text("#queries").replace(",", "") or 0)


@pytest.fixture
def screen(browser: Any, page: Page) -> Iterator[Screen]:
    """The first page, on a wide screen; in the end nothing must have been blocked or gone wrong."""
    shown = Screen(browser, page)
    shown.width(WIDE)
    console(browser)
    shown.open()
    yield shown
    complaints = [line for line in console(browser) if "status of 422" not in line]
    assert complaints == []


def test_upload_to_download(screen: Screen, tmp_path: Path) -> None:
    teacher = tmp_path / "<img src=x onerror=alert(1)>.npz"
    TEACHER.save(teacher)
    screen.start_file(teacher)
    screen.wait_end()
    assert screen.text("#verdict") == "Recovered"
    assert screen.text("#name") == teacher.name  # as text
    foreign = "return document.querySelectorAll('main img:not(#pictures img)').length"
    assert screen.driver.execute_script(foreign) == 0
    assert "6-4-1 tanh" in screen.text("#facts")
    screen.driver.execute_cdp_cmd(
        "Browser.setDownloadBehavior", {"behavior": "allow", "downloadPath": str(tmp_path)}
    )
    screen.click("a[download='network.onnx']")
    screen.wait(lambda: (tmp_path / "network.onnx").exists())
    assert unweave.compare(TEACHER, unweave.load(tmp_path / "network.onnx")).parameter_error < SAME
    screen.driver.get(screen.find("#report").get_attribute("href"))
    assert "recovered" in screen.text("body").lower()
    screen.open()
    screen.wait(lambda: screen.shows("#runs li"))
    assert teacher.name in screen.text("#runs li")
    assert "recovered" in screen.text("#runs li")
    screen.click("#runs a")  # reopened from the list
    screen.wait(lambda: screen.shows("#check-rows tr"))
    for width in (NARROW, WIDE):
        screen.width(width)
        assert screen.driver.execute_script(BEYOND) <= 0


def test_a_bad_file_is_told_where_it_was_chosen(screen: Screen, tmp_path: Path) -> None:
    bad = tmp_path / "bad.npz"
    bad.write_bytes(b"hello")
    screen.start_file(bad)
    screen.wait(lambda: screen.shows("#problem"))
    assert "must be an .npz archive" in screen.text("#problem")
    assert screen.find("#file").get_attribute("aria-invalid") == "true"
    large = tmp_path / "large.npz"
    large.write_bytes(b"x" * (2**20 + 1))
    screen.start_file(large)
    screen.wait(lambda: screen.shows("#problem"))
    assert "at most 1 MB" in screen.text("#problem")
    screen.open()
    screen.click("summary")
    screen.type("#seed", "-3")
    screen.type("#file", str(bad))
    screen.click("#start")
    screen.wait(lambda: screen.shows("#problem"))
    assert screen.driver.switch_to.active_element.get_attribute("id") == "seed"


def test_a_run_survives_a_reload_and_can_be_cancelled(screen: Screen, slow_target: ReferenceServer) -> None:
    screen.start_endpoint(slow_target.url)
    screen.wait(lambda: screen.queries() > 0)
    before, address = screen.queries(), screen.driver.current_url
    screen.driver.refresh()
    screen.wait(lambda: screen.shows("#going") and screen.queries() > before)
    assert screen.driver.current_url == address
    assert screen.text("#stage") != ""
    assert screen.text("#announce") != ""  # for those who do not see the bar
    screen.wait_end()
    assert screen.text("#verdict") == "Recovered"
    screen.start_endpoint(slow_target.url)
    screen.wait(lambda: screen.queries() > 0)
    screen.click("#cancel")
    screen.wait_end()
    assert screen.text("#verdict") == "Cancelled"
    assert screen.text("#resume") == "Resume"
    screen.click("#delete")
    screen.click("#confirm [value=yes]")
    screen.wait(lambda: screen.driver.current_url == f"{screen.page.url}/")


DROP = """
const [name, text] = arguments;
const moved = new DataTransfer();
moved.items.add(new File([text], name));
for (const kind of ['dragover', 'drop']) {
  const event = new DragEvent(kind, { bubbles: true, cancelable: true, dataTransfer: moved });
  document.querySelector('#form').dispatchEvent(event);
}
"""
UNLOADED = "return [...document.querySelectorAll('#pictures img')].filter(i => !i.naturalWidth).length"


def test_the_sample_gives_pictures(screen: Screen) -> None:
    screen.click("#try")
    screen.wait(lambda: screen.shows("#gallery"))
    assert screen.text("#verdict") == "Recovered"
    screen.driver.execute_script(
        "document.querySelectorAll('#pictures img').forEach(i => i.loading = 'eager')"
    )
    screen.wait(lambda: screen.driver.execute_script(UNLOADED) == 0)
    assert len(screen.driver.find_elements("css selector", "#pictures img")) > 3
    for width in (NARROW, WIDE):
        screen.width(width)
        assert screen.driver.execute_script(BEYOND) <= 0


def test_files_can_be_dropped(screen: Screen) -> None:
    chosen = "return [...document.querySelector('#file').files].map(f => f.name)"
    screen.driver.execute_script(DROP, "samples.csv", "1,2\n3,4\n")
    assert screen.driver.execute_script(chosen) == ["samples.csv"]
    assert screen.shows("#outputs")  # a table
    screen.click("[value=compare] + span")
    screen.driver.execute_script(DROP, "first.json", "{}")
    assert screen.driver.execute_script(chosen) == ["first.json"]
    assert screen.shows("#other")
    assert not screen.shows("#kinds")
    assert not screen.shows("summary")
    screen.click("[value=audit] + span")
    assert screen.shows("#decimals")
    assert not screen.shows("[value=table] + span")


def test_every_field_has_a_label_and_fits_a_telephone(screen: Screen) -> None:
    screen.click("summary")
    for kind in ("file", "endpoint", "table"):
        screen.width(WIDE)
        screen.click(f"[value={kind}] + span")
        assert screen.driver.execute_script(UNLABELLED) == []
        screen.width(NARROW)
        assert screen.driver.execute_script(BEYOND) <= 0
    assert not screen.shows("#domain")  # a table is asked nothing
    assert len(screen.text(".lead").strip().splitlines()) == 2
    names = screen.driver.execute_script(
        "return [...document.querySelector('#activation').options].map(o => o.value)"
    )
    assert {"tanh", "relu", "sigmoid"} <= set(names)


def test_the_form_can_be_used_with_the_keyboard_alone(screen: Screen) -> None:
    from selenium.webdriver.common.action_chains import ActionChains
    from selenium.webdriver.common.keys import Keys

    reached = []
    for _ in range(12):
        ActionChains(screen.driver).send_keys(Keys.TAB).perform()
        element = screen.driver.switch_to.active_element
        reached.append(element.get_attribute("id") or element.get_attribute("name") or element.tag_name)
        if reached[-1] == "start":
            break
    assert [name for name in reached if name in ("kind", "file", "summary", "start")] == [
        "kind",
        "file",
        "summary",
        "start",
    ]
    screen.find("[value=file]").send_keys(Keys.ARROW_RIGHT)
    assert screen.shows("#url")


def test_the_key_is_asked_for(browser: Any, locked: Page) -> None:
    screen = Screen(browser, locked)
    browser.get(locked.url)
    assert browser.current_url.endswith("/login")
    screen.type("#key", "wrong")
    screen.click("button")
    screen.wait(lambda: screen.shows("#problem"))
    screen.type("#key", KEY)
    screen.click("button")
    screen.wait(lambda: "No runs yet" in screen.text("#empty"))
    assert browser.execute_script("return document.cookie") == ""  # no script can read it
    console(browser)


@pytest.mark.slow
def test_a_run_of_two_minutes_survives_reloads(screen: Screen) -> None:
    faults = Faults(delay=1.0, delay_seconds=7.0)
    with ReferenceServer(ServedModel(TEACHER, TEACHER.n_inputs, TEACHER.n_outputs), faults=faults) as target:
        screen.start_endpoint(target.url)
        for _ in range(4):
            before = screen.queries()
            screen.wait(lambda before=before: screen.queries() > before)
            screen.driver.refresh()
            screen.wait(lambda: screen.shows("#going"))
        screen.wait_end(10 * LONG_SECONDS)
        assert screen.text("#verdict") == "Recovered"
        run = screen.page.run(screen.driver.current_url.rsplit("/", 1)[1])
        assert run["elapsed"] > LONG_SECONDS
