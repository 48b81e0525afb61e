"""The review page in Chromium: what is drawn is where it sounds, edits are stored, conflicts are shown."""

import importlib.util
import socket
import threading
from pathlib import Path

import pytest
import uvicorn

from duplex_bench.review.app import create_app
from duplex_bench.stages.reviews import approved

pytestmark = pytest.mark.browser

FACTORY = Path(__file__).parents[1] / "review" / "factory.py"
SESSION = "V00_S1_I1"


@pytest.fixture(scope="module")
def review_factory():
    spec = importlib.util.spec_from_file_location("review_factory_for_browser", FACTORY)
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


class Served:
    """A review on a free port of loopback, which can be stopped and started again."""

    def __init__(self, desk):
        self.desk = desk
        with socket.socket() as found:
            found.bind(("127.0.0.1", 0))
            self.port = found.getsockname()[1]
        self.url = f"http://127.0.0.1:{self.port}"
        self.app = create_app(desk)
        self.start()

    def start(self):
        self.server = uvicorn.Server(uvicorn.Config(self.app, port=self.port, log_level="error"))
        self.thread = threading.Thread(target=self.server.run, daemon=True)
        self.thread.start()
        while not self.server.started:
            self.thread.join(0.01)

    def stop(self):
        self.server.should_exit = True
        self.server.force_exit = True
        self.thread.join(10)


@pytest.fixture
def review(review_factory, tmp_path):
    served = Served(review_factory.make_desk(tmp_path))
    yield served
    served.stop()


@pytest.fixture
def enter(chromium, review):
    """Opens the page as somebody, in a browser profile of their own."""
    contexts, trouble = [], []

    def as_person(name, path=f"#/session/{SESSION}/mine"):
        context = chromium.new_context(viewport={"width": 1400, "height": 900}, accept_downloads=True)
        contexts.append(context)
        page = context.new_page()
        page.on("pageerror", lambda error: trouble.append(str(error)))
        page.on(
            "request",
            lambda one: trouble.append(one.url) if not one.url.startswith((review.url, "blob:", "data:")) else None,
        )
        page.goto(f"{review.url}/{path}")
        page.fill("#name", name)
        page.click("text=Start")
        if "session/" in path:
            page.wait_for_selector(".region")
        return page

    yield as_person
    for context in contexts:
        context.close()
    assert trouble == []


def stored(page):
    page.wait_for_function("() => window.editor.saver.pending.length === 0 && !window.editor.saver.busy")
    page.wait_for_timeout(50)


def regions(review, owner):
    (copy,) = [one for one in review.desk.store.copies(SESSION) if one.owner == owner]
    return {one.region_id: one for one in copy.state.regions}


def box(page, region_id):
    return page.locator(f".region[data-id={region_id}]").bounding_box()


DARK_COLUMNS = """channel => {
  // Columns in which the waveform of a channel is drawn higher than its middle line.
  const host = document.querySelector('.editor .wave > div').shadowRoot;
  const left = document.querySelector('.stack').getBoundingClientRect().left;
  const found = [];
  const rows = [...host.querySelectorAll('.canvases > div')];
  for (const canvas of rows[channel].querySelectorAll('canvas')) {
    const box = canvas.getBoundingClientRect();
    const scale = canvas.width / box.width;
    const data = canvas.getContext('2d').getImageData(0, 0, canvas.width, canvas.height).data;
    for (let x = 0; x < canvas.width; x += 1) {
      const y = Math.round(canvas.height * 0.25);
      if (data[(y * canvas.width + x) * 4 + 3] > 100) found.push(box.left - left + (x + 0.5) / scale);
    }
  }
  return found;
}"""


@pytest.mark.parametrize("pps", [60, 400])
def test_clicks_are_drawn_where_they_sound(enter, review_factory, pps):
    page = enter("Ben")
    for channel, side in enumerate(("left", "right")):
        for at_s in review_factory.CLICKS_S[side]:
            page.evaluate(f"() => {{ editor.player.zoom({pps}, 0); editor.player.surfer.setScrollTime({at_s} - 1); }}")
            page.wait_for_timeout(400)
            expected = page.evaluate(f"() => editor.player.x({at_s})")
            near = [x for x in page.evaluate(DARK_COLUMNS, channel) if abs(x - expected) < 60]
            assert near, f"no click is drawn at {at_s} s"
            # The click is 2 ms long: a column, or the two it touches.
            assert abs(sum(near) / len(near) - expected) <= 1.5 + 0.002 * pps


def test_labels_words_and_cursor_share_the_waveform_s_axis(enter):
    page = enter("Ben")
    page.evaluate("() => { editor.player.zoom(100, 0); editor.player.surfer.setScroll(0); editor.player.seek(6.0); }")
    page.wait_for_timeout(200)
    left = page.locator(".stack").bounding_box()["x"]
    pps = page.evaluate("() => editor.player.pps")
    turn = box(page, "e0")
    assert turn["x"] - left == pytest.approx(1.0 * pps, abs=1)
    assert turn["width"] == pytest.approx(5.0 * pps, abs=1)
    assert page.locator(".stack > .cursor").bounding_box()["x"] - left == pytest.approx(6.0 * pps, abs=1.5)


HEARD = """async (from) => {
  // Listens to what goes to the loudspeaker and notes the position at which each click comes out.
  const player = editor.player;
  await player.route();
  const analyser = [0, 1].map(() => { const one = player.context.createAnalyser(); one.fftSize = 2048; return one; });
  const split = player.context.createChannelSplitter(2);
  player.output.connect(split);
  analyser.forEach((one, i) => split.connect(one, i));
  const buffer = new Float32Array(2048);
  const heard = [[], []];
  player.seek(from);
  await player.media.play();
  await new Promise((resolve) => {
    const look = () => {
      analyser.forEach((one, i) => {
        one.getFloatTimeDomainData(buffer);
        const at = buffer.findIndex((value) => Math.abs(value) > 0.2);
        if (at >= 0) heard[i].push(player.media.currentTime - (buffer.length - at) / player.context.sampleRate);
      });
      if (player.media.currentTime > from + 3.2) resolve(); else setTimeout(look, 5);
    };
    look();
  });
  player.pause();
  return heard;
}"""


def test_clicks_sound_when_the_cursor_is_on_them_each_on_its_side(enter):
    page = enter("Ben")
    page.mouse.click(300, 5)
    left, right = page.evaluate(HEARD, 1.5)
    assert left, "the left click is not heard"
    assert right, "the right click is not heard"
    # The browser reports its position in steps; a transcriber sees a tenth of a second as together.
    assert sorted(left)[len(left) // 2] == pytest.approx(2.0, abs=0.1)
    assert sorted(right)[len(right) // 2] == pytest.approx(4.0, abs=0.1)
    page.click(".solo[data-side=right]")
    left, right = page.evaluate(HEARD, 3.0)
    assert len(left) > 0
    assert len(right) > 0
    assert sorted(left)[len(left) // 2] == pytest.approx(4.0, abs=0.1)
    page.click(".solo[data-side=right]")
    page.click(".mute[data-side=right]")
    left, right = page.evaluate(HEARD, 3.0)
    assert (left, right) == ([], [])


def test_drag_split_merge_relabel_remove_and_undo_by_mouse_and_keys(enter, review):
    page = enter("Ben")
    page.evaluate("() => { editor.player.zoom(60, 0); editor.player.surfer.setScroll(0); }")
    page.wait_for_timeout(200)
    pps = page.evaluate("() => editor.player.pps")
    turn = box(page, "e0")
    y = turn["y"] + turn["height"] / 2
    page.mouse.move(turn["x"] + turn["width"] - 2, y)
    page.mouse.down()
    page.mouse.move(turn["x"] + turn["width"] - 2 + 0.5 * pps, y, steps=5)
    page.mouse.up()
    stored(page)
    assert regions(review, "Ben")["e0"].end_s == pytest.approx(6.5, abs=0.05)
    page.keyboard.press("Control+z")
    stored(page)
    assert regions(review, "Ben")["e0"].end_s == 6.0
    page.keyboard.press("Control+y")
    stored(page)
    assert regions(review, "Ben")["e0"].end_s == pytest.approx(6.5, abs=0.05)
    page.evaluate("() => editor.player.seek(4)")
    page.keyboard.press("s")
    stored(page)
    turns = [
        one for one in regions(review, "Ben").values() if (one.speaker, one.kind) == ("left", "turn") and one.end_s < 7
    ]
    assert sorted((one.start_s, round(one.end_s, 1)) for one in turns) == [(1.0, 4.0), (4.0, 6.5)]
    page.keyboard.press("m")
    stored(page)
    assert regions(review, "Ben")["e0"].end_s == pytest.approx(6.5, abs=0.05)
    page.click(".region.backchannel")
    page.keyboard.press("5")
    stored(page)
    (changed,) = [one for one in regions(review, "Ben").values() if one.kind == "failed_take"]
    assert changed.start_s == 3.0
    page.keyboard.press("Delete")
    stored(page)
    assert changed.region_id not in regions(review, "Ben")
    lane = page.locator(".lane.right.backchannel").bounding_box()
    page.mouse.move(lane["x"] + 8 * pps, lane["y"] + 8)
    page.mouse.down()
    page.mouse.move(lane["x"] + 8.5 * pps, lane["y"] + 8, steps=4)
    page.mouse.up()
    stored(page)
    (made,) = [one for one in regions(review, "Ben").values() if one.kind == "backchannel"]
    assert (made.speaker, round(made.start_s, 1), round(made.end_s, 1)) == ("right", 8.0, 8.5)
    (copy,) = review.desk.store.copies(SESSION)
    actions = [row["action"] for row in review.desk.store.history(copy.copy_id)]
    assert actions == ["drag boundary", "undo", "redo", "split", "merge", "relabel", "remove", "add"]


def test_flags_are_gone_through_and_a_changed_one_is_noted(enter, review):
    page = enter("Ben")
    page.keyboard.press("n")
    page.wait_for_timeout(200)
    first, last = page.evaluate("() => editor.player.visible")
    assert first <= 10.5
    assert last >= 11.0
    assert last - first < 8
    page.keyboard.press("3")
    stored(page)
    (copy,) = review.desk.store.copies(SESSION)
    assert copy.state.flags == {"short_lexical_turn:left:10.500": "changed"}
    assert "0 of 1 open" in page.locator(".flags h2").inner_text()


def test_submitted_and_approved_labels_are_in_force(enter, review, tmp_path):
    ben = enter("Ben")
    ben.click(".region.backchannel")
    ben.keyboard.press("Delete")
    stored(ben)
    ben.evaluate("() => { editor.select('e5'); editor.change('set end', { end_s: 14.5 }); }")
    stored(ben)
    ben.click(".submit")
    ben.wait_for_selector(".chip.submitted")
    (copy,) = review.desk.store.copies(SESSION)
    ada = enter("Ada", f"#/session/{SESSION}/{copy.copy_id}")
    ada.click(".approve")
    ada.wait_for_selector(".chip.approved")
    labels = approved(tmp_path / "reviews")[SESSION]
    assert len(labels) == 5
    # What nobody touched is where the engine put it, to the last bit.
    assert (labels[-1].start_s, labels[-1].end_s) == (12 + 1 / 3, 14.5)


def test_two_editors_of_one_copy_see_the_conflict_and_both_edits_stay(enter, review):
    ben, cem = enter("Ben", f"#/session/{SESSION}/together"), enter("Cem", f"#/session/{SESSION}/together")
    cem.evaluate("() => clearInterval(editor.poll)")
    ben.evaluate("() => { editor.select('e0'); editor.change('set end', { end_s: 6.2 }); }")
    stored(ben)
    cem.evaluate("() => { editor.select('e5'); editor.change('set end', { end_s: 15.4 }); }")
    cem.wait_for_selector("dialog[open]")
    told = cem.locator("dialog").inner_text()
    assert "Ben" in told
    assert "0:06.20" in told
    assert "0:15.40" in told
    cem.click("text=Put mine on top of theirs")
    stored(cem)
    found = regions(review, "together")
    assert (found["e0"].end_s, found["e5"].end_s) == (6.2, 15.4)


def test_an_edit_of_a_label_that_another_removed_goes_into_a_file(enter, review):
    ben, cem = enter("Ben", f"#/session/{SESSION}/together"), enter("Cem", f"#/session/{SESSION}/together")
    cem.evaluate("() => clearInterval(editor.poll)")
    ben.evaluate("() => { editor.select('e5'); editor.remove(); }")
    stored(ben)
    cem.evaluate("() => { editor.select('e5'); editor.change('set end', { end_s: 15.4 }); }")
    with cem.expect_download() as kept:
        cem.click("text=Put mine on top of theirs")
    assert "no longer there" in cem.locator(".notice.error").inner_text()
    assert "15.4" in Path(kept.value.path()).read_text()
    assert "e5" not in regions(review, "together")


def test_edits_made_while_the_server_is_away_wait_and_are_stored(enter, review):
    page = enter("Ben")
    review.stop()
    page.evaluate("() => { editor.select('e0'); editor.change('set end', { end_s: 6.2 }); }")
    page.wait_for_selector(".saved.wrong")
    assert "nothing is lost" in page.locator(".saved").inner_text()
    page.evaluate("() => { editor.change('set start', { start_s: 0.9 }); }")
    assert len(page.evaluate("() => JSON.parse(localStorage.getItem(editor.saver.key))")) == 2
    review.start()
    stored(page)
    assert (regions(review, "Ben")["e0"].start_s, regions(review, "Ben")["e0"].end_s) == (0.9, 6.2)


def test_after_a_restart_one_signs_in_again_and_waiting_edits_are_stored(enter, review):
    page = enter("Ben")
    review.stop()
    page.evaluate("() => { editor.select('e0'); editor.change('set end', { end_s: 6.2 }); }")
    page.wait_for_selector(".saved.wrong")
    review.app = create_app(review.desk)  # Forgets who was signed in.
    review.start()
    page.wait_for_selector("#name")
    page.click("text=Start")
    page.wait_for_selector(".region")
    stored(page)
    assert regions(review, "Ben")["e0"].end_s == 6.2


def test_window_check_and_listener_task(enter, review):
    page = enter("Ben", "#/windows")
    page.wait_for_selector(".accept")
    for _ in range(2):
        page.wait_for_timeout(500)
        page.keyboard.press("a")
    page.wait_for_timeout(300)
    assert [check.accepted for check in review.desk.log.checks()] == [True, True]
    page.goto(f"{review.url}/#/listening")
    page.click(".listen")
    page.wait_for_function("() => document.querySelector('.now')")
    page.wait_for_timeout(600)
    page.keyboard.press("Space")
    page.fill(".stage input", "go on")
    page.keyboard.press("Enter")
    page.wait_for_selector(".listen")
    (answer,) = review.desk.log.answers()
    assert answer.would_speak
    assert answer.words == "go on"
    assert answer.after_boundary_s < 0


def test_names_from_outside_are_text_and_no_script(enter, review):
    page = enter("<img src=x onerror=alert(1)>", "#/sessions")
    page.wait_for_selector("table")
    assert page.locator(".who img").count() == 0
    assert "<img" in page.locator(".who").inner_text()


def test_help_names_every_key_and_is_closed_by_escape(enter):
    page = enter("Ben")
    page.keyboard.press("?")
    told = page.locator("dialog[open]").inner_text()
    for word in ("split at the cursor", "merge", "undo", "spectrogram", "Backchannel"):
        assert word in told
    page.keyboard.press("Escape")
    page.wait_for_selector("dialog", state="hidden")
