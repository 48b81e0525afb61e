import re
import time
from urllib.parse import quote

import pytest

pytestmark = pytest.mark.browser

ITEM = "mp/01-explicit"
TIME = "document.querySelector('audio').currentTime"


def address(folder, page):
    name, _, rest = page.partition("#")
    return (folder / name).as_uri() + (f"#{rest}" if rest else "")


def open_item(tab, folder, rest=""):
    tab.goto(address(folder, f"play.html#item={quote(ITEM, safe='')}{rest}"))
    tab.wait_for_selector("#player:not([aria-busy]) .lanes")
    tab.wait_for_function("document.querySelector('audio').readyState >= 1")


def near(tab, second, tolerance=0.02):
    tab.wait_for_function(f"Math.abs({TIME} - {second}) < {tolerance}")


@pytest.mark.parametrize("scheme", ["light", "dark"])
@pytest.mark.parametrize("width", [1280, 390])
def test_every_page_opens_from_disk_without_a_word(chromium, built_report, scheme, width):
    context = chromium.new_context(viewport={"width": width, "height": 900}, color_scheme=scheme)
    page = context.new_page()
    trouble = []
    page.on("console", lambda message: trouble.append(message.text))
    page.on("pageerror", lambda error: trouble.append(str(error)))
    page.on(
        "request",
        lambda request: trouble.append(request.url) if not request.url.startswith(("file:", "data:")) else None,
    )
    for path in sorted(built_report.glob("*.html")):
        page.goto(path.as_uri())
        overflow = page.evaluate("document.documentElement.scrollWidth - document.documentElement.clientWidth")
        assert overflow <= 0, f"{path.name} is wider than the window by {overflow} px"
        assert page.evaluate("window.broken") is None
    context.close()
    assert trouble == []


def test_every_control_and_picture_has_a_name(tab, built_report):
    for name in ("index.html", "items.html", "play.html", "track-multiparty.html"):
        tab.goto(address(built_report, name))
        tab.wait_for_timeout(300)
        nameless = tab.evaluate(
            """[...document.querySelectorAll('button, a[href], img, select, input')].filter((node) =>
              !(node.textContent.trim() || node.getAttribute('aria-label') || node.alt || node.labels?.length))
              .map((node) => node.outerHTML)"""
        )
        assert nameless == []
        assert tab.evaluate("document.querySelectorAll('h1').length") == 1
        assert tab.evaluate("document.documentElement.lang") == "en"


def test_a_link_opens_item_system_and_second(tab, built_report):
    open_item(tab, built_report, "&system=cascade-500ms&t=3.250")
    near(tab, 3.25)
    assert tab.text_content(".tabs [aria-pressed=true]").startswith("Cascade, 500 ms")
    assert tab.text_content("h1") == ITEM


def test_clicking_a_window_plays_from_its_first_sample_on(tab, built_report):
    open_item(tab, built_report, "&system=cascade-300ms")
    buttons = tab.query_selector_all(".window")
    assert len(buttons) == 6
    for button in buttons:
        start = float(re.search(r"([\d.]+)\s*s to", button.get_attribute("title"))[1])
        button.click()
        at = tab.evaluate(TIME)
        assert start - 0.02 <= at <= start + 0.6
        assert button.get_attribute("aria-current") == "true"
        assert not tab.evaluate("document.querySelector('audio').paused")
    tab.click("#toggle")


def test_clicking_a_score_goes_to_the_second_it_was_measured_at(tab, built_report):
    open_item(tab, built_report, "&system=cascade-300ms")
    for link in tab.query_selector_all("[data-seek]"):
        link.click()
        tab.click("#toggle")
        assert abs(tab.evaluate(TIME) - float(link.get_attribute("data-seek"))) < 0.6
    assert "t=" in tab.url


def test_the_recording_loads_and_both_channels_are_drawn(tab, built_report):
    open_item(tab, built_report, "&system=always-speak")
    assert tab.get_attribute("audio", "src").endswith(".flac")
    assert tab.evaluate("document.querySelector('audio').duration") > 10
    assert tab.evaluate("document.querySelector('.wave-heard path').getTotalLength()") > 1000
    assert tab.evaluate("document.querySelector('.wave-system path').getTotalLength()") > 1000


def test_keys_play_move_and_change_the_system_at_the_same_second(tab, built_report):
    open_item(tab, built_report, "&system=cascade-300ms&t=5")
    tab.keyboard.press("ArrowRight")
    near(tab, 6)
    tab.keyboard.press("ArrowLeft")
    tab.keyboard.press("ArrowLeft")
    near(tab, 4)
    tab.keyboard.press("2")
    tab.wait_for_function("document.querySelector('audio').readyState >= 1")
    near(tab, 4)
    assert tab.text_content(".tabs [aria-pressed=true]").startswith("Cascade, 500 ms")
    tab.keyboard.press(" ")
    tab.wait_for_function(f"{TIME} > 4.2")
    tab.keyboard.press(" ")
    assert tab.evaluate("document.querySelector('audio').paused")


def test_lineage_of_a_score_is_shown(tab, built_report):
    open_item(tab, built_report, "&system=cascade-300ms")
    tab.evaluate("document.querySelectorAll('details').forEach((node) => { node.open = true; })")
    text = tab.inner_text("#player")
    for word in (
        "duplex-bench trace ",
        "stimulus",
        "listener audio",
        "event log",
        "answer correctness v1",
        "raw response",
    ):
        assert word in text


def test_an_unknown_item_is_said_and_not_shown(tab, built_report):
    tab.goto(address(built_report, "play.html#item=nobody"))
    tab.wait_for_selector("[role=alert]")
    assert "no item nobody" in tab.text_content("[role=alert]")


def test_filters_narrow_the_list_and_stay_in_the_address(tab, built_report):
    tab.goto(address(built_report, "items.html"))
    tab.wait_for_selector("#runs tbody tr")
    tab.select_option("[name=system]", "cascade-semantic")
    tab.select_option("[name=metric]", "silence_preservation")
    tab.select_option("[name=verdict]", "fail")
    shown = tab.text_content("#count")
    rows = tab.query_selector_all("#runs tbody tr")
    assert shown.startswith(f"{len(rows)} of ")
    assert 0 < len(rows) < 60
    assert all("no" in row.inner_text() for row in rows)
    kept = tab.url
    tab.goto("about:blank")
    tab.goto(kept)
    tab.wait_for_selector("#runs tbody tr")
    assert tab.text_content("#count") == shown


def test_sorting_puts_missing_scores_last_both_ways(tab, built_report):
    tab.goto(address(built_report, "metric-conversation-takeover_latency.html"))
    values = """[...document.querySelectorAll('table.board tbody')].map((body) =>
        [...body.querySelectorAll('td')].map((cell) => cell.dataset.value))"""
    for order in ("descending", "ascending"):
        tab.click("table.board thead th:nth-child(2) .sorter")
        assert tab.get_attribute("table.board thead th:nth-child(2)", "aria-sort") == order
        for group in tab.evaluate(values):
            known = [float(value) for value in group if value]
            assert known == sorted(known, reverse=order == "descending")
            assert group[: len(known)] == [value for value in group if value]


def test_the_theme_stays_chosen(tab, built_report):
    tab.goto(address(built_report, "index.html"))
    tab.click("[data-theme-toggle]")
    assert tab.evaluate("document.documentElement.dataset.theme") == "dark"
    tab.goto(address(built_report, "failures.html"))
    assert tab.evaluate("document.documentElement.dataset.theme") == "dark"


def test_a_thousand_scored_windows_paint_within_three_seconds(chromium, report_factory, tmp_path):
    from duplex_bench.reporting.site import build_site

    inputs = report_factory.Factory(tmp_path / "blobs").inputs(scenarios=16, conversations=16, resamples=50)
    assert sum(track.measurements.height for track in inputs.tracks) > 1000
    folder = build_site(inputs, tmp_path / "report").parent
    page = chromium.new_page()
    for name, ready in (
        ("index.html", "table.board"),
        ("items.html", "#runs tbody tr"),
        ("play.html", ".lanes .window"),
    ):
        begun = time.perf_counter()
        page.goto((folder / name).as_uri())
        page.wait_for_selector(ready)
        assert time.perf_counter() - begun < 3
        painted = page.evaluate("performance.getEntriesByName('first-contentful-paint')[0].startTime")
        assert painted < 3000
    page.close()
