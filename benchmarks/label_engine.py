"""Label engine: 1,395 dense 12-minute sessions on one core, and against a plain loop.

`python -m benchmarks.label_engine`

The sessions are dense (some 450 stretches of speech a side). The loop applies the passes as the rules read, looking
through the whole session at each step; both must give the same labels, or the numbers mean nothing.
"""

import time

import numpy as np

from duplex_bench.conversation.label_passes import PAUSES, Channel, Ending, Role, channel_of, look_ahead
from duplex_bench.conversation.label_passes import mark_backchannels as quick_backchannels
from duplex_bench.conversation.labels import LabelRules, SpeakerTrack, Word, label_conversation
from duplex_bench.storage.digests import generator_from

N_SESSIONS = 1395
MEASURED = 40
MINUTES = 12
CEILING_S = 60.0


def dense_track(rng: np.random.Generator) -> SpeakerTrack:
    """Speech of 0.1 s and more with gaps of 0.05 s and more for twelve minutes, three words a second."""
    position, speech, words = 0.0, [], []
    while position < MINUTES * 60:
        start = position + 0.05 + rng.exponential(0.8)
        position = start + 0.1 + rng.exponential(0.6)
        speech.append((start, position))
        count = max(1, int((position - start) * 3))
        step = (position - start) / count
        words += [Word("word", start + k * step, start + (k + 1) * step) for k in range(count)]
    return SpeakerTrack(speech, words)


def loop_backchannels(left: Channel, right: Channel, rules: LabelRules) -> None:
    """Pass (ii) by looking through all segments for each one."""
    sides = (left, right)
    look = round(rules.look_ahead_s * 1e9)

    def large(channel: Channel, i: int) -> bool:
        length = channel.end[i] - channel.start[i]
        return length > round(rules.backchannel_max_s * 1e9) or channel.words[i] > rules.backchannel_max_words

    order = sorted((sides[s].start[i], s, i) for s in (0, 1) for i in range(len(sides[s])))
    for t, s, i in order:
        own, their = sides[s], sides[1 - s]
        if large(own, i):
            continue
        before = [j for j in range(len(their)) if their.start[j] < t and their.role[j] is Role.TURN]
        mine = [j for j in range(len(own)) if own.start[j] < t and own.role[j] is Role.TURN]
        speaking = any(their.end[j] > t for j in before)
        speaking = speaking or any(their.start[j] == t and large(their, j) for j in range(len(their)))
        pausing = False
        if before and not speaking and not (mine and own.end[mine[-1]] >= their.end[before[-1]]):
            later = [their.start[j] for j in range(len(their)) if their.start[j] > t]
            next_theirs = [their.start[j] for j in range(len(their)) if their.start[j] > t and large(their, j)]
            next_own = [own.start[j] for j in range(len(own)) if own.start[j] > t and large(own, j)]
            pausing = (
                bool(later)
                and later[0] - their.end[before[-1]] <= look
                and bool(next_theirs)
                and (not next_own or next_theirs[0] < next_own[0])
            )
        if speaking or pausing:
            own.role[i] = Role.BACKCHANNEL
            own.held_by_speech[i] = speaking


def loop_look_ahead(left: Channel, right: Channel, rules: LabelRules) -> None:
    """Pass (iii) by looking through all segments at each offset."""
    sides = (left, right)
    look = round(rules.look_ahead_s * 1e9)

    def floor(channel: Channel) -> list[int]:
        return [i for i in range(len(channel)) if channel.role[i] is not Role.BACKCHANNEL]

    offsets = sorted((sides[s].end[i], s, i) for s in (0, 1) for i in floor(sides[s]))
    for t, s, i in offsets:
        own, their = sides[s], sides[1 - s]
        if own.role[i] is not Role.TURN:
            continue
        if any(their.start[j] < t < their.end[j] for j in floor(their)):
            own.ending[i] = Ending.OTHER_TALKING
            continue
        again = next((j for j in floor(own) if own.start[j] > t and own.start[j] - t <= look), None)
        takes = [j for j in floor(their) if their.start[j] >= t and their.start[j] - t <= look]
        if again is not None and (not takes or own.start[again] <= their.start[takes[0]]):
            own.ending[i], own.following[i] = Ending.RESUMES, again
        elif not takes:
            own.ending[i] = Ending.NOBODY
        else:
            own.ending[i] = Ending.OTHER_STARTS
            if again is not None:
                inside = [j for j in takes if their.start[j] < own.start[again]]
                stop = their.end[inside[-1]]
                if stop - t <= look and (stop <= own.start[again] or stop < own.end[again]):
                    own.ending[i], own.following[i] = Ending.OTHER_YIELDS, again
                    for j in inside:
                        their.role[j] = Role.FAILED_TAKE


def decisions(left: Channel, right: Channel) -> list[object]:
    """What the passes decided, to compare: roles, and at each turn segment its ending and where a pause leads."""
    return [
        (
            channel.role,
            [
                (channel.ending[i], channel.following[i] if channel.ending[i] in PAUSES else None)
                for i, role in enumerate(channel.role)
                if role is Role.TURN
            ],
        )
        for channel in (left, right)
    ]


def measure() -> dict[str, float]:
    """``seconds_for_all`` (from 40 of the 1,395, which are alike) must stay below ``ceiling``."""
    rules = LabelRules()
    tracks = [
        (dense_track(generator_from("bench", "left", i)), dense_track(generator_from("bench", "right", i)))
        for i in range(MEASURED)
    ]
    started = time.perf_counter()
    for left, right in tracks:
        label_conversation(SpeakerTrack(left.speech, left.words), SpeakerTrack(right.speech, right.words), rules)
    quick_s = time.perf_counter() - started

    pairs = [[(channel_of(left, rules), channel_of(right, rules)) for left, right in tracks[:5]] for _ in range(2)]
    started = time.perf_counter()
    for left, right in pairs[0]:
        quick_backchannels(left, right, rules)
        look_ahead(left, right, rules)
    passes_s = time.perf_counter() - started
    started = time.perf_counter()
    for left, right in pairs[1]:
        loop_backchannels(left, right, rules)
        loop_look_ahead(left, right, rules)
    loop_s = time.perf_counter() - started
    if any(decisions(*one) != decisions(*two) for one, two in zip(*pairs, strict=True)):
        raise RuntimeError("the engine and the plain loop disagree: the benchmark means nothing")
    return {
        "seconds_for_all": quick_s / MEASURED * N_SESSIONS,
        "ceiling": CEILING_S,
        "ms_a_session": quick_s / MEASURED * 1000,
        "times_loop": loop_s / passes_s,
    }


def main() -> int:
    """Print the numbers; 1 if the ceiling is passed."""
    result = measure()
    print(
        f"label engine: {N_SESSIONS:,} sessions of {MINUTES} minutes in {result['seconds_for_all']:.1f} s "
        f"(ceiling {CEILING_S:.0f} s), {result['ms_a_session']:.1f} ms a session, "
        f"its passes {result['times_loop']:.0f}x a plain loop"
    )
    return int(result["seconds_for_all"] > CEILING_S)


if __name__ == "__main__":
    raise SystemExit(main())
