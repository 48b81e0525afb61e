"""A text model that reads around each point, rejects what cannot be scored and ranks the rest (P2 3.3, App. A)."""

from typing import Final, Literal

from pydantic import Field

from duplex_bench.conversation.candidates import LabelledSession, WordIndex
from duplex_bench.conversation.curation import PointVerdict
from duplex_bench.conversation.label_types import SPEAKERS
from duplex_bench.conversation.points import Point
from duplex_bench.textmodels.model import TextModel
from duplex_bench.textmodels.prompt_files import PromptFile, prompt_file
from duplex_bench.textmodels.schema import Reply
from duplex_bench.textmodels.wire import TextRequest, Turn

# Seconds before and after the boundary that are read (ours).
_BEFORE_S: Final = 30.0
_AFTER_S: Final = 15.0
_MOST: Final = 10
_TOLD: Final = {
    "pause": ("a pause of {length:.1f} s, after which the user goes on", "it should stay silent there"),
    "turn_end": ("the end of the user's turn, after which the listener replies", "it should reply there"),
}


class Selection(Reply):
    """What the judge says of one point."""

    reason: Literal["none", "incoherent", "hands_over", "interrupted_fragment", "unresponsive_reply"]
    temptation: int = Field(ge=0, le=_MOST)


def selection_prompt() -> PromptFile:
    """The reviewed prompt."""
    return prompt_file("duplex_bench.conversation.prompts", "point_selection")


def transcript_around(point: Point, session: LabelledSession) -> str:
    """Turns near the point, one a line, with [HERE] at the boundary."""
    names = {speaker: "user" if speaker == point.speaker else "listener" for speaker in SPEAKERS}
    words = {speaker: WordIndex(session.words[speaker]) for speaker in SPEAKERS}
    first, last, at_s = point.boundary_s - _BEFORE_S, point.boundary_s + _AFTER_S, point.boundary_s
    lines: list[tuple[float, str]] = []
    for label in session.labels:
        if label.kind not in {"turn", "failed_take", "backchannel"} or label.end_s <= first or label.start_s >= last:
            continue
        begin_s, end_s = max(label.start_s, first), min(label.end_s, last)
        said = " ".join(words[label.speaker].inside(begin_s, end_s))
        if label.speaker == point.speaker and label.kind == "turn" and label.start_s < at_s <= label.end_s:
            before = " ".join(words[label.speaker].inside(begin_s, at_s))
            said = f"{before} [HERE] {' '.join(words[label.speaker].inside(at_s, end_s))}".strip()
        if said:
            lines.append((label.start_s, f"{names[label.speaker]}: {said}"))
    return "\n".join(line for _, line in sorted(lines))


def typical_request(words_per_s: float) -> TextRequest:
    """A request about a point in talk of that density, with filler for words, for plans."""
    what, test = _TOLD["turn_end"]
    filler = " ".join(["word"] * round(words_per_s * (_BEFORE_S + _AFTER_S)))
    values = {"what": what, "test": test, "transcript": filler}
    return TextRequest((Turn("user", selection_prompt().render(values)),), name="point_selection")


class ModelPointJudge:
    """Implements ``curation.PointJudge``; an answer that cannot be read is no verdict, which keeps the point."""

    def __init__(self, model: TextModel) -> None:
        self._model = model

    @property
    def judge_id(self) -> str:
        """Model and prompt version."""
        return judge_id(self._model.settings.name)

    def verdict(self, point: Point, session: LabelledSession) -> PointVerdict:
        """The verdict on one point; raises as ``TextModel.ask``."""
        what, test = _TOLD[point.kind]
        length_s = 0.0 if point.pause_end_s is None else point.pause_end_s - point.boundary_s
        values = {
            "what": what.format(length=length_s), "test": test, "transcript": transcript_around(point, session),
        }  # fmt: skip
        request = TextRequest((Turn("user", selection_prompt().render(values)),), name="point_selection")
        answer = self._model.ask(request, Selection, point.session_id)
        if answer.value is None:
            return PointVerdict(None, f"no verdict: {answer.reason}")
        if answer.value.reason != "none":
            return PointVerdict(0.0, answer.value.reason)
        return PointVerdict(answer.value.temptation / _MOST, f"temptation {answer.value.temptation} of {_MOST}")


def judge_id(model_name: str) -> str:
    """How verdicts of a model are named: with the prompt's version."""
    return f"{model_name} point_selection/{selection_prompt().version}"
