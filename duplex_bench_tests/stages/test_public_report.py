"""The public build made from the store of a run: beside the local one, whole, and without words of people."""

import gzip
import io
import json
import re

import polars as pl
import pytest
from PIL import Image
from planted_run import keep

from duplex_bench.reporting.figures import Drawn
from duplex_bench.reporting.inputs import Table
from duplex_bench.stages import summary
from duplex_bench.stages.public_report import public_folder, public_report
from duplex_bench.stages.stored_run import TRACKS, required, systems_with
from duplex_bench.storage.frames import write_frame
from duplex_bench.systems.card import SystemCard

pytestmark = pytest.mark.unit


def cards_of(workspace):
    names = {name for track in TRACKS for name in systems_with(workspace, track, "rollouts")}
    made = {"silent": "duplex_bench.systems.adapters.never_speak:create"}
    return [
        SystemCard(name=name, title=name, family="policy", adapter=made.get(name, "a.b:c"), licence="test")
        for name in sorted(names)
    ]


@pytest.fixture
def drawn(run):
    """The run with its figures stored."""
    for track in TRACKS:
        png = io.BytesIO()
        Image.new("RGB", (4, 3)).save(png, "PNG")
        figure = Drawn(f"{track}-figure", "A figure", "n = 3", b"<svg/>", b"<svg/>", png.getvalue(), None)
        keep(run, track, "figures", summary.figures_result(run, [figure]).frame)
    return run


def words_of_people(workspace, track):
    """Every sentence that a person says in the references of a track's items."""
    found = set()

    def collect(value):
        if isinstance(value, dict):
            for inner in value.values():
                collect(inner)
        elif isinstance(value, list):
            for inner in value:
                collect(inner)
        elif isinstance(value, str) and " " in value and len(re.findall(r"[a-z]{2,}", value)) >= 4:
            found.add(value)

    for text in required(workspace, track, "items")["reference"]:
        collect(json.loads(text))
    return found


def everything(folder):
    for path in folder.rglob("*"):
        if path.is_file():
            data = path.read_bytes()
            yield path, gzip.decompress(data) if data[:2] == b"\x1f\x8b" else data


def test_the_public_build_lies_beside_the_local_one_and_has_every_kind_of_page(drawn):
    result = public_report(drawn, cards_of(drawn))
    out = public_folder(drawn)
    assert out.parent == drawn.report_folder.parent
    assert out != drawn.report_folder
    assert {path.name for path in out.glob("*.html")} >= {
        "index.html", "track-multiparty.html", "track-conversation.html", "system-early.html", "items.html",
        "play.html", "papers.html", "costs.html", "failures.html", "tables.html", "provenance.html",
    }  # fmt: skip
    assert not drawn.report_folder.exists()
    assert dict(result.frame.select("track", "systems").iter_rows()) == {"multiparty": 3, "conversation": 2}
    assert "machine-generated" in (out / "index.html").read_text(encoding="utf-8").lower()


def test_no_sentence_of_a_reference_is_in_any_file(drawn):
    public_report(drawn, cards_of(drawn))
    files = list(everything(public_folder(drawn)))
    for track in TRACKS:
        sentences = words_of_people(drawn, track)
        assert sentences
        found = {(path.name, one) for path, data in files for one in sentences if one.encode() in data}
        assert found == set()


def test_a_run_of_nothing_and_a_run_with_a_missing_table_say_what_to_run(run, drawn, small_workspace, tmp_path):
    with pytest.raises(ValueError, match="run `duplex-bench run` first"):
        public_report(small_workspace(tmp_path / "empty"), [])
    drawn.store.delete(drawn.table_key(("multiparty", "figures"), None))
    with pytest.raises(ValueError, match="no table multiparty/figures"):
        public_report(drawn, cards_of(drawn))


def test_tables_beside_the_tracks_are_shown_where_they_are_stored(drawn):
    out = public_folder(drawn)
    words = pl.DataFrame({"measure": ["WER"], "share": [0.1]})
    quality = Table("recogniser-known-words", "Known words", "n = 3 clips", words)
    public_report(drawn, cards_of(drawn))
    before = {path.name for path in out.rglob("*")}
    table = summary.store_tables(drawn, [quality], {}).frame
    write_frame(drawn.store, drawn.table_key(("results", "recogniser_quality"), None), table)
    public_report(drawn, cards_of(drawn))
    after = {path.name for path in out.rglob("*")}
    assert any("known-words" in name for name in after - before)
