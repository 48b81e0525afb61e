import dataclasses
import json
import re

import pytest

from duplex_bench.reporting.findings import badness, examples
from duplex_bench.reporting.inputs import SiteSettings
from duplex_bench.reporting.site import build_site
from duplex_bench.reporting.site.run_list import chosen_runs

pytestmark = pytest.mark.unit


def received(path):
    call = re.fullmatch(r'duplexReport\.receive\((".*?"),(.*)\);\n', path.read_text(encoding="utf-8"), re.DOTALL)
    return json.loads(call[2])


@pytest.fixture(scope="module")
def many(report_inputs):
    """The inputs of the small report, told that it has more runs than can have both channels."""
    return dataclasses.replace(report_inputs, settings=SiteSettings(both_sides=2, examples=1))


@pytest.fixture(scope="module")
def folder(many, tmp_path_factory):
    return build_site(many, tmp_path_factory.mktemp("many") / "report").parent


@pytest.fixture(scope="module")
def items(folder):
    return [received(folder / "data" / f"{row['file']}.js") for row in received(folder / "data" / "items.js")["items"]]


def test_runs_beyond_the_limit_play_the_stored_audio_itself(folder, items, many):
    alone = [run for item in items for run in item["runs"] if run["alone"] and run["audio"]]
    assert alone
    for run in alone:
        stored = many.blobs.store.path(many.blobs.key(run["audio"], "flac"))
        assert (folder / run["media"]).samefile(stored)
        assert run["peaks"] is None


def test_their_item_still_shows_what_the_system_heard(items):
    assert all(item["heard"] for item in items if item["runs"])


def test_every_listed_example_is_heard_from_both_sides(items, many):
    runs = {(item["id"], run["system"]): run for item in items for run in item["runs"] if run["repeat"] == 0}
    for track in many.tracks:
        for card in track.cards:
            for system in track.measurements["system"].unique():
                for worst in (True, False):
                    for example in examples(track, card, system, worst=worst, limit=1):
                        assert not runs[(example.item_id, system)]["alone"]


def test_whole_items_are_drawn_within_the_limit(many):
    per_item = {
        item_id: count
        for track in many.tracks
        for item_id, count in track.rollouts.group_by("item_id").len().iter_rows()
    }
    wide = dataclasses.replace(many, settings=SiteSettings(both_sides=sum(per_item.values()) - 1, examples=0))
    both = chosen_runs(wide)
    drawn = {item_id for item_id in per_item if both(item_id, {"repeat": 1, "system": "any"})}
    assert 0 < sum(per_item[item_id] for item_id in drawn) <= wide.settings.both_sides


def test_few_runs_are_all_heard_from_both_sides(report_inputs):
    assert chosen_runs(report_inputs)("any", {})


def test_the_packed_list_says_what_the_items_say(folder, items):
    packed = received(folder / "data" / "runs.js")
    names = packed["names"]
    unpacked = []
    for item, system, repeat, outcome, flat in packed["runs"]:
        fours = [flat[n : n + 4] for n in range(0, len(flat), 4)]
        scores = [(names[a], b, None if c is None else names[c], d) for a, b, c, d in fours]
        unpacked.append((items[item]["id"], names[system], repeat, names[outcome], scores))
    told = [
        (item["id"], run["system"], run["repeat"], run["outcome"],
         [(one["metric"], _short(one["value"]), one["reason"], _short(one["at"])) for one in run["scores"]])
        for item in items for run in item["runs"]
    ]  # fmt: skip
    assert unpacked == told
    assert any(scores for *_, scores in told)


def _short(value):
    return None if value is None else round(value, 3)


def test_examples_come_in_the_order_of_badness(report_inputs):
    checked = 0
    for track in report_inputs.tracks:
        for card in track.cards:
            for system in track.measurements["system"].unique():
                for worst in (True, False):
                    found = examples(track, card, system, worst=worst, limit=50)
                    keys = [((-1 if worst else 1) * badness(card, one.value), one.measurement_id) for one in found]
                    assert keys == sorted(keys)
                    checked += len(keys) > 1
    assert checked
