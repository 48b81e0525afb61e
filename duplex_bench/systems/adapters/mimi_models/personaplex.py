"""PersonaPlex, stepped frame by frame on the classes of the ``moshi`` package (docs/systems/personaplex.md).

It is Moshi's model with a preamble: while the user's side holds a constant tone, its own side is shown a voice, then
silence, then the persona as one text token a frame, then silence. After that it converses on the grid that Moshi has.
The vendor's generator gives each frame one call later; in model time both return the same frames.
"""

from __future__ import annotations

import os
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

from duplex_bench.contract.card_settings import settings_from
from duplex_bench.contract.types import OpenRequest, Spec, UnsupportedError
from duplex_bench.systems.adapters.mimi_models import grid, tiny
from duplex_bench.systems.adapters.mimi_models.personaplex_checkpoint import load_personaplex
from duplex_bench.systems.adapters.mimi_models.session import Begun, FrameSession, HeldTalk, held, sampling_of
from duplex_bench.systems.adapters.mimi_models.stepper import ForcedFrames, Stepper, quiet_compiler
from duplex_bench.systems.adapters.mimi_models.voice_prompt import Recording, load_voice, shown_frames

if TYPE_CHECKING:
    from collections.abc import Mapping

VOICES_ENV = "DUPLEX_BENCH_PERSONAPLEX_VOICES"
# Codes of a frame of silence and of the tone that stands for a user who is not there yet, as the vendor gives them.
SILENCE = (948, 243, 1178, 546, 1736, 1030, 1978, 2008)
TONE = (430, 1268, 381, 1611, 1095, 1495, 56, 472)
# Half a second at 12.5 frames a second, rounded down: behind the voice and behind the persona.
SPACER_FRAMES = 6
TAG = "<system>"
# Ours, as at its server: says nothing of a persona.
NEUTRAL_PROMPT = "You are taking part in a conversation."


@dataclass(frozen=True)
class PersonaPlexSettings:
    """What a card may set; sampling as the vendor's own defaults.

    Attributes:
        model: Folder of the files, name of a hub repository in the local cache, or ``tiny`` for random weights.
        device, dtype: As torch names them; dtype is the language model's.
        voices: Folder of the voice files; the variable ``DUPLEX_BENCH_PERSONAPLEX_VOICES`` by default.
        voice: A file of that folder, where a session names none; empty for no voice at all.
        text_prompt: Where a session has none.
        history_limit_s: Longest history that is taken (P2: 164).
        use_sampling: False for the likeliest token each time.
        temp, top_k: Of audio codes.
        temp_text, top_k_text: Of text tokens.
        threads: Of torch on the CPU.
    """

    model: str
    device: str = "cuda"
    dtype: str = "bfloat16"
    voices: str = ""
    voice: str = "NATM1.pt"
    text_prompt: str = NEUTRAL_PROMPT
    history_limit_s: float = 164.0
    use_sampling: bool = True
    temp: float = 0.8
    temp_text: float = 0.7
    top_k: int = 250
    top_k_text: int = 25
    threads: int = 1

    def __post_init__(self) -> None:
        if min(self.temp, self.temp_text) < 0 or min(self.top_k, self.top_k_text, self.threads) < 1:
            raise ValueError("personaplex: temperatures cannot be negative, top_k, top_k_text and threads at least 1")
        if not self.text_prompt.strip() or self.history_limit_s < 0:
            raise ValueError("personaplex: text_prompt cannot be empty, nor history_limit_s negative")


class PersonaPlex:
    """A ``System``. One state on the device: a session's ``open`` takes it over from the one before.

    Raises:
        ValueError: A voice is set and there is no folder of voices.
        UnsupportedError: The card's voice is not in it.
    """

    def __init__(self, settings: PersonaPlexSettings) -> None:
        quiet_compiler()
        folder = settings.voices or os.environ.get(VOICES_ENV, "")
        if settings.voice and not Path(folder or "-").is_dir():
            raise ValueError(
                f"personaplex: no folder of voices {folder!r}: unpack the vendor's voices.tgz, set {VOICES_ENV} to it"
            )
        self.settings = settings
        self.voices = Path(folder) if folder else None
        self.stepper = Stepper(_loaded(settings), settings.device, sampling_of(settings), settings.threads)
        if settings.voice and self.voices is not None:
            load_voice(self.voices, settings.voice, self.stepper)
        voiced = {"voice_prompt"} if self.voices is not None else set()
        self.spec = Spec(
            in_rate_hz=grid.RATE_HZ,
            out_rate_hz=grid.RATE_HZ,
            unit_in_samples=grid.FRAME_SAMPLES,
            unit_out_samples=grid.FRAME_SAMPLES,
            lockstep=True,
            context_s=self.stepper.loaded.context_frames * grid.FRAME_S,
            capabilities=frozenset({"text_prompt", "force_history", "word_times", "sampling", "seedable", *voiced}),
        )
        self.owner: FrameSession | None = None

    def new_session(self) -> FrameSession:
        """A session; the one before it must not be stepped any more once this one is open."""
        return FrameSession(self)

    def begin(self, request: OpenRequest) -> Begun:
        """Show voice and persona, then force the history: the stream goes on from its last frame.

        Raises:
            UnsupportedError: An empty persona, an unknown voice, a history that is too long.
        """
        stepper = self.stepper
        persona = self.settings.text_prompt if request.prompt.text is None else request.prompt.text
        if not persona.strip():
            raise UnsupportedError("personaplex cannot take an empty text prompt: leave it out")
        voice = self.settings.voice if request.prompt.voice is None else request.prompt.voice
        shown = load_voice(self.voices, voice, stepper) if voice and self.voices is not None else None
        text = [grid.PAD] * SPACER_FRAMES + stepper.encode(wrapped(persona)) + [grid.PAD] * SPACER_FRAMES
        # A vendor's voice ends with a frame that is not among those that are read again.
        n_shown = 0 if shown is None else len(shown) + (not isinstance(shown, Recording))
        n_before = len(text) + n_shown
        if n_before >= stepper.loaded.context_frames:
            raise UnsupportedError(
                f"a preamble of {n_before} frames does not fit the context: shorten persona or voice"
            )
        talk = self._talk(request, n_before)
        tone = stepper.torch.tensor(TONE, device=stepper.device)[:, None]
        first = None if shown is None else shown_frames(shown, tone, stepper)
        n_first = 0 if first is None else len(first)
        stepper.force(self._frames(first, text, talk), spoken_from=n_first + len(text) - 1)
        n_talk = 0 if talk is None else len(talk.text)
        return Begun(n_before + n_talk, True, () if talk is None else talk.warnings)

    def _talk(self, request: OpenRequest, n_before: int) -> HeldTalk | None:
        if not request.history:
            return None
        (part,) = request.history
        limit_s = self.settings.history_limit_s
        n_samples = 0 if part.user_pcm is None else len(part.user_pcm)
        if n_samples > limit_s * grid.RATE_HZ:
            raise UnsupportedError(
                f"a history of {n_samples / grid.RATE_HZ:.1f} s is longer than the {limit_s:.0f} s that are taken "
                "(history_limit_s)"
            )
        return held(part, self.stepper, n_before)

    def _frames(self, first: ForcedFrames | None, text: list[int], talk: HeldTalk | None) -> ForcedFrames:
        """The frames of a voice that are still to be shown, the preamble, the history."""
        torch, device = self.stepper.torch, self.stepper.device
        silence, tone = (torch.tensor(codes, device=device)[:, None] for codes in (SILENCE, TONE))
        own, heard = [silence.expand(-1, len(text))], [tone.expand(-1, len(text))]
        tokens = list(text)
        if first is not None:
            tokens, own, heard = [*first.text, *tokens], [first.own, *own], [first.heard, *heard]
        if talk is not None:
            tokens += talk.text.tolist()
            # The codec's state is cleared here; what the user is heard to say in the history, it goes on from.
            own.append(self.stepper.codes_of(talk.own))
            heard.append(self.stepper.heard(talk.user))
        return ForcedFrames(tokens, torch.cat(own, dim=1), torch.cat(heard, dim=1))


def wrapped(persona: str) -> str:
    """A persona between the model's tags, as it was trained on; one that has them stays."""
    told = persona.strip()
    return told if told.startswith(TAG) and told.endswith(TAG) else f"{TAG} {told} {TAG}"


def _loaded(settings: PersonaPlexSettings) -> Any:
    return tiny.loaded(
        settings.model,
        tiny.write_personaplex,
        lambda model: load_personaplex(model, settings.device, settings.dtype),
    )


def create(settings: Mapping[str, Any]) -> PersonaPlex:
    """PersonaPlex; raises ValueError for settings that make no sense, CheckpointError where its files are missing."""
    return PersonaPlex(settings_from(PersonaPlexSettings, settings, "personaplex"))
