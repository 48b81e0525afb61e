"""What a server does wrong, on request: every fault that an adapter and a batch of runs must survive."""

from dataclasses import dataclass
from typing import Literal

Moment = Literal["", "created", "committed", "audio"]


@dataclass(frozen=True, slots=True)
class Faults:
    """Nothing is wrong by default.

    Attributes:
        refuse_status: HTTP status at the upgrade instead of a connection; 0 for none.
        refuse_body: Its body.
        retry_after: Its retry-after header.
        start_delay_s: Before the first event: a slow start.
        close_at: Moment at which the server closes: after its greeting, after a commit, in the middle of audio.
        close_code: Code of that close; 0 drops the connection without one.
        close_reason: Its reason.
        stall_at: Moment from which nothing more is sent, the connection staying open.
        garbage_at: Moment at which something that is no JSON is sent.
        odd_lengths: Audio deltas are cut at odd byte positions.
        no_audio: A transcript without any audio.
        empty_response: A response without output.
        two_items: A response of two items.
        never_created: ``response.done`` comes without ``response.created``.
        fail_code: A response that fails with this error code.
        error_code: An error event with this code is sent after the first commit.
        repeat_events: Every audio delta is sent twice, under one event id.
        duplicate_ids: Every response has the id of the first.
        unknown_event: An event of unknown type is sent with every response.
        ignore_detection: Settings of turn detection are echoed as the vendor's default.
        keep_detection: Detection stays on although it was switched off, and says otherwise.
        wrong_rate: Audio is declared with another rate than was asked for.
        echo_key: Error texts repeat the key that the client sent, as some proxies do.
        max_session_s: After so much time the session expires.
        flood_at: Moment at which thousands of messages come at once (servers of full-duplex models).
        slow_share: Share of frames that a server slower than real time does not get to (frame by frame).
        busy: All places are taken (servers of full-duplex models).
        truncate: What a truncation is answered with, in the xAI skin.
        refuse_history: Text turns before the stream close the connection (Gemini).
        no_usage: What a turn used is not told (Gemini).
        interrupted_late: ``interrupted`` comes behind the end of the turn that it is about (Gemini).
        no_transcription: Recognition of what the user said fails, for who asked for it.
        loose_speech: The start of speech is told twice, the second time without its offset (xAI skin).
    """

    refuse_status: int = 0
    refuse_body: str = ""
    retry_after: str = ""
    start_delay_s: float = 0.0
    close_at: Moment = ""
    close_code: int = 1011
    close_reason: str = ""
    stall_at: Moment = ""
    garbage_at: Moment = ""
    odd_lengths: bool = False
    no_audio: bool = False
    empty_response: bool = False
    two_items: bool = False
    never_created: bool = False
    fail_code: str = ""
    error_code: str = ""
    repeat_events: bool = False
    duplicate_ids: bool = False
    unknown_event: bool = False
    ignore_detection: bool = False
    keep_detection: bool = False
    wrong_rate: bool = False
    echo_key: bool = False
    max_session_s: float = 3600.0
    flood_at: Moment = ""
    slow_share: float = 0.0
    busy: bool = False
    truncate: Literal["ok", "error", "silence"] = "ok"
    refuse_history: bool = False
    no_usage: bool = False
    interrupted_late: bool = False
    no_transcription: bool = False
    loose_speech: bool = False


NONE = Faults()
