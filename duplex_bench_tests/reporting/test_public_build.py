"""The public report holds nothing that people said, wherever a stored table may carry it."""

import dataclasses
import gzip
import json

import polars as pl
import pytest
import soundfile

from duplex_bench.reporting.inputs import ReportInputError, SiteSettings, Table
from duplex_bench.reporting.site import build_site
from duplex_bench.reporting.site.recording import build_recording_page

pytestmark = pytest.mark.unit

SECRETS = {
    "gold": "quince marmalade on the shelf",
    "question": "what did I put on the shelf again",
    "raw": "the person clearly said quince",
    "reason": "gold says marmalade, answer says jam",
    "understood": "so the marmalade stood there",
    "identity": "you are Odile and you know Bertrand",
    "table": "a column nobody has listed says quince",
}
PLANTED = ("Utterance 3 of scenario", "So I went to the market and", "I suppose so, yes", "five thirty")


@pytest.fixture(scope="module")
def loaded(factory_module, tmp_path_factory):
    """Inputs with the words of people in every column that can hold free text."""
    inputs = factory_module.Factory(tmp_path_factory.mktemp("blobs")).inputs(scenarios=2, conversations=2, resamples=20)
    log = [{"kind": "user_text", "text": SECRETS["understood"], "available_s": 1.0}]
    events = inputs.blobs.put(gzip.compress(json.dumps(log[0]).encode(), mtime=0), "jsonl.gz")
    tracks = []
    for track in inputs.tracks:
        references = [
            json.dumps({**told, "attributes": {**told["attributes"], "question": SECRETS["question"]}})
            for told in map(json.loads, track.items["reference"])
        ]
        stimuli = [
            json.dumps({**told, "identity_prompt": SECRETS["identity"]})
            for told in map(json.loads, track.items["stimulus"])
        ]
        details = [
            json.dumps({**json.loads(text), "gold": SECRETS["gold"], "request": SECRETS["question"]})
            for text in track.measurements["details"]
        ]
        empty = pl.col("value").is_null()
        unjudged = pl.when(empty).then(pl.lit(f"no verdict: {SECRETS['reason']}")).otherwise(pl.col("reason"))
        tracks.append(
            dataclasses.replace(
                track,
                items=track.items.with_columns(pl.Series("reference", references), pl.Series("stimulus", stimuli)),
                rollouts=track.rollouts.with_columns(
                    pl.when(pl.col("events").is_not_null()).then(pl.lit(events)).alias("events")
                ),
                judgements=track.judgements.with_columns(
                    pl.lit(SECRETS["raw"]).alias("raw"), pl.lit(SECRETS["reason"]).alias("reason")
                ),
                measurements=track.measurements.with_columns(pl.Series("details", details), unjudged.alias("reason")),
                statistics=track.statistics.with_columns(
                    pl.when(pl.col("estimate").is_null())
                    .then(pl.lit(f"2 of 2: no verdict: {SECRETS['reason']}"))
                    .otherwise(pl.col("reason"))
                    .alias("reason")
                ),
            )
        )
    beside = Table("beside", "Beside", "n = 1.", pl.DataFrame({"n": [1], "heard": [SECRETS["table"]]}))
    return dataclasses.replace(inputs, tracks=tuple(tracks), extra_tables=(beside,))


def everything(folder):
    """All text of a report, Parquet files too."""
    parts = []
    for path in sorted(folder.rglob("*")):
        if path.suffix == ".parquet":
            parts.append(pl.read_parquet(path).write_json())
        elif path.suffix in {".html", ".js", ".csv", ".json", ".svg"} and path.name != "plotly.min.js":
            parts.append(path.read_text(encoding="utf-8"))
    return "\n".join(parts)


def test_the_public_build_holds_no_words_of_people_and_the_local_one_does(loaded, tmp_path):
    public = dataclasses.replace(loaded, settings=SiteSettings(build="public"))
    out = build_site(public, tmp_path / "public").parent
    text = everything(out)
    for name, secret in SECRETS.items():
        assert secret not in text, name
    for planted in PLANTED:
        assert planted not in text, planted
    assert "machine-generated" in text
    local = everything(build_site(loaded, tmp_path / "local").parent)
    for name in ("gold", "question", "raw", "reason", "understood", "identity", "table"):
        assert SECRETS[name] in local, name
    for planted in PLANTED:
        assert planted in local, planted


def test_the_public_build_plays_the_system_alone(loaded, tmp_path):
    public = dataclasses.replace(loaded, settings=SiteSettings(build="public"))
    out = build_site(public, tmp_path / "public").parent
    played = [soundfile.read(path, dtype="int16") for path in sorted((out / "media").iterdir())]
    assert played
    assert all(samples.ndim == 1 for samples, _ in played)
    heard = set()
    for track in loaded.tracks:
        for stimulus in map(json.loads, track.items["stimulus"]):
            stored, _ = loaded.blobs.read_audio(stimulus["live"]["source"])
            heard.add(stored[:, 0].tobytes())
    for samples, _ in played:
        assert not any(samples[: len(one) // 2].tobytes() == one for one in heard)


def test_a_recording_has_no_public_page(loaded, tmp_path):
    public = dataclasses.replace(loaded, tracks=loaded.tracks[:1], settings=SiteSettings(build="public"))
    with pytest.raises(ReportInputError, match="both sides"):
        build_recording_page(public, "cascade-300ms", (), pl.DataFrame(), tmp_path / "page")
    assert not (tmp_path / "page").exists()


def test_a_card_of_ones_own_tells_the_public_nothing_of_this_machine(loaded, tmp_path):
    told = "kind python, interpreter /home/somebody/env/bin/python, python_path ."
    mine = dataclasses.replace(loaded.systems[0], card={"environment": told})
    inputs = dataclasses.replace(loaded, systems=(mine, *loaded.systems[1:]))
    public = dataclasses.replace(inputs, settings=SiteSettings(build="public"))
    text = everything(build_site(public, tmp_path / "public").parent)
    assert "somebody" not in text
    assert "python_path ." in text
    assert "/home/somebody/env" in everything(build_site(inputs, tmp_path / "local").parent)
