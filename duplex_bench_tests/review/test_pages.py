import io
import sqlite3
import struct

import numpy as np
import pytest
import soundfile

from duplex_bench.review.access import ReviewSettings
from duplex_bench.review.errors import ReviewInputError
from duplex_bench.stages.reviews import approved, read_review

pytestmark = pytest.mark.unit

SESSION = "V00_S1_I1"


def opened(client, whose="mine", session_id=SESSION):
    return client.post("/api/copies", json={"session_id": session_id, "whose": whose}).json()


def send(client, copy, operations, number=1, version=None, action="drag"):
    seen = copy["version"] if version is None else version
    body = {"edit_id": f"edit-{number:08d}", "version": seen, "action": action, "operations": operations}
    return client.post(f"/api/copies/{copy['copy_id']}/edits", json=body)


def moved(copy, number, **values):
    return {"op": "change", "region": {**copy["regions"][number], **values}}


def decided(client, copy, decision, note="", version=None):
    body = {"version": copy["version"] if version is None else version, "decision": decision, "note": note}
    return client.post(f"/api/copies/{copy['copy_id']}/decisions", json=body)


def test_nothing_is_shown_to_strangers(desk, visitor):
    stranger = visitor(desk, None)
    for path in (
        "sessions",
        f"session?session_id={SESSION}",
        f"session/audio.wav?session_id={SESSION}",
        "windows",
        "tables/windows",
    ):
        assert stranger.get(f"/api/{path}").status_code == 401
    assert stranger.post("/api/copies", json={"session_id": SESSION, "whose": "mine"}).status_code == 401


def test_other_hosts_and_other_pages_are_refused(desk, visitor):
    ben = visitor(desk, "Ben")
    assert ben.get("/api/sessions", headers={"host": "evil.example"}).status_code == 400
    assert ben.get("/api/sessions", headers={"origin": "http://evil.example"}).status_code == 403
    assert ben.get("/api/sessions", headers={"origin": "http://127.0.0.1"}).status_code == 200
    page = ben.get("/")
    assert "script-src" not in page.headers["content-security-policy"]
    assert "default-src 'self'" in page.headers["content-security-policy"]


def test_beyond_this_machine_tokens_are_needed(make_desk, visitor):
    with pytest.raises(ReviewInputError, match="DUPLEX_BENCH_REVIEW_TOKEN"):
        ReviewSettings(token="t").check_host("0.0.0.0")
    ReviewSettings(token="t", administrator_token="a").check_host("0.0.0.0")
    ReviewSettings().check_host("127.0.0.1")
    desk = make_desk(token="open sesame", administrator_token="above")
    stranger = visitor(desk, None)
    for name, token in (("Ben", "wrong"), ("Ben", ""), ("Ada", "open sesame")):
        assert stranger.post("/api/sign-in", json={"name": name, "token": token}).status_code == 403
    assert not visitor(desk, "Ben", "open sesame").get("/api/me").json()["administrator"]
    assert visitor(desk, "Ada", "above").get("/api/me").json()["administrator"]


@pytest.mark.parametrize("name", ["", "   ", "x" * 61, "together", "a\x00b"])
def test_names_that_cannot_be_used(desk, visitor, name):
    assert visitor(desk, None).post("/api/sign-in", json={"name": name}).status_code == 422


def test_signing_out_forgets_the_ticket(desk, visitor):
    ben = visitor(desk, "Ben")
    ticket = dict(ben.cookies)
    ben.post("/api/sign-out")
    ben.cookies.update(ticket)
    assert ben.get("/api/sessions").status_code == 401


def test_from_the_engine_s_labels_to_labels_in_force(desk, visitor, tmp_path):
    ben, ada = visitor(desk, "Ben"), visitor(desk, "Ada")
    copy = opened(ben)
    assert [region["region_id"] for region in copy["regions"]] == [f"e{i}" for i in range(6)]
    copy = send(ben, copy, [moved(copy, 0, end_s=6.25)]).json()
    assert copy["version"] == 1
    assert decided(ben, copy, "approve").status_code == 403
    assert decided(ada, copy, "approve").status_code == 403  # Not submitted yet.
    assert not list((tmp_path / "reviews").glob("*"))
    copy = decided(ben, copy, "submit").json()
    assert send(ben, copy, [moved(copy, 0, end_s=6.5)], 2).status_code == 403
    copy = decided(ada, copy, "return", "look at the end").json()
    assert copy["decisions"][-1]["note"] == "look at the end"
    copy = send(ben, copy, [moved(copy, 0, end_s=6.3)], 3).json()
    copy = decided(ben, copy, "submit").json()
    copy = decided(ada, copy, "approve").json()
    assert (copy["status"], copy["editable"]) == ("approved", False)
    review = read_review(tmp_path / "reviews" / f"{SESSION}.json")
    assert (review.session_id, review.status, review.approved_by) == (SESSION, "approved", "Ada")
    labels = approved(tmp_path / "reviews")[SESSION]
    assert (labels[0].start_s, labels[0].end_s) == (1.0, 6.3)
    assert len(labels) == 6
    assert decided(ada, copy, "return").status_code == 422  # Without a note.
    decided(ada, copy, "return", "once more")
    assert approved(tmp_path / "reviews") == {}


def test_the_second_of_two_editors_is_told_and_loses_nothing(desk, visitor):
    ben, cem = visitor(desk, "Ben"), visitor(desk, "Cem")
    copy = opened(ben, "together")
    assert opened(cem, "together")["copy_id"] == copy["copy_id"]
    assert send(ben, copy, [moved(copy, 0, end_s=6.25)]).status_code == 200
    late = send(cem, copy, [moved(copy, 5, end_s=15.5)], 2)
    assert late.status_code == 409
    assert late.json()["current_version"] == 1
    theirs = cem.get(f"/api/copies/{copy['copy_id']}/history?after_version=0").json()
    assert [(row["person"], row["operations"][0]["region"]["end_s"]) for row in theirs] == [("Ben", 6.25)]
    on_top = send(cem, copy, [moved(copy, 5, end_s=15.5)], 2, version=1).json()
    ends = {region["region_id"]: region["end_s"] for region in on_top["regions"]}
    assert (ends["e0"], ends["e5"]) == (6.25, 15.5)


def test_a_database_lost_in_an_edit_is_said_and_the_edit_can_be_sent_again(desk, visitor, tmp_path):
    ben = visitor(desk, "Ben")
    copy = opened(ben)
    blocker = sqlite3.connect(tmp_path / "review.sqlite", isolation_level=None)
    blocker.execute("BEGIN EXCLUSIVE")
    lost = send(ben, copy, [moved(copy, 0, end_s=6.25)])
    assert lost.status_code == 503
    assert "nothing of this step was stored" in lost.json()["error"]
    blocker.execute("ROLLBACK")
    blocker.close()
    assert send(ben, copy, [moved(copy, 0, end_s=6.25)]).json()["version"] == 1


def test_others_copies_can_be_looked_at_not_changed(desk, visitor):
    ben, cem = visitor(desk, "Ben"), visitor(desk, "Cem")
    copy = opened(ben)
    seen = cem.get(f"/api/copies/{copy['copy_id']}").json()
    assert not seen["editable"]
    assert send(cem, copy, [moved(copy, 0, end_s=6.25)]).status_code == 403
    assert decided(cem, copy, "submit").status_code == 403


def test_blind_annotators_see_neither_engine_nor_colleagues(make_desk, visitor):
    desk = make_desk(blind=True)
    ben, cem, ada = (visitor(desk, name) for name in ("Ben", "Cem", "Ada"))
    copy = opened(ben)
    assert (copy["regions"], copy["began_with"]) == ([], "nothing")
    session = ben.get(f"/api/session?session_id={SESSION}").json()
    assert (session["engine"], session["flags"], session["n_flags"]) == ([], [], 0)
    assert cem.get(f"/api/copies/{copy['copy_id']}").status_code == 404
    assert cem.get(f"/api/copies/{copy['copy_id']}/history").status_code == 404
    assert cem.get(f"/api/copies/{copy['copy_id']}/export?suffix=.json").status_code == 404
    assert all(not one["copies"] and not one["n_flags"] for one in cem.get("/api/sessions").json())
    assert cem.post("/api/copies", json={"session_id": SESSION, "whose": "together"}).status_code == 403
    assert ada.get("/api/sessions").json()[0]["copies"][0]["owner"] == "Ben"
    assert len(ada.get(f"/api/session?session_id={SESSION}").json()["engine"]) == 6


def test_files_go_out_and_come_back_as_one_step(desk, visitor):
    ben = visitor(desk, "Ben")
    copy = opened(ben)
    for suffix in (".TextGrid", ".rttm", ".txt", ".json"):
        given = ben.get(f"/api/copies/{copy['copy_id']}/export", params={"suffix": suffix})
        assert given.status_code == 200
        body = {"edit_id": f"import-{suffix}", "version": copy["version"], "name": f"x{suffix}", "text": given.text}
        before = [(r["speaker"], r["kind"], r["start_s"], r["end_s"]) for r in copy["regions"]]
        copy = ben.post(f"/api/copies/{copy['copy_id']}/import", json=body).json()
        assert [(r["speaker"], r["kind"], r["start_s"], r["end_s"]) for r in copy["regions"]] == before
    assert copy["version"] == 4
    bad = {"edit_id": "import-bad", "version": 4, "name": "x.txt", "text": "3\t2\tleft turn\n"}
    refused = ben.post(f"/api/copies/{copy['copy_id']}/import", json=bad)
    assert refused.status_code == 422
    assert "x.txt, row 1" in refused.json()["error"]
    assert ben.get(f"/api/copies/{copy['copy_id']}").json()["version"] == 4


def test_the_sound_is_exact_in_every_range(desk, visitor):
    ben = visitor(desk, "Ben")
    path = f"/api/session/audio.wav?session_id={SESSION}"
    whole = ben.get(path)
    samples, rate = soundfile.read(io.BytesIO(whole.content), dtype="int16", always_2d=True)
    assert (rate, samples.shape) == (24000, (480000, 2))
    assert np.flatnonzero(samples[:, 0])[0] == 48000
    assert np.flatnonzero(samples[:, 1])[0] == 96000
    for wanted in ("bytes=0-9", "bytes=40-60", "bytes=100-", "bytes=-20", "bytes=43-44"):
        part = ben.get(path, headers={"range": wanted})
        first, last = (int(x) for x in part.headers["content-range"].split()[1].split("/")[0].split("-"))
        assert part.status_code == 206
        assert part.content == whole.content[first : last + 1]
    assert ben.get(path, headers={"range": "bytes=99999999-"}).status_code == 416
    assert ben.get(path, headers={"range": "bytes=x-"}).status_code == 416


def test_peaks_are_linear_in_time(desk, visitor):
    raw = visitor(desk, "Ben").get(f"/api/session/peaks?session_id={SESSION}").content
    values = np.array(struct.unpack(f"<{len(raw) // 2}H", raw)).reshape(2, -1)
    assert values.shape[1] == 20 * 500
    assert np.flatnonzero(values[0]).tolist() == [1000, 3750, 6625]
    assert values[0].max() == 40000
    assert np.flatnonzero(values[1])[0] == 2000


def test_a_click_stands_in_the_spectrogram_where_it_is_heard(desk, visitor):
    from PIL import Image

    query = {"session_id": SESSION, "channel": 0, "start_s": 1, "stop_s": 3, "width": 200, "height": 50}
    picture = visitor(desk, "Ben").get("/api/session/spectrogram.png", params=query)
    columns = np.asarray(Image.open(io.BytesIO(picture.content))).astype(float).mean(axis=0)
    assert columns.shape == (200,)
    dark = np.flatnonzero(columns < columns.min() + 40)
    assert abs(dark.mean() - 100) <= 1.5  # The click is 1 s into 2 s.
    assert visitor(desk, "Ben").get("/api/session/spectrogram.png", params={**query, "stop_s": 500}).status_code == 422


def test_the_listener_task_holds_no_future_and_does_not_say_what_the_window_is(desk, visitor):
    ben = visitor(desk, "Ben")
    listening = ben.get("/api/listening").json()
    assert sorted(listening["left"]) == ["p1", "p2"]
    samples, rate = soundfile.read(io.BytesIO(ben.get("/api/listening/p1/audio.wav").content), always_2d=True)
    assert len(samples) / rate == pytest.approx(2.5)
    assert (
        ben.post(
            "/api/listening/p1", json={"would_speak": True, "after_boundary_s": 0.4, "words": "really?"}
        ).status_code
        == 200
    )
    assert ben.post("/api/listening/p2", json={"would_speak": False, "after_boundary_s": 1}).status_code == 422
    assert ben.get("/api/listening").json()["left"] == ["p2"]
    rows = visitor(desk, "Ada").get("/api/tables/listeners").json()
    assert [(row["person"], row["kind"], row["after_boundary_s"]) for row in rows] == [("Ben", "pause", 0.4)]
    assert ben.get("/api/tables/listeners").status_code == 403


def test_window_checks_are_logged_and_agreement_is_computed(desk, visitor):
    ben, cem, ada = (visitor(desk, name) for name in ("Ben", "Cem", "Ada"))
    assert ben.post("/api/windows/p1/check", json={"accepted": False}).status_code == 422
    assert ben.post("/api/windows/zzz/check", json={"accepted": True}).status_code == 404
    for person, verdicts in ((ben, (True, False)), (cem, (True, True))):
        for point, accepted in zip(("p1", "p2"), verdicts, strict=True):
            body = {"accepted": accepted, "reason": "" if accepted else "=off"}
            assert person.post(f"/api/windows/{point}/check", json=body).status_code == 200
    assert {one["point_id"]: one["verdict"]["accepted"] for one in ben.get("/api/windows").json()} == {
        "p1": True,
        "p2": False,
    }
    (row,) = ada.get("/api/tables/window-agreement").json()
    assert (row["n_both"], row["n_agree"], row["kappa"]) == (2, 1, 0.0)
    windows = {(one["point_id"], one["person"]): one["window"] for one in ada.get("/api/tables/windows").json()}
    assert windows == {
        ("p1", "Ben"): "accepted",
        ("p1", "Cem"): "accepted",
        ("p2", "Ben"): "split",
        ("p2", "Cem"): "split",
    }
    assert "'=off" in ada.get("/api/tables/windows?form=csv").text


def test_table_6_over_approved_copies_alone(desk, visitor):
    ben, ada = visitor(desk, "Ben"), visitor(desk, "Ada")
    copy = opened(ben)
    flagged = next(r for r in copy["regions"] if r["start_s"] == 10.5)
    copy = send(ben, copy, [{"op": "change", "region": {**flagged, "kind": "backchannel"}}]).json()
    copy = decided(ben, copy, "submit").json()
    rows = {row["measure"]: row for row in ada.get("/api/tables/engine-agreement").json()}
    assert rows["conversations"]["count"] == 0
    decided(ada, copy, "approve")
    rows = {row["measure"]: row for row in ada.get("/api/tables/engine-agreement").json()}
    assert rows["engine turns"]["count"] == 4
    assert rows["engine turns that became backchannels"]["share"] == 0.25
    assert rows["flagged engine turns changed"]["share"] == 1
    assert rows["unflagged engine turns changed"]["share"] == 0
