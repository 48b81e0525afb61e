import json

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from duplex_bench.review.errors import ReviewInputError
from duplex_bench.review.formats import read_regions, write_regions
from duplex_bench.review.regions import KINDS, Region, ordered, rounded

pytestmark = pytest.mark.unit

DURATION_S = 60.0


@st.composite
def region_sets(draw):
    found = []
    for speaker in ("left", "right"):
        for kind in KINDS:
            edges = sorted(draw(st.lists(st.integers(0, 5990), max_size=8, unique=True)))
            for start, end in zip(edges[::2], edges[1::2], strict=False):
                jitter = draw(st.integers(0, 9)) / 10000
                region = Region("", speaker, kind, rounded(start / 100 + jitter), rounded(end / 100 + 0.01 + jitter))
                found.append(region)
    return [
        Region(f"r{i}", *(getattr(one, n) for n in ("speaker", "kind", "start_s", "end_s")))
        for i, one in enumerate(found)
    ]


def without_ids(regions):
    return [(one.speaker, one.kind, one.start_s, one.end_s) for one in ordered(regions)]


@pytest.mark.parametrize("suffix", [".TextGrid", ".rttm", ".txt", ".json"])
@given(regions=region_sets())
@settings(max_examples=25, deadline=None)
def test_what_is_written_is_read_back(suffix, regions):
    # Neighbours of one kind may touch after the jitter, not overlap.
    kept = []
    for one in ordered(regions):
        if not any(o.speaker == one.speaker and o.kind == one.kind and o.end_s > one.start_s for o in kept):
            kept.append(one)
    text = write_regions(suffix, "a session", kept, DURATION_S)
    assert sorted(without_ids(read_regions(f"x{suffix}", text, DURATION_S))) == sorted(without_ids(kept))


def audacity(*rows):
    return "".join(f"{start}\t{end}\t{label}\n" for start, end, label in rows)


@pytest.mark.parametrize(
    ("name", "text", "told"),
    [
        ("a.txt", audacity((1, 2, "left turn"), (5, 4, "right turn")), r"a\.txt, row 2 .*ends before it starts; swap"),
        ("a.txt", audacity((1, 3, "left turn"), (2, 4, "left turn")), r"a\.txt, row 2 .*overlaps row 1 .*merge"),
        ("a.txt", audacity((1, 99, "left turn")), r"row 1 .*outside the recording of 60\.000 s; correct"),
        ("a.txt", audacity((-1, 2, "left turn")), "outside the recording"),
        ("a.txt", audacity((1, 2, "anna turn")), "call it by speaker and kind"),
        ("a.txt", "1\t2\n", "separated by tabs"),
        ("a.txt", audacity(("one", 2, "left turn")), "are no times"),
        ("a.rttm", "SPEAKER s 1 2.0 -1.0 <NA> turn left <NA> <NA>\n", r"a\.rttm, row 1 .*ends before it starts"),
        ("a.rttm", "SPEAKER s 1 x 1.0 <NA> turn left <NA> <NA>\n", "are no times"),
        ("a.rttm", "SPEAKER s 1 1.0\n", "give SPEAKER file channel"),
        ("a.rttm", "SPEAKER s 3 1.0 1.0 <NA> turn anna <NA> <NA>\n", "give left or right"),
        ("a.json", "{", "is no JSON"),
        ("a.json", '{"x": 1}', "no list of regions"),
        ("a.json", '[{"speaker": "left", "kind": "turn", "start_s": null, "end_s": 2}]', "row 1: start_s is None"),
        ("a.json", '[{"speaker": "left", "kind": "song", "start_s": 1, "end_s": 2}]', "give one of turn"),
        ("a.json", "[3]", "give an object"),
        ("a.TextGrid", "not a grid", r"a\.TextGrid: .*save it again"),
        ("a.eaf", "", "another suffix"),
    ],
)  # fmt: skip
def test_bad_files_are_refused_with_row_and_remedy(name, text, told):
    with pytest.raises(ReviewInputError, match=told):
        read_regions(name, text, DURATION_S)


@pytest.mark.parametrize(("first", "second"), [((1.0, 3.0), (2.0, 4.0)), ((3.0, 1.0), (4.0, 5.0))])
def test_bad_intervals_of_a_textgrid_are_named(first, second):
    rows = "".join(
        f'        intervals [{i}]:\n            xmin = {a}\n            xmax = {b}\n            text = "t"\n'
        for i, (a, b) in enumerate((first, second), start=1)
    )
    grid = (
        'File type = "ooTextFile"\nObject class = "TextGrid"\n\nxmin = 0\nxmax = 60\ntiers? <exists>\nsize = 1\n'
        'item []:\n    item [1]:\n        class = "IntervalTier"\n        name = "left turn"\n        xmin = 0\n'
        f"        xmax = 60\n        intervals: size = 2\n{rows}"
    )
    with pytest.raises(ReviewInputError, match=r"bad\.TextGrid.*(1\.0.*3\.0|3\.0.*1\.0)"):
        read_regions("bad.TextGrid", grid, DURATION_S)


def test_rttm_without_kind_is_turns_and_other_names_go_by_channel():
    text = "SPKR-INFO s 1 <NA>\nSPEAKER s 2 1.5 2.0 <NA> <NA> anna <NA> <NA>\n"
    assert without_ids(read_regions("a.rttm", text, DURATION_S)) == [("right", "turn", 1.5, 3.5)]


def test_audacity_frequency_lines_are_passed_over_and_a_published_review_can_be_read():
    assert len(read_regions("a.txt", "1\t2\tleft turn\n\\\t100\t200\n", DURATION_S)) == 1
    review = {"labels": [{"speaker": "right", "kind": "failed_take", "start_s": 1, "end_s": 2}]}
    assert without_ids(read_regions("a.json", json.dumps(review), DURATION_S)) == [("right", "failed_take", 1.0, 2.0)]
