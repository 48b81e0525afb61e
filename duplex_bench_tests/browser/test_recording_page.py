"""The page of a scored recording, in Chromium, from disk."""

import json

import numpy as np
import pytest
import soundfile

from duplex_bench.stages.score_audio import score_audio

pytestmark = pytest.mark.browser
RATE = 16000


@pytest.fixture(scope="module")
def recording_page(tmp_path_factory):
    """A pause of the user from 3.0 to 5.0 s that the system takes at 3.6 s, and a turn end at 7.0 s."""
    folder = tmp_path_factory.mktemp("recording")
    noise = np.random.default_rng(5).normal(size=(12 * RATE, 2)) * 0.05
    spoken = {"user": [(1.0, 3.0), (5.0, 7.0)], "system": [(3.6, 4.2), (7.8, 10.0)]}
    samples = np.zeros((12 * RATE, 2))
    labels = {}
    for channel, (who, rows) in enumerate(spoken.items()):
        for start_s, end_s in rows:
            part = slice(round(start_s * RATE), round(end_s * RATE))
            samples[part, channel] = noise[part, channel]
        labels[who] = {"words": [{"word": f"{who}<b>", "start": start_s, "end": end_s} for start_s, end_s in rows]}
    soundfile.write(folder / "a talk.wav", samples, RATE)
    (folder / "a talk.json").write_text(json.dumps(labels))
    return score_audio(folder / "a talk.wav", None, None, folder / "page", folder / "data").index


def test_a_moment_opens_the_player_at_its_second(tab, recording_page):
    tab.goto(recording_page.as_uri())
    tab.wait_for_selector(".lanes")
    line = tab.locator("tr", has_text="Took the floor while the user was still going")
    line.locator("a[data-moment]").first.click()
    tab.wait_for_function("document.querySelector('audio') && document.querySelector('audio').currentTime > 3.5")
    assert tab.evaluate("document.querySelector('audio').currentTime") == pytest.approx(3.6, abs=0.02)
    assert tab.evaluate("document.querySelector('audio').duration") == pytest.approx(12.0, abs=0.01)
    top = tab.locator("#player").bounding_box()["y"]
    assert -50 < top < 450


def test_windows_words_and_definitions_are_there(tab, recording_page):
    tab.goto(recording_page.as_uri())
    tab.wait_for_selector(".lanes")
    windows = tab.locator("button.window").all_inner_texts()
    assert windows == ["pause of the user", "turn end of the user"]
    assert tab.locator(".mark.word").first.inner_text() == "system<b>"
    assert tab.locator(".mark.turn").first.inner_text().startswith("user<b>")
    tab.locator("summary", has_text="Turn-end latency").click()
    assert tab.get_by_text("turn_end_latency version").is_visible()


def test_tables_can_be_downloaded(tab, recording_page):
    tab.goto(recording_page.as_uri())
    tab.wait_for_selector(".lanes")
    for link in tab.locator("#tables a").all():
        assert (recording_page.parent / link.get_attribute("href")).is_file()
