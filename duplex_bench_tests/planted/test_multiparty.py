"""Multiparty metrics return what was planted, at every boundary, within what gate and voice detector are known to err.

Measured biases (docs/embedded-models.md): the gate opens up to 20 ms early; silero is 22 ms late at an onset and 60 ms
at an end. ``NEAR`` keeps planted boundaries that far from a rule's boundary; the exact boundary is scored by the gate,
whose error has a known side.
"""

import polars as pl
import pytest

from duplex_bench.stages import summary
from duplex_bench.stages.items import items_of

pytestmark = pytest.mark.engine

TRACK = "multiparty"
NEAR_S = 0.1
ONSET_TOLERANCE_S = 0.1
STOP_TOLERANCE_S = 0.15


def windows(item):
    """The request, the first three silence windows before it, the yield window, and the silence window after it."""
    request, gives_way = (next(w for w in item.reference.windows if w.kind == kind) for kind in ("request", "yield"))
    silences = [w for w in item.reference.windows if w.kind == "silence"]
    before = [w for w in silences if w.end_s <= request.start_s]
    after = [w for w in silences if w.start_s >= gives_way.marks["next_onset_s"]]
    return request, before, gives_way, after[0]


@pytest.fixture(scope="module")
def scene(scenes):
    """The explicit form of the scenario: one item."""
    return scenes.filter(pl.col("condition") == "explicit")


@pytest.fixture(scope="module")
def item(scene):
    (found,) = items_of(scene).values()
    return found


@pytest.fixture(scope="module")
def marks(item):
    request, _, gives_way, after = windows(item)
    return {
        "t_end": request.start_s,
        "asked": gives_way.marks["question_end_s"],
        "resolved": gives_way.marks["resolution_start_s"],
        "next": gives_way.marks["next_onset_s"],
        "after": after.start_s,
    }


@pytest.fixture(scope="module")
def clips(chain, item):
    voice = chain.voice
    return {
        "gold": voice.says(f"It is {item.reference.gold_answer}."),
        "wrong": voice.says("Nobody can say."),
        "intrusion": voice.says("Paris is lovely in spring."),
        "acknowledgement": voice.says("Okay."),
    }


@pytest.fixture(scope="module")
def plans(chain, item, marks, clips):
    """What each planted system does; seconds on the listener timeline."""
    talks, hums = chain.voice.talks, chain.voice.hums
    end, asked, resolved = marks["t_end"], marks["asked"], marks["resolved"]
    _, before, _, _ = windows(item)
    answering = asked + 1.0
    return {
        "prompt": [
            (before[0].start_s + 0.8, clips["intrusion"]),
            (before[1].start_s + 0.8, clips["acknowledgement"]),
            (end + 1.0, clips["gold"]),
            (answering, talks(resolved + 1.0 - answering)),
        ],
        "last-moment": [
            (end + 5.0 - NEAR_S, clips["gold"]),
            (answering, talks(resolved + 2.0 - 2 * NEAR_S - answering)),
        ],
        "too-late": [
            (end + 5.0 + NEAR_S, clips["gold"]),
            (answering, talks(resolved + 2.0 + 2 * NEAR_S - answering)),
        ],
        "at-the-end": [
            (end, clips["wrong"]),
            (answering, talks(resolved + 1.0 - answering)),
            (resolved + 2.3, talks(0.8)),
        ],
        "under-way": [(end - 1.0, talks(2.5)), (asked - 0.5, talks(2.0))],
        "talks-on": [(end + 4.5, talks(marks["after"] + 1.0 - end - 4.5))],
        "hum": [(before[0].start_s + 0.8, hums(1.0)), (end + 1.0, hums(1.0)), (asked + 0.5, talks(1.5))],
        "after-the-window": [(asked + 3.0 + NEAR_S, talks(1.0))],
    }


@pytest.fixture(scope="module")
def scored(chain, scene, plans, scores_of):
    """Scores by system and detector."""
    cards = {name: chain.plant(f"scene-{name}", scene, lambda _item, plan=plan: plan) for name, plan in plans.items()}
    return {
        (name, detector): scores_of(chain.measure(TRACK, scene, card, detector))
        for name, card in cards.items()
        for detector in ("vad", "gate")
    }


@pytest.fixture(scope="module")
def request_id(item):
    return windows(item)[0].window_id


@pytest.fixture(scope="module")
def yield_id(item):
    return windows(item)[2].window_id


@pytest.mark.parametrize("detector", ["vad", "gate"])
@pytest.mark.parametrize(
    ("system", "present", "fresh", "latency_s"),
    [
        ("prompt", 1.0, 1.0, 1.0),
        ("last-moment", 1.0, 1.0, 5.0 - NEAR_S),
        ("too-late", 0.0, 0.0, None),
        ("under-way", 1.0, 0.0, None),
        ("talks-on", 1.0, 1.0, 4.5),
        ("after-the-window", 0.0, 0.0, None),
    ],
)
def test_response_to_the_request(scored, request_id, detector, system, present, fresh, latency_s):
    found = scored[system, detector]
    assert found.value("response_presence", request_id) == present
    assert found.value("fresh_onset_response", request_id) == fresh
    measured = found.details("response_presence", request_id)["response_latency_s"]
    assert measured == (None if latency_s is None else pytest.approx(latency_s, abs=ONSET_TOLERANCE_S))


def test_an_onset_at_the_very_end_of_the_request_is_not_fresh(scored, request_id):
    """The gate opens at the onset or up to a window early, never late: the system is speaking at the end of T."""
    found = scored["at-the-end", "gate"]
    assert found.value("response_presence", request_id) == 1.0
    assert found.value("fresh_onset_response", request_id) == 0.0


def test_what_the_voice_detector_makes_of_that_onset_lies_within_its_bias(scored, request_id):
    found = scored["at-the-end", "vad"]
    assert found.value("response_presence", request_id) == 1.0
    latency = found.details("response_presence", request_id)["response_latency_s"]
    assert latency is None or latency <= ONSET_TOLERANCE_S


@pytest.mark.parametrize("detector", ["vad", "gate"])
def test_answers(scored, request_id, detector):
    assert scored["prompt", detector].value("answer_accuracy", request_id) == 1.0
    assert scored["last-moment", detector].value("answer_accuracy", request_id) == 1.0, "heard to its end"
    assert scored["at-the-end", detector].value("answer_accuracy", request_id) == 0.0
    assert scored["too-late", detector].value("answer_accuracy", request_id) is None
    assert scored["too-late", detector].reason("answer_accuracy", request_id) == "no response in the window"


def test_a_hum_is_no_voice_to_the_detector_and_an_untranscribed_response_to_the_gate(scored, item, request_id):
    silence_id = windows(item)[1][0].window_id
    voice, gate = scored["hum", "vad"], scored["hum", "gate"]
    assert voice.value("response_presence", request_id) == 0.0
    assert voice.value("silence_preservation", silence_id) == 1.0
    assert gate.value("response_presence", request_id) == 1.0
    assert gate.value("answer_accuracy", request_id) == 0.0
    assert gate.value("silence_preservation", silence_id) == 0.0
    assert gate.value("silence_untranscribed_passes", silence_id) == 1.0
    assert gate.value("silence_without_untranscribed", silence_id) is None


@pytest.mark.parametrize("detector", ["vad", "gate"])
def test_silence_windows(scored, item, detector):
    _, (intruded, acknowledged, *kept), _, after = windows(item)
    found = scored["prompt", detector]
    assert found.value("silence_preservation", intruded.window_id) == 0.0
    assert found.value("silence_preservation", acknowledged.window_id) == 1.0
    for window in [*kept, after]:
        assert found.value("silence_preservation", window.window_id) == 1.0
        assert found.value("silence_carry_over", window.window_id) == 0.0


@pytest.mark.parametrize("detector", ["vad", "gate"])
def test_an_answer_that_goes_on_is_carried_over(scored, item, detector):
    after = windows(item)[3].window_id
    found = scored["talks-on", detector]
    assert found.value("silence_preservation", after) == 0.0
    assert found.value("silence_carry_over", after) == 1.0
    assert found.value("silence_without_carry_over", after) is None
    assert "rest of an answer" in found.reason("silence_without_carry_over", after)


@pytest.mark.parametrize("detector", ["vad", "gate"])
@pytest.mark.parametrize(
    ("system", "outcome", "passed", "stop_s"),
    [
        ("prompt", "stopped", 1.0, 1.0),
        ("last-moment", "stopped", 1.0, 2.0 - 2 * NEAR_S),
        ("too-late", "speaking_through_deadline", 0.0, 2.0 + 2 * NEAR_S),
        ("at-the-end", "resumed", 0.0, 1.0),
        ("under-way", "not_eligible_active_at_question_end", None, None),
        ("talks-on", "not_eligible_active_at_question_end", None, None),
        ("hum", "not_eligible_silent_at_resolution", None, None),
        ("after-the-window", "not_eligible_no_onset_in_window", None, None),
    ],
)
def test_yielding(scored, yield_id, detector, system, outcome, passed, stop_s):
    found = scored[system, detector]
    details = found.details("answering_window_yield", yield_id)
    assert details["outcome"] == outcome
    assert found.value("answering_window_yield", yield_id) == passed
    if stop_s is None:
        assert found.value("stop_latency", yield_id) is None
        assert found.reason("stop_latency", yield_id).startswith("not eligible")
    else:
        assert found.value("stop_latency", yield_id) == pytest.approx(stop_s, abs=STOP_TOLERANCE_S)
        assert details["onset_latency_s"] == pytest.approx(1.0, abs=ONSET_TOLERANCE_S)


@pytest.mark.parametrize("name", ["never-speak", "always-speak"])
def test_reference_policies_come_out_exactly(chain, scenes, policies, scores_of, name):
    """Design 15.7, through items, rollouts, detectors, recogniser, judge, scores and statistics."""
    found = chain.measure(TRACK, scenes, policies[name])
    estimates, _ = summary.aggregate(chain.workspace, TRACK, {name: found}, None)
    rates = {
        metric: set(rows["estimate"])
        for (metric,), rows in estimates.frame.filter(pl.col("estimate").is_not_null()).group_by("metric")
    }
    spoke = float(name == "always-speak")
    assert rates["response_presence"] == {spoke}
    assert rates["fresh_onset_response"] == {0.0}
    assert rates["silence_preservation"] == {1.0 - spoke}
    assert rates["n4q_window_response"] == {spoke}
    assert "answering_window_yield" not in rates, "neither is ever eligible"
    assert rates.get("answer_accuracy") == ({0.0} if spoke else None)
