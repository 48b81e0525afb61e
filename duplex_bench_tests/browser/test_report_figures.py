"""Interactive figures, comparing two systems in the player, and marks that can be read at every zoom."""

from urllib.parse import quote

import pytest

pytestmark = pytest.mark.browser

ITEM = quote("mp/01-explicit", safe="")


def open_item(tab, folder, rest=""):
    tab.goto((folder / "play.html").as_uri() + f"#item={ITEM}{rest}")
    tab.wait_for_selector("#player:not([aria-busy]) .lanes .window")


def test_a_figure_becomes_interactive_when_asked_and_not_before(tab, built_report):
    tab.goto((built_report / "track-conversation.html").as_uri())
    assert tab.evaluate("window.Plotly") is None
    figure = tab.locator("#conversation-rates")
    figure.locator("[data-interactive]").click()
    tab.wait_for_selector("#conversation-rates .plotly-host .main-svg")
    assert figure.locator("img.on-light").is_hidden()
    names = figure.locator(".plotly-host .ytick").all_text_contents()
    assert any("Cascade, 300 ms" in name for name in names)
    dark = "getComputedStyle(document.querySelector('#conversation-rates .ytick text')).fill"
    before = tab.evaluate(dark)
    tab.click("[data-theme-toggle]")
    tab.wait_for_function(f"{dark} !== {before!r}")
    figure.locator("[data-interactive]").click()
    assert figure.locator(".plotly-host").is_hidden()


def test_every_figure_of_the_report_can_be_made_interactive(tab, built_report):
    for track in ("multiparty", "conversation"):
        tab.goto((built_report / f"track-{track}.html").as_uri())
        count = tab.locator("[data-figure]").count()
        assert count == tab.locator("[data-interactive]").count() > 1
        tab.evaluate("document.querySelectorAll('[data-interactive]').forEach((button) => button.click())")
        drawn = "[...document.querySelectorAll('[data-figure]')].every((one) => one.querySelector('.main-svg'))"
        tab.wait_for_function(drawn)
        assert tab.locator("[data-figure] [role=alert]").count() == 0


def test_two_systems_are_compared_on_one_item_and_the_address_says_so(tab, built_report):
    open_item(tab, built_report, "&system=cascade-300ms&t=5")
    assert tab.locator(".lane.wave").count() == 2
    tab.select_option(".compare select", label="Always speak")
    assert tab.locator(".lane.wave").count() == 3
    assert "with=always-speak" in tab.url
    silence = tab.locator(".score", has_text="Silence preservation").first
    assert "Always speak: no (bad)" in silence.inner_text()
    address = tab.url
    tab.goto("about:blank")
    tab.goto(address)
    tab.wait_for_selector(".lanes .window")
    assert tab.locator(".lane.wave").count() == 3
    assert abs(tab.evaluate("document.querySelector('audio').currentTime") - 5) < 0.1


def test_no_text_of_a_mark_runs_into_the_next_at_any_zoom(tab, built_report):
    overlaps = """() => [...document.querySelectorAll('.lane.marks')].flatMap((lane) => {
      const shown = [...lane.children].filter((node) => node.textContent).map((node) => {
        const range = document.createRange(); range.selectNodeContents(node);
        const text = range.getBoundingClientRect(), box = node.getBoundingClientRect();
        const cut = getComputedStyle(node).overflow === 'hidden';
        return { from: text.left, to: cut ? Math.min(text.right, box.right) : text.right, text: node.textContent };
      }).sort((a, b) => a.from - b.from);
      return shown.slice(1).filter((mark, n) => mark.from < shown[n].to - 1).map((mark) => mark.text);
    })"""
    for system in ("always-speak", "cascade-300ms"):
        open_item(tab, built_report, f"&system={system}")
        for _ in range(6):
            tab.click("[aria-label='Zoom out']")
        for _ in range(5):
            assert tab.evaluate(overlaps) == []
            tab.click("[aria-label='Zoom in']")
