"""axe-core over every kind of page in both themes, and the report by keyboard alone."""

from pathlib import Path
from urllib.parse import quote

import pytest

pytestmark = pytest.mark.browser

AXE = Path(__file__).parents[2] / ".cache" / "axe" / "axe_playwright_python" / "axe.min.js"
KINDS = (
    "index.html", "track-multiparty.html", "track-conversation.html", "system-cascade-300ms.html",
    "metric-conversation-takeover_latency.html", "items.html", "play.html", "failures.html", "papers.html",
    "costs.html", "tables.html", "provenance.html",
)  # fmt: skip


@pytest.fixture(scope="session")
def axe():
    if not AXE.is_file():
        pytest.fail("axe-core is not here: run `make test-browser`, which fetches it")
    return AXE.read_text(encoding="utf-8")


def findings(page, axe):
    page.evaluate(axe)
    found = page.evaluate("axe.run(document, {resultTypes: ['violations'], preload: false})")["violations"]
    return [(one["id"], one["impact"], one["nodes"][0]["html"][:200]) for one in found]


def grave(found):
    return [one for one in found if one[1] in ("serious", "critical")]


@pytest.mark.parametrize("scheme", ["light", "dark"])
def test_axe_has_no_serious_finding_on_any_kind_of_page(chromium, built_report, axe, scheme):
    context = chromium.new_context(viewport={"width": 1280, "height": 900}, color_scheme=scheme)
    page = context.new_page()
    trouble = {}
    for name in KINDS:
        page.goto((built_report / name).as_uri())
        if name in ("items.html", "play.html"):
            page.wait_for_selector("#runs tbody tr" if name == "items.html" else ".lanes .window")
        found = grave(findings(page, axe))
        if found:
            trouble[name] = found
    context.close()
    assert trouble == {}


def test_axe_finds_what_is_wrong(tab, built_report, axe):
    tab.goto((built_report / "index.html").as_uri())
    tab.evaluate("""() => {
      document.querySelector('h1').insertAdjacentHTML('afterend',
        '<button id="mute"></button><p style="color:#bbb;background:#fff">faint</p><input type="text">');
    }""")
    assert {"button-name", "color-contrast", "label"} <= {one[0] for one in grave(findings(tab, axe))}


@pytest.mark.parametrize("scheme", ["light", "dark"])
def test_axe_has_no_serious_finding_when_two_systems_are_compared_and_all_is_open(chromium, built_report, axe, scheme):
    context = chromium.new_context(viewport={"width": 1280, "height": 900}, color_scheme=scheme)
    page = context.new_page()
    item = quote("mp/01-explicit", safe="")
    page.goto((built_report / "play.html").as_uri() + f"#item={item}&system=cascade-300ms&with=always-speak&t=2")
    page.wait_for_selector(".lanes .window")
    page.evaluate("document.querySelectorAll('details').forEach((node) => { node.open = true; })")
    assert grave(findings(page, axe)) == []
    context.close()


def test_the_first_page_is_used_by_keyboard_alone(tab, built_report):
    tab.goto((built_report / "index.html").as_uri())
    tab.keyboard.press("Tab")
    assert tab.evaluate("document.activeElement.className") == "skip"
    seen = []
    for _ in range(60):
        tab.keyboard.press("Tab")
        outline = tab.evaluate(
            "(() => { const style = getComputedStyle(document.activeElement);"
            " return style.outlineStyle !== 'none' && parseFloat(style.outlineWidth) >= 2; })()"
        )
        name = tab.evaluate("document.activeElement.textContent.trim() || document.activeElement.ariaLabel")
        assert outline, f"no focus is seen on {name}"
        seen.append(name)
        if name == "Hear it fail":
            break
    assert "Hear it fail" in seen
    tab.keyboard.press("Enter")
    tab.wait_for_selector("#player:not([aria-busy]) .lanes")
    assert "t=" in tab.url
