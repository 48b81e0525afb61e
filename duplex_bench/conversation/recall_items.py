"""A recall question after a history as an item (P2 3.3, 3.4; design 6 and 8)."""

from collections.abc import Mapping, Sequence

from duplex_bench.audio.time import to_samples, to_seconds
from duplex_bench.conversation.candidates import WordIndex
from duplex_bench.conversation.label_types import SPEAKERS, Label, Speaker, Word, other
from duplex_bench.conversation.recall import RecallQuestion
from duplex_bench.conversation.sessions import Session
from duplex_bench.conversation.stimuli import SessionAudio, StimulusSettings, history_turns, history_words
from duplex_bench.records.audio import AudioSlice
from duplex_bench.records.items import Item, Reference, Stimulus, Window
from duplex_bench.storage.digests import digest_value


def recall_item(
    question: RecallQuestion,
    target_s: float,
    cut_s: float,
    spoken: AudioSlice,
    session: Session,
    labels: Sequence[Label],
    words: Mapping[Speaker, Sequence[Word]],
    audio: SessionAudio,
    settings: StimulusSettings,
) -> Item:
    """The item of one question at one history length: the history up to ``cut_s``, then the question, live.

    Args:
        question: who asks what.
        target_s: the history length it stands for.
        cut_s: where the history ends: at a completed turn.
        spoken: the question as audio at the rate of ``settings``.
        session: the conversation.
        labels: its labels.
        words: its words.
        audio: its recording.
        settings: what every system is given; ``identity_prompt`` is that of the side which is asked.
    """
    rate = settings.sample_rate_hz
    stop = min(to_samples(cut_s, rate), len(audio.samples))
    start = max(0, stop - to_samples(settings.history_s, rate))
    user, assistant = question.asker, other(question.asker)
    index = {speaker: WordIndex(words[speaker]) for speaker in SPEAKERS}
    live_s = spoken.n_samples / spoken.sample_rate_hz
    return Item(
        item_id=digest_value("recall item/1", question.question_id, round(target_s * 1000))[:16],
        track="conversation",
        cluster=session.session_id,
        condition=question.kind,
        stimulus=Stimulus(
            protocol="recall",
            live=spoken,
            identity_prompt=settings.identity_prompt,
            history=history_turns(user, labels, index, start, stop, rate),
            history_user=audio.part(user, start, stop),
            history_assistant=audio.part(assistant, start, stop),
            history_words=history_words(index[assistant], start, stop, rate),
        ),
        reference=Reference(
            windows=(Window("recall", "recall", live_s, live_s, labels={"speaker": user, "kind": question.kind}),),
            gold_answer=question.answer,
            attributes={
                "question": question.question,
                "question_id": question.question_id,
                "history_target_s": target_s,
                "history_s": to_seconds(stop - start, rate),
                "asker": user,
                "source": question.source,
            },
        ),
        licence=session.licence,
        language=session.language,
    )
