import pytest

from duplex_bench.multiparty.checked_speech import (
    ConstructionSettings,
    HeardClip,
    boundary_summary,
    by_voice,
    misheard,
)
from duplex_bench.multiparty.construction import BoundaryError
from duplex_bench.text.error_rate import word_errors

pytestmark = pytest.mark.unit


def clip(voice, text, heard):
    return HeardClip(voice, text, heard, word_errors(text, heard))


def test_rates_are_over_all_words_of_a_voice_not_over_clips():
    clips = [clip("a", "one word wrong here", "one bird wrong here"), clip("a", "fine", "fine"), clip("b", "gone", "")]
    rows = {row["voice"]: row for row in by_voice(clips).to_dicts()}
    assert rows["a"]["word_error_rate"] == pytest.approx(1 / 5)
    assert rows["a"]["clips_exact"] == 0.5
    assert rows["b"]["deletions"] == 1
    assert rows["all"]["n_words"] == 6
    assert rows["all"]["n_clips"] == 3


def test_no_clips_give_no_rate():
    row = by_voice([]).row(0, named=True)
    assert (row["voice"], row["n_clips"], row["word_error_rate"]) == ("all", 0, None)


def test_misheard_lists_the_worst_first_and_only_wrong_ones():
    clips = [clip("a", "yes it is", "yes it is"), clip("a", "two words", "to birds"), clip("b", "one more", "one moor")]
    assert misheard(clips)["heard"].to_list() == ["to birds", "one moor"]
    assert misheard(clips, limit=1).height == 1


def test_edges_that_were_not_heard_are_outside_the_tolerance():
    errors = [BoundaryError("u1", 0.02, 0.06), BoundaryError("u2", None, 0.3), BoundaryError("u3", -0.2, 0.0)]
    onset, offset = boundary_summary(errors, 0.2).to_dicts()
    assert (onset["n_edges"], onset["not_heard"]) == (3, 1)
    assert onset["within_tolerance"] == pytest.approx(2 / 3)
    assert offset["within_tolerance"] == pytest.approx(2 / 3)
    assert offset["median_s"] == pytest.approx(0.06)


def test_without_scenes_nothing_is_claimed():
    assert boundary_summary([], 0.2)["within_tolerance"].to_list() == [None, None]


@pytest.mark.parametrize(
    "wrong", [{"clips_checked": 0}, {"scenes_checked": -1}, {"boundary_tolerance_s": 0.0}, {"boundary_share": 1.5}]
)
def test_settings_out_of_range_are_refused(wrong):
    with pytest.raises(ValueError, match=r"give|share"):
        ConstructionSettings(**wrong)
