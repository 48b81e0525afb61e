"""Nothing that a transcript, a name, a label, a card, a judge or a file name says is run by a page."""

import importlib.util
import json
from pathlib import Path
from urllib.parse import quote

import numpy as np
import pytest
import soundfile

pytestmark = pytest.mark.browser

HERE = Path(__file__).parent


@pytest.fixture(scope="module")
def script():
    spec = importlib.util.spec_from_file_location("planted_script_for_browser", HERE / "planted_script.py")
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


@pytest.fixture(scope="module")
def planted_report(script, report_factory, tmp_path_factory):
    from duplex_bench.reporting.site import build_site

    inputs = report_factory.Factory(tmp_path_factory.mktemp("blobs")).inputs(scenarios=3, conversations=3, resamples=50)
    return build_site(script.planted(inputs), tmp_path_factory.mktemp("planted") / "site").parent


def nothing_ran(tab):
    assert tab.evaluate("window.broken") is None
    planted = "document.querySelectorAll('img[src*=planted], svg[onload], [onerror], a[href^=javascript]').length"
    assert tab.evaluate(planted) == 0


def test_no_page_runs_what_was_planted(tab, planted_report, script):
    pages = sorted(planted_report.glob("*.html"))
    assert len(pages) > 20
    for page in pages:
        tab.goto(page.as_uri())
        tab.evaluate("document.querySelectorAll('details').forEach((one) => { one.open = true; })")
        tab.evaluate("document.querySelectorAll('.sorter').forEach((one) => one.click())")
        nothing_ran(tab)
    tab.goto((planted_report / "index.html").as_uri())
    # What was planted is there as text, or this test looked at something else.
    assert "window.broken=1</script>" in tab.locator("main").inner_text()


def test_the_list_and_the_player_run_nothing(tab, planted_report, script):
    tab.goto((planted_report / "items.html").as_uri())
    tab.wait_for_selector("#runs tbody tr")
    nothing_ran(tab)
    for item in ("mp/01-explicit", "point-1-0"):
        tab.goto("about:blank")
        tab.goto((planted_report / "play.html").as_uri() + f"#item={quote(item + script.EVIL, safe='')}")
        tab.wait_for_selector("#player:not([aria-busy]) .lanes")
        # To leave while a recording loads would break off its request.
        tab.wait_for_function("document.querySelector('audio').readyState >= 1")
        tab.evaluate("document.querySelectorAll('details').forEach((one) => { one.open = true; })")
        assert "window.broken=1</script>" in tab.locator("#player").inner_text()
        nothing_ran(tab)
        tab.select_option(".compare select", index=1)
        tab.locator("button.window").first.click()
        tab.wait_for_function("document.querySelector('audio').readyState >= 1")
        nothing_ran(tab)


def test_an_address_from_outside_runs_nothing(tab, planted_report, script):
    tab.goto((planted_report / "play.html").as_uri() + f"#item={quote(script.EVIL, safe='')}&t={script.EVIL}")
    tab.wait_for_selector("#player [role=alert], #status")
    nothing_ran(tab)
    tab.goto((planted_report / "items.html").as_uri() + f"#q={quote(script.EVIL, safe='')}&system=<img/src=x>")
    tab.wait_for_selector("#count")
    nothing_ran(tab)


def test_interactive_figures_run_nothing(tab, planted_report):
    for track in ("multiparty", "conversation"):
        tab.goto((planted_report / f"track-{track}.html").as_uri())
        tab.evaluate("document.querySelectorAll('[data-interactive]').forEach((button) => button.click())")
        drawn = "[...document.querySelectorAll('[data-figure]')].every((one) => one.querySelector('.main-svg'))"
        tab.wait_for_function(drawn)
        nothing_ran(tab)
        assert tab.locator("[data-figure] [role=alert]").count() == 0


def test_the_page_of_a_recording_runs_nothing_that_its_name_or_words_say(tab, tmp_path):
    from duplex_bench.stages.score_audio import score_audio

    # What a file may be called here: all of it but a slash.
    name = "\"'><img src=planted.png onerror=window.broken=1>\u2028<!--"
    rate = 16000
    samples = np.zeros((8 * rate, 2))
    samples[rate : 3 * rate, 0] = samples[4 * rate : 6 * rate, 1] = 0.05
    told = {
        who: {"words": [{"word": f"{who}</script><script>window.broken=1</script>\u2028", "start": start, "end": end}]}
        for who, start, end in (("user", 1.0, 3.0), ("system", 4.0, 6.0))
    }
    soundfile.write(tmp_path / f"{name}.wav", samples, rate)
    (tmp_path / f"{name}.json").write_text(json.dumps(told))
    index = score_audio(tmp_path / f"{name}.wav", None, None, tmp_path / "page", tmp_path / "data").index
    tab.goto(index.as_uri())
    tab.wait_for_selector(".lanes")
    tab.evaluate("document.querySelectorAll('details').forEach((one) => { one.open = true; })")
    nothing_ran(tab)
    assert "planted.png" in tab.locator("main").inner_text()


def test_what_was_planted_runs_where_it_is_not_escaped(chromium, script):
    context = chromium.new_context()
    page = context.new_page()
    page.set_content(f"<p>{script.EVIL}</p>")
    page.wait_for_function("window.broken === 1")
    with pytest.raises(AssertionError):
        nothing_ran(page)
    context.close()
