from dataclasses import replace

import numpy as np
import pytest

from duplex_bench.conversation.curation import curate
from duplex_bench.conversation.label_types import Word, other
from duplex_bench.conversation.sessions import Session, Side
from duplex_bench.conversation.stimuli import SessionAudio, StimulusError, StimulusSettings, item_of
from duplex_bench.records.items import HistoryTurn
from duplex_bench.storage.blobs import BlobStore
from duplex_bench.storage.digests import digest_pcm16, digest_value, stimulus_digest
from duplex_bench.storage.object_store import FolderStore
from duplex_bench.storage.serial import from_json, to_json

pytestmark = pytest.mark.unit

RATE_HZ = 24_000
TURNS = (
    ("right", [(0.5, 2.5, "what did you do last weekend")]),
    ("left", [(3.0, 5.0, "so we went to the lake"), (6.0, 7.25, "and swam all day")]),
    ("right", [(7.75, 9.75, "that sounds really lovely to me"), (10.5, 11.0, "truly")]),
    ("left", [(11.5, 12.0, "it was")]),
)


@pytest.fixture
def labelled(conversation):
    return conversation(TURNS)


@pytest.fixture
def session():
    sides = [Side("a.wav", channel, (), (), f"person-{channel}") for channel in (0, 1)]
    return Session("session-1", *sides, RATE_HZ, 13.0, "CC-BY-NC-4.0")


@pytest.fixture
def audio(tmp_path, labelled):
    """Channels that differ everywhere: noise of a level of its own, loud where the gate says so."""
    rng = np.random.default_rng(0)
    samples = np.zeros((13 * RATE_HZ, 2), dtype=np.int16)
    for channel, side in enumerate(("left", "right")):
        samples[:, channel] = rng.integers(-3 - channel, 4 + channel, len(samples))
        for start, end in labelled.gate_s[side]:
            part = slice(round(start * RATE_HZ), round(end * RATE_HZ))
            samples[part, channel] = rng.integers(-6000, 6000, part.stop - part.start)
    blobs = BlobStore(FolderStore(tmp_path))
    return SessionAudio(blobs.put_audio(samples, RATE_HZ), samples, RATE_HZ, blobs)


@pytest.fixture
def points(labelled):
    return {point.kind: point for point in curate([labelled]).points if point.speaker == "left"}


def build(point, labelled, session, audio, **settings):
    return item_of(point, session, labelled.labels, labelled.words, audio, StimulusSettings(**settings))


def test_a_pause_item(points, labelled, session, audio):
    item = build(points["pause"], labelled, session, audio)
    assert (item.item_id, item.cluster, item.condition) == (points["pause"].point_id, "session-1", "pause")
    assert (item.licence, item.language, item.track) == ("CC-BY-NC-4.0", "en", "conversation")
    live = item.stimulus.live
    # The turn start to the end of the stretch in which the speaker resumes, on the speaker's channel.
    assert (live.start_sample, live.stop_sample, live.channel) == (3 * RATE_HZ, round(7.25 * RATE_HZ), 0)
    assert np.array_equal(audio.blobs.read_slice(live), audio.samples[live.start_sample : live.stop_sample, 0])
    (window,) = item.reference.windows
    assert (window.kind, window.start_s, window.end_s, window.marks) == ("pause", 2.0, 3.0, {"resume_end_s": 4.25})
    assert item.reference.human_reply is None
    assert item.reference.attributes["pause_s"] == pytest.approx(1.0)
    assert [turn.text for turn in item.reference.transcript] == ["so we went to the lake", "and swam all day"]


def test_history_is_two_channels_and_completed_turns(points, labelled, session, audio):
    stimulus = build(points["pause"], labelled, session, audio).stimulus
    assert stimulus.history == (HistoryTurn("assistant", "what did you do last weekend", 0.5, 2.5),)
    for part, channel in ((stimulus.history_user, 0), (stimulus.history_assistant, 1)):
        assert (part.start_sample, part.stop_sample, part.channel) == (0, 3 * RATE_HZ, channel)
        assert part.content == digest_pcm16(audio.samples[: 3 * RATE_HZ, channel], RATE_HZ)
    assert stimulus.identity_prompt is None


def test_the_assistants_words_stand_beside_the_history_with_their_times(points, labelled, session, audio):
    words = build(points["pause"], labelled, session, audio).stimulus.history_words
    assert [word.text for word in words] == ["what", "did", "you", "do", "last", "weekend"]
    assert words[0].start_s == pytest.approx(0.5)
    assert all(word.start_s < word.end_s <= 3.0 for word in words)
    # Cut in its middle, a history holds the words that lie wholly in it, on its own clock.
    capped = build(points["pause"], labelled, session, audio, history_s=1.4).stimulus.history_words
    assert [word.text for word in capped] == ["last", "weekend"]
    assert capped[0].start_s == pytest.approx(words[4].start_s - 1.6)
    assert build(points["pause"], labelled, session, audio, history_s=0.0).stimulus.history_words == ()


def test_words_of_an_aside_or_an_unfinished_turn_are_told_as_far_as_they_are_heard(conversation, session, audio):
    overlapping = (("right", [(0.5, 3.4, "what did you do last weekend")]), *TURNS[1:])
    labelled = conversation(overlapping)
    point = next(p for p in curate([labelled]).points if (p.kind, p.speaker) == ("pause", "left"))
    stimulus = build(point, labelled, session, audio).stimulus
    assert stimulus.history == ()
    # The turn goes on to 3.4 s, the history ends at 3 s: what is said behind its end is not told.
    assert [word.text for word in stimulus.history_words] == ["what", "did", "you", "do", "last"]
    assert max(word.end_s for word in stimulus.history_words) <= 3.0


def test_a_turn_end_item(points, labelled, session, audio):
    item = build(points["turn_end"], labelled, session, audio)
    assert item.stimulus.live.stop_sample == round(7.25 * RATE_HZ)
    (window,) = item.reference.windows
    assert (window.kind, window.start_s, window.end_s) == ("turn_end", 4.25, 4.25)
    reply = item.reference.human_reply
    assert (reply.text, reply.n_words) == ("that sounds really lovely to me truly", 7)
    # First to last gate interval of the reply's turn, its own pause included.
    assert reply.duration_s == pytest.approx(3.25, abs=0.02)
    assert (reply.audio.channel, reply.audio.start_sample) == (1, round(7.75 * RATE_HZ))
    assert item.reference.attributes["reply_delay_s"] == pytest.approx(0.5)


def test_what_is_heard_holds_nothing_of_the_reference(points, labelled, session, audio):
    for point in points.values():
        item = build(point, labelled, session, audio)
        seen = to_json(item.stimulus)
        reply = item.reference.human_reply
        assert point.context_text not in seen
        assert item.item_id not in seen
        assert session.session_id not in seen
        assert reply is None or reply.text not in seen


def test_history_is_capped_and_keeps_the_words_inside(points, labelled, session, audio):
    stimulus = build(points["pause"], labelled, session, audio, history_s=1.5).stimulus
    assert stimulus.history_user.start_sample == round(1.5 * RATE_HZ)
    # Six words over two seconds, the history begins in their middle: the last three are inside.
    assert stimulus.history == (HistoryTurn("assistant", "do last weekend", 0.0, 1.0),)
    none = build(points["pause"], labelled, session, audio, history_s=0.0).stimulus
    assert (none.history, none.history_user, none.history_assistant) == ((), None, None)


def test_a_turn_still_going_is_heard_but_not_read(conversation, session, audio):
    overlapping = (("right", [(0.5, 3.4, "what did you do last weekend")]), *TURNS[1:])
    labelled = conversation(overlapping)
    point = next(p for p in curate([labelled]).points if (p.kind, p.speaker) == ("pause", "left"))
    stimulus = build(point, labelled, session, audio).stimulus
    assert stimulus.history == ()
    assert stimulus.history_assistant.stop_sample == 3 * RATE_HZ


def test_digest_follows_what_is_heard_and_read_alone(points, labelled, session, audio):
    point = points["pause"]
    before = build(point, labelled, session, audio)
    same = build(replace(point, pause_end_s=5.9, ranking=0.1), labelled, session, audio)
    assert stimulus_digest(same.stimulus) == stimulus_digest(before.stimulus)
    assert same.reference != before.reference

    later = replace(labelled, words={**labelled.words, "right": [*labelled.words["right"], Word("oh", 12.5, 12.7)]})
    assert stimulus_digest(build(point, later, session, audio).stimulus) == stimulus_digest(before.stimulus)

    words = [replace(word, text="when") if word.text == "what" else word for word in labelled.words["right"]]
    edited = replace(labelled, words={**labelled.words, "right": words})
    assert stimulus_digest(build(point, edited, session, audio).stimulus) != stimulus_digest(before.stimulus)

    prompted = build(point, labelled, session, audio, identity_prompt="You are Ana.")
    assert stimulus_digest(prompted.stimulus) != stimulus_digest(before.stimulus)

    # An edit of the recording after the region changes nothing, one inside it does.
    for sample, changes in ((12 * RATE_HZ, False), (4 * RATE_HZ, True)):
        samples = audio.samples.copy()
        samples[sample, 0] += 1
        item = build(point, labelled, session, replace(audio, samples=samples))
        assert (stimulus_digest(item.stimulus) != stimulus_digest(before.stimulus)) is changes


def test_items_survive_storage(points, labelled, session, audio):
    for point in points.values():
        item = build(point, labelled, session, audio)
        again = from_json(type(item), to_json(item))
        assert digest_value(again) == digest_value(item)


def test_the_system_plays_the_other_side(points, labelled, mirrored, session, audio):
    swapped = mirrored(labelled)
    point = replace(points["turn_end"], speaker=other(points["turn_end"].speaker))
    flipped = replace(audio, samples=np.ascontiguousarray(audio.samples[:, ::-1]))
    mirror = build(point, swapped, session, flipped)
    plain = build(points["turn_end"], labelled, session, audio)
    assert stimulus_digest(mirror.stimulus) == stimulus_digest(plain.stimulus)


def test_a_point_outside_its_recording_is_named(points, labelled, session, audio):
    short = replace(audio, samples=audio.samples[: 5 * RATE_HZ])
    with pytest.raises(StimulusError, match=r"session session-1, pause at 5\.000 s"):
        build(points["pause"], labelled, session, short)
    with pytest.raises(StimulusError, match="resample"):
        build(points["pause"], labelled, session, replace(audio, sample_rate_hz=48_000))
    with pytest.raises(StimulusError, match="int16"):
        build(points["pause"], labelled, session, replace(audio, samples=audio.samples[:, :1]))
    with pytest.raises(StimulusError, match="belongs to session other"):
        build(replace(points["pause"], session_id="other"), labelled, session, audio)


def test_the_reply_is_heard_behind_a_turn_end_where_a_profile_asks_for_it(points, labelled, session, audio):
    turn_end = points["turn_end"]
    plain = build(turn_end, labelled, session, audio)
    with_reply = build(turn_end, labelled, session, audio, reply_playback=True)
    assert plain.stimulus.after is None
    live, heard = with_reply.stimulus.live, with_reply.stimulus.after
    assert heard.channel != live.channel
    assert (heard.start_sample, heard.stop_sample) == (live.stop_sample, round(turn_end.reply.end_s * RATE_HZ))
    assert with_reply.reference.windows == plain.reference.windows
    assert turn_end.reply.text not in to_json(with_reply.stimulus)
    assert build(points["pause"], labelled, session, audio, reply_playback=True).stimulus.after is None
