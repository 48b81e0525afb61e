import dataclasses
import gzip
import json
import re
from html.parser import HTMLParser
from pathlib import Path
from urllib.parse import unquote, urlsplit

import polars as pl
import pytest

from duplex_bench.reporting.inputs import SCHEMAS, ReportInputError, SiteSettings
from duplex_bench.reporting.site import build_site
from duplex_bench.reporting.site.chunks import read_events
from duplex_bench.reporting.tables import load_run

pytestmark = pytest.mark.unit


class Page(HTMLParser):
    """References, ids and text of a page."""

    def __init__(self, path):
        super().__init__()
        self.references, self.ids, self.scripts = [], set(), 0
        self.feed(path.read_text(encoding="utf-8"))

    def handle_starttag(self, tag, attrs):
        found = dict(attrs)
        self.references += [found[name] for name in ("href", "src") if found.get(name)]
        self.ids |= {found["id"]} if "id" in found else set()
        self.scripts += tag == "script"


def received(path):
    call = re.fullmatch(r'duplexReport\.receive\((".*?"),(.*)\);\n', path.read_text(encoding="utf-8"), re.DOTALL)
    return json.loads(call[2])


def test_every_reference_is_relative_and_resolves(report_folder):
    pages = {path.name: Page(path) for path in report_folder.glob("*.html")}
    assert {"index.html", "items.html", "play.html", "failures.html", "tables.html", "provenance.html"} < set(pages)
    for name, page in pages.items():
        for reference in page.references:
            if reference == "data:,":
                continue
            parts = urlsplit(reference)
            assert not parts.scheme, f"{name} refers to {reference}"
            assert not parts.netloc, f"{name} refers to {reference}"
            if parts.path:
                assert (report_folder / unquote(parts.path)).is_file(), f"{name} refers to {reference}"


def test_names_and_transcripts_never_become_markup(report_folder, factory_module):
    for path in report_folder.glob("*.html"):
        text = path.read_text(encoding="utf-8")
        assert "<script>window.broken" not in text
        assert '<b>"semantic"</b>' not in text
    for path in (report_folder / "data").glob("*.js"):
        assert "</script" not in path.read_text(encoding="utf-8")


def test_there_is_a_page_for_every_system_and_metric(report_folder, report_inputs):
    for system in report_inputs.systems:
        assert (report_folder / f"system-{system.name}.html").is_file()
    for track in report_inputs.tracks:
        for card in track.cards:
            text = (report_folder / f"metric-{track.track}-{card.id}.html").read_text(encoding="utf-8")
            assert card.denominator in text


def test_a_missing_score_shows_its_reason_and_no_zero(report_folder):
    text = (report_folder / "system-never-speak.html").read_text(encoding="utf-8")
    row = text[text.index("Takeover latency") :]
    row = row[: row.index("</tr>")]
    assert "no takeover (" in row
    assert "0.00" not in row


def test_every_score_leads_back_to_item_rollout_and_digests(report_folder, report_inputs):
    listing = received(report_folder / "data" / "items.js")
    chunks = {row["id"]: received(report_folder / "data" / f"{row['file']}.js") for row in listing["items"]}
    scores = {
        score["id"]: (item, run, score) for item in chunks.values() for run in item["runs"] for score in run["scores"]
    }
    for track in report_inputs.tracks:
        for row in track.measurements.iter_rows(named=True):
            item, run, score = scores[row["measurement_id"]]
            assert (item["id"], run["key"], score["value"]) == (row["item_id"], row["rollout_key"], row["value"])
            assert score["window"] in {window["id"] for window in item["windows"]}
            assert (report_folder / run["media"]).is_file()
            assert len(item["stimulus"]) == len(run["audio"]) == 64
    assert any(score["judgements"] for _, _, score in scores.values())


def test_tables_load_back_as_stored(report_folder, report_inputs):
    frames = load_run(report_folder)
    for track in report_inputs.tracks:
        assert frames[f"{track.track}-measurements"].equals(track.measurements)
        assert frames[f"{track.track}-statistics"].equals(track.statistics)
        assert f"{track.track}-leaderboard" in frames
    assert (report_folder / "tables" / "stand-ins.csv").is_file()


def test_an_interrupted_build_leaves_the_old_report(report_inputs, tmp_path):
    out = build_site(report_inputs, tmp_path / "report").parent
    before = {path.name: path.read_bytes() for path in out.glob("*.html")}
    gone = report_inputs.tracks[1].rollouts.with_columns(
        pl.when(pl.col("listener_audio").is_not_null()).then(pl.lit("0" * 64)).alias("listener_audio")
    )
    broken = dataclasses.replace(
        report_inputs,
        title="Broken",
        tracks=(report_inputs.tracks[0], dataclasses.replace(report_inputs.tracks[1], rollouts=gone)),
    )
    with pytest.raises(KeyError):
        build_site(broken, out)
    assert {path.name: path.read_bytes() for path in out.glob("*.html")} == before
    assert [path.name for path in tmp_path.iterdir()] == ["report"]


def test_a_report_left_under_its_previous_name_is_put_back(report_inputs, tmp_path):
    small = dataclasses.replace(report_inputs, tracks=())
    out = build_site(small, tmp_path / "report").parent
    out.rename(tmp_path / ".report.previous")
    build_site(dataclasses.replace(small, title="Anew"), tmp_path / "report")
    assert "Anew" in (out / "index.html").read_text(encoding="utf-8")
    assert [path.name for path in tmp_path.iterdir()] == ["report"]


def test_a_folder_that_is_no_report_is_not_overwritten(report_inputs, tmp_path):
    (tmp_path / "thesis.txt").write_text("mine", encoding="utf-8")
    with pytest.raises(ReportInputError, match="not a report folder"):
        build_site(report_inputs, tmp_path)
    assert [path.name for path in tmp_path.iterdir()] == ["thesis.txt"]


def test_a_second_build_is_the_same_bytes_and_encodes_no_audio_again(report_inputs, tmp_path):
    small = dataclasses.replace(report_inputs, tracks=report_inputs.tracks[1:])
    out = build_site(small, tmp_path / "report").parent
    media = {path.name: path.stat().st_ino for path in (out / "media").iterdir()}
    text = {path: path.read_bytes() for path in sorted(out.rglob("*")) if path.suffix in {".html", ".js", ".svg"}}
    build_site(small, out)
    assert {path.name: path.stat().st_ino for path in (out / "media").iterdir()} == media
    assert {path: path.read_bytes() for path in text} == text


def test_the_public_build_holds_nothing_that_systems_heard(report_inputs, tmp_path):
    public = dataclasses.replace(report_inputs, tracks=report_inputs.tracks[:1], settings=SiteSettings(build="public"))
    out = build_site(public, tmp_path / "report").parent
    listing = received(out / "data" / "items.js")
    for row in listing["items"]:
        item = received(out / "data" / f"{row['file']}.js")
        assert (item["heard"], item["turns"], item["gold"]) == (None, [], None)
    frames = load_run(out)
    assert not {"stimulus", "reference"} & set(frames["multiparty-items"].columns)
    everything = b"".join(path.read_bytes() for path in out.rglob("*") if path.suffix in {".html", ".js", ".csv"})
    assert b"Utterance 3 of scenario" not in everything
    import soundfile

    assert {soundfile.info(path).channels for path in (out / "media").iterdir()} == {1}


def test_a_named_event_log_that_is_not_stored_raises(report_inputs):
    assert read_events(report_inputs.blobs, None) == []
    with pytest.raises(KeyError):
        read_events(report_inputs.blobs, "0" * 64)


def test_an_unreadable_reference_names_table_and_item(report_inputs, tmp_path):
    track = report_inputs.tracks[1]
    items = track.items.with_columns(pl.lit("{}").alias("reference"))
    with pytest.raises(ReportInputError, match="conversation/items, item point-"):
        build_site(
            dataclasses.replace(report_inputs, tracks=(dataclasses.replace(track, items=items),)), tmp_path / "report"
        )


def _luminance(colour):
    channels = [int(colour[i : i + 2], 16) / 255 for i in (1, 3, 5)]
    linear = [c / 12.92 if c <= 0.04045 else ((c + 0.055) / 1.055) ** 2.4 for c in channels]
    return 0.2126 * linear[0] + 0.7152 * linear[1] + 0.0722 * linear[2]


def test_text_has_contrast_in_both_themes(report_folder):
    css = (report_folder / "assets" / "site.css").read_text(encoding="utf-8")
    themes = [
        dict(re.findall(r"--([a-z-]+): (#[0-9a-f]{6})", block)) for block in re.findall(r"{([^{}]*--ink:[^{}]*)}", css)
    ]
    assert len(themes) == 3
    assert themes[1] == themes[2]
    for theme in themes:
        pairs = [(text, ground) for text in ("ink", "soft", "link", "warn", "good", "system")
                 for ground in ("ground", "raised")] + [("good", "good-ground"), ("ink", "warn-ground")]  # fmt: skip
        for text, ground in pairs:
            high, low = sorted((_luminance(theme[text]), _luminance(theme[ground])), reverse=True)
            assert (high + 0.05) / (low + 0.05) >= 4.5, (text, ground, theme[text], theme[ground])


def test_pages_are_small_enough_to_paint_at_once(report_folder):
    assert (report_folder / "index.html").stat().st_size < 200_000
    assert all(path.stat().st_size < 400_000 for path in Path(report_folder / "data").glob("item-*.js"))


def test_event_marks_are_drawn_where_something_begins(report_inputs):
    log = [
        {"kind": "rollout", "outcome": "completed"},
        {"kind": "state", "state": "listen", "available_s": 0.1},
        {"kind": "state", "state": "listen", "available_s": 0.2},
        {"kind": "state", "state": "speak", "available_s": 0.3},
        {"kind": "audio", "available_s": 0.4},
        {"kind": "text", "text": "so", "response_id": "r1", "available_s": 0.4},
        {"kind": "text", "text": "yes", "response_id": "r1", "available_s": 0.5},
        {"kind": "flush", "available_s": 0.9},
    ]
    data = gzip.compress("\n".join(map(json.dumps, log)).encode(), mtime=0)
    marks = read_events(report_inputs.blobs, report_inputs.blobs.put(data, "jsonl.gz"))
    assert [(mark["t"], mark["kind"], mark["text"]) for mark in marks] == [
        (0.1, "state", "listen"), (0.3, "state", "speak"), (0.4, "text", "so"), (0.9, "flush", ""),
    ]  # fmt: skip


def test_turns_name_speaker_and_type_and_mark_what_was_not_played(report_folder):
    listing = received(report_folder / "data" / "items.js")
    items = [received(report_folder / "data" / f"{row['file']}.js") for row in listing["items"]]
    scene = next(item for item in items if item["track"] == "multiparty")
    assert [turn[0] for turn in scene["turns"]] == [
        "preamble", "A N2", "B N1", "C T", "A N3", "B N2", "C N4Q", "A N4R",
    ]  # fmt: skip
    assert all(turn[4] for turn in scene["turns"])
    point = next(item for item in items if item["condition"] == "turn_end")
    assert [(turn[0], turn[4]) for turn in point["turns"]] == [("user", True), ("the person, not played", False)]


def test_a_track_without_any_row_still_has_its_pages(report_inputs, tmp_path):
    track = report_inputs.tracks[0]
    empty = dataclasses.replace(track, **{name: getattr(track, name).clear() for name in SCHEMAS})
    out = build_site(dataclasses.replace(report_inputs, tracks=(empty,)), tmp_path / "report").parent
    assert "has no rollouts in this report" in (out / "system-never-speak.html").read_text(encoding="utf-8")
    assert (out / "track-multiparty.html").is_file()


def test_one_system_alone_is_reported_without_a_comparison(report_inputs, tmp_path):
    def only(frame):
        return frame.filter(pl.col("system") == "cascade-300ms") if "system" in frame.columns else frame

    track = report_inputs.tracks[1]
    alone = dataclasses.replace(
        track,
        **{name: only(getattr(track, name)) for name in SCHEMAS if name != "comparisons"},
        comparisons=track.comparisons.clear(),
    )
    out = build_site(dataclasses.replace(report_inputs, tracks=(alone,)), tmp_path / "report").parent
    text = (out / "index.html").read_text(encoding="utf-8")
    assert "Cascade, 300 ms endpointer" in text
    assert "not compared" in text
