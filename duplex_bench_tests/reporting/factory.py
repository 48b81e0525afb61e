"""Consistent small tables of both tracks, with synthetic tones as audio: what a real run leaves behind."""

import gzip
import json
from pathlib import Path

import numpy as np
import polars as pl

from duplex_bench.records.items import HistoryTurn, HumanReply, Item, Reference, Stimulus, Window
from duplex_bench.records.metric_card import MetricCard
from duplex_bench.records.outcome import Outcome
from duplex_bench.records.tables import ACTIVITY, ITEMS, JUDGEMENTS, MEASUREMENTS, ROLLOUTS, WORDS
from duplex_bench.reporting.aggregate import AggregateSettings, expected_windows, statistics_table
from duplex_bench.reporting.inputs import ReportInputs, SiteSettings, StandIn, SystemInfo, Table, TrackTables
from duplex_bench.storage.blobs import BlobStore, to_pcm16
from duplex_bench.storage.digests import digest_value, generator_from, stimulus_digest
from duplex_bench.storage.object_store import FolderStore
from duplex_bench.storage.serial import to_json

RATE_HZ = 8000
NASTY = '</script><script>window.broken = 1</script> "it\'s" & <b>bold</b>'

SYSTEMS = (
    SystemInfo(
        "cascade-300ms", "Cascade, 300 ms endpointer", "policy", "Systems", summary="Silence of 300 ms ends a turn."
    ),
    SystemInfo(
        "cascade-500ms", "Cascade, 500 ms endpointer", "policy", "Systems", stands_in_for="a hosted realtime API"
    ),
    SystemInfo("cascade-semantic", 'Cascade <b>"semantic"</b>', "policy", "Systems", licence="Apache-2.0"),
    SystemInfo("always-speak", "Always speak", "policy", "Reference policies", reference=True),
    SystemInfo("never-speak", "Never speak", "policy", "Reference policies", reference=True),
)


def card(name, track, title, unit, direction, statistic, *, headline=True, target=None, ours=False):
    return MetricCard(
        id=name, track=track, title=title, unit=unit, direction=direction, statistic=statistic,
        window="the scored window, from its start to its end", denominator="windows of completed rollouts",
        excluded="rollouts that failed in transport", edge_cases="an interval that straddles the start counts",
        source="design 15", version=1, headline=headline, target=target, ours=ours,
    )  # fmt: skip


MULTIPARTY_CARDS = (
    card("fresh_onset_response", "multiparty", "Fresh-onset response", "share of requests", "higher", "rate"),
    card("answer_accuracy", "multiparty", "Answer accuracy", "share of responses", "higher", "rate"),
    card("silence_preservation", "multiparty", "Silence preservation", "share of windows", "higher", "rate"),
    card("answering_window_yield", "multiparty", "Answering-window yield", "share of eligible", "higher", "rate"),
    card("stop_latency", "multiparty", "Stop latency", "s", "lower", "median", headline=False, ours=True),
)
CONVERSATION_CARDS = (
    card("pause_silent", "conversation", "Silent at the pause", "share of rollouts", "higher", "rate"),
    card("pause_takeover", "conversation", "Took the floor in the pause", "share of rollouts", "lower", "rate"),
    card("pause_after", "conversation", "Spoke after the pause", "share of rollouts", "none", "rate", headline=False),
    card("takeover_latency", "conversation", "Takeover latency", "s", "none", "median"),
    card("turn_end_latency", "conversation", "Turn-end latency", "s", "none", "median"),
    card("duration_ratio", "conversation", "Duration to the person's", "ratio", "target", "median", target=1.0),
)


class Factory:
    """Builds one run's tables; sizes and the odds of each system are arguments, everything else is named draws."""

    def __init__(self, folder: Path, seed: str = "fixture") -> None:
        self.blobs = BlobStore(FolderStore(folder))
        self.seed = seed

    def rng(self, *names):
        return generator_from(self.seed, *names)

    def voice(self, spans, length_s, pitch_hz):
        """Bursts of a wavering tone over ``spans``: looks like speech when drawn, and can be told by ear."""
        t = np.arange(round(length_s * RATE_HZ)) / RATE_HZ
        envelope = np.zeros_like(t)
        for start, end in spans:
            inside = (t >= start) & (t < end)
            local = t[inside] - start
            shape = np.minimum(1, np.minimum(local, end - start - local) / 0.03)
            envelope[inside] = shape * (0.35 + 0.65 * np.abs(np.sin(2 * np.pi * 2.7 * local)))
        tone = np.sin(2 * np.pi * pitch_hz * t + 3 * np.sin(2 * np.pi * 5 * t)) + 0.4 * np.sin(4 * np.pi * pitch_hz * t)
        return to_pcm16(0.3 * envelope * tone)

    def live(self, spans, length_s, pitch_hz):
        samples = self.voice(spans, length_s, pitch_hz)
        source = self.blobs.put_audio(samples, RATE_HZ)
        return self.blobs.slice_of(source, samples[:, None], RATE_HZ, 0, len(samples))

    def inputs(self, *, scenarios=6, conversations=6, settings=None, resamples=400) -> ReportInputs:
        tracks = (
            self.track("multiparty", MULTIPARTY_CARDS, self.multiparty_items(scenarios), resamples),
            self.track("conversation", CONVERSATION_CARDS, self.conversation_items(conversations), resamples),
        )
        return ReportInputs(
            title="Test data: tones, not results",
            run_id="20260101-fixture",
            profile="demo",
            tracks=tracks,
            systems=SYSTEMS,
            blobs=self.blobs,
            provenance={"commit": "0123abcd", "working_tree": "clean", "lock_sha256": "ab" * 32, "seed": "7"},
            stand_ins=(
                StandIn("Speech synthesis", "hibari, five voices", "a cloned-voice TTS", "Apache-2.0",
                        "Prosody is flatter than a person's."),
                StandIn("Recogniser", "Whisper base with forced alignment", "a large ASR model", "MIT",
                        "Word times carry about 40 ms of error."),
                StandIn("Answer judge", "strict matcher", "a large language model judge", "Apache-2.0"),
            ),
            extra_tables=(Table("cast-quality", "Voices of the synthetic cast", "n = 2 voices.",
                                pl.DataFrame({"voice": ["joe", "hib"], "word_error_rate": [0.03, None]})),),
            notes=("A fixture: tones instead of voices.",),
            settings=settings or SiteSettings(),
        )  # fmt: skip

    def multiparty_items(self, scenarios) -> list[Item]:
        items = []
        for scenario in range(scenarios):
            for condition in ("explicit", "implicit"):
                rng = self.rng("scene", scenario)
                at, turns, windows = 1.0, [], []
                kinds = ["N2", "N1", "T", "N3", "N2", "N4Q", "N4R"]
                for place, kind in enumerate(kinds):
                    length = float(rng.uniform(1.4, 2.8))
                    text = f"Utterance {place} of scenario {scenario}" if place else NASTY
                    turns.append((kind, "ABCD"[place % 3], text, at, at + length))
                    at += length + (5.0 if kind == "T" else 3.0 if kind == "N4Q" else 0.4)
                for place, (kind, speaker, text, start, end) in enumerate(turns):
                    labels = {"turn_type": kind, "speaker": speaker, "utterance_id": f"u{place}", "text": text}
                    if kind == "T":
                        windows.append(Window(f"w{place}", "request", end, end + 5.0, {"t_start_s": start}, labels))
                    elif kind == "N4Q":
                        windows.append(
                            Window(f"w{place}", "yield", end, turns[place + 1][4] + 2, {"question_end_s": end}, labels)
                        )
                    elif kind != "N4R":
                        windows.append(Window(f"w{place}", "silence", start, turns[place + 1][3], {}, labels))
                length_s = at + 2.0
                attributes = {
                    "domain": "prices",
                    "n_humans": 3,
                    "preamble_end_s": 0.8,
                    "speakers": " ".join(turn[1] for turn in turns),
                    "turn_types": " ".join(turn[0] for turn in turns),
                }
                items.append(
                    Item(
                        f"mp/{scenario:02d}-{condition}", "multiparty", f"scenario-{scenario:02d}", condition,
                        Stimulus("multiparty", self.live([t[3:] for t in turns], length_s, 180 + 5 * scenario)),
                        Reference(tuple(windows), "five thirty", None,
                                  tuple(HistoryTurn("user", t[2], t[3], t[4]) for t in turns),
                                  attributes),
                        "Apache-2.0",
                    )
                )  # fmt: skip
        return items

    def conversation_items(self, conversations) -> list[Item]:
        items = []
        for conversation in range(conversations):
            for place in range(5):
                rng = self.rng("point", conversation, place)
                kind = "pause" if place < 3 else "turn_end"
                start = float(rng.uniform(2.5, 4.0))
                gap = float(rng.uniform(0.6, 2.2))
                spans = [(0.3, start), (start + gap, start + gap + 1.5)] if kind == "pause" else [(0.3, start)]
                length_s = spans[-1][1] + 3.0
                window = (
                    Window("pause", "pause", start, start + gap, {"resume_end_s": spans[-1][1]}, {"speaker": "left"})
                    if kind == "pause"
                    else Window("turn", "turn_end", start, length_s, {}, {"speaker": "left"})
                )
                reply = None if kind == "pause" else HumanReply("I suppose so, yes", 1.6, 4)
                turns = [HistoryTurn("user", "So I went to the market and", spans[0][0], spans[0][1])]
                if reply:
                    turns.append(HistoryTurn("assistant", reply.text, start + 0.4, start + 2.0))
                items.append(
                    Item(
                        f"point-{conversation}-{place}", "conversation", f"session-{conversation}", kind,
                        Stimulus(kind, self.live(spans, length_s, 140 + 9 * place)),
                        Reference((window,), None, reply,
                                  tuple(turns),
                                  {"ranking": 0.5}),
                        "CC0-1.0",
                    )
                )  # fmt: skip
        return items

    def reply_spans(self, item, system) -> list[tuple[float, float]]:
        rng = self.rng("reply", item.item_id, system)
        end_s = item.stimulus.live.n_samples / RATE_HZ
        if system == "never-speak":
            return []
        if system == "always-speak":
            return [(0.0, end_s)]
        wait = {"cascade-300ms": 0.3, "cascade-500ms": 0.5, "cascade-semantic": 0.9}[system]
        spans = []
        for window in item.reference.windows:
            length = window.end_s - window.start_s
            due = window.kind in ("request", "turn_end", "yield")
            fooled = window.kind == "pause" and length > wait + 0.6 and rng.random() < 0.8
            if due or fooled or rng.random() < 0.12:
                onset = window.start_s + wait + float(rng.uniform(0.3, 0.7))
                spans.append((onset, min(onset + float(rng.uniform(0.8, 2.0)), end_s)))
        return [span for span in spans if span[1] - span[0] > 0.1]

    def track(self, track, cards, items, resamples) -> TrackTables:
        tables = {name: [] for name in ("items", "rollouts", "activity", "words", "judgements", "measurements")}
        for item in items:
            tables["items"].append(
                {"item_id": item.item_id, "track": track, "cluster": item.cluster, "condition": item.condition,
                 "protocol": item.stimulus.protocol, "stimulus_digest": stimulus_digest(item.stimulus),
                 "stimulus": to_json(item.stimulus), "reference": to_json(item.reference), "licence": item.licence,
                 "language": item.language, "live_s": item.stimulus.live.n_samples / RATE_HZ}
            )  # fmt: skip
            for system in SYSTEMS:
                self._run(tables, item, system.name)
        schemas = {"items": ITEMS, "rollouts": ROLLOUTS, "activity": ACTIVITY, "words": WORDS,
                   "judgements": JUDGEMENTS, "measurements": MEASUREMENTS}  # fmt: skip
        frames = {name: pl.DataFrame(rows, schema=dict(schemas[name])) for name, rows in tables.items()}
        aggregates = statistics_table(
            frames["measurements"],
            cards,
            track=track,
            expected=expected_windows(frames["measurements"], frames["rollouts"]),
            settings=AggregateSettings(n_resamples=resamples, n_permutations=500),
        )
        return TrackTables(
            track, **frames, statistics=aggregates.statistics, comparisons=aggregates.comparisons, cards=cards
        )

    def _run(self, tables, item, system) -> None:
        key = digest_value("rollout", item.item_id, system)
        end_s = item.stimulus.live.n_samples / RATE_HZ
        failed = system == "cascade-500ms" and self.rng("fail", item.item_id).random() < 0.06
        outcome = Outcome.TRANSPORT_ERROR if failed else Outcome.COMPLETED
        spans = [] if failed else self.reply_spans(item, system)
        audio = events = None
        if not failed:
            audio = self.blobs.put_audio(self.voice(spans, end_s, 320), RATE_HZ)
            log = [{"kind": "state", "state": "speak", "available_s": start - 0.1} for start, _ in spans]
            log += [{"kind": "audio", "available_s": start} for start, _ in spans]
            events = self.blobs.put(gzip.compress("\n".join(map(json.dumps, log)).encode(), mtime=0), "jsonl.gz")
        tables["rollouts"].append(
            {"rollout_key": key, "item_id": item.item_id, "system": system,
             "stimulus_digest": stimulus_digest(item.stimulus), "repeat": 0, "outcome": outcome,
             "reason": "connection closed after 3 attempts" if failed else "", "listener_audio": audio,
             "sample_rate_hz": RATE_HZ, "timeline_s": end_s, "input_s": end_s, "events": events, "compute_s": 0.4,
             "wall_s": 0.5, "attempts": 3 if failed else 1}
        )  # fmt: skip
        if failed:
            return
        words = [
            {"text": text, "start_s": start + 0.1 + 0.3 * n, "end_s": start + 0.35 + 0.3 * n, "aligned": n != 2}
            for start, end in spans for n, text in enumerate(["at", "five", NASTY[:12]]) if start + 0.4 + 0.3 * n < end
        ]  # fmt: skip
        tables["activity"].append(
            {"rollout_key": key, "system": system, "gate_s": [list(span) for span in spans],
             "vad_s": [list(span) for span in spans], "gate_threshold": 0.01, "gate_release_ratio": 0.5,
             "gate_min_duration_s": 0.08, "vad_engine": "silero"}
        )  # fmt: skip
        tables["words"].append(
            {"rollout_key": key, "system": system, "text": " ".join(w["text"] for w in words), "n_words": len(words),
             "words": words, "engine": "whisper-base"}
        )  # fmt: skip
        for window in item.reference.windows:
            self._score(tables, item, system, key, window, spans)

    def _score(self, tables, item, system, key, window, spans) -> None:
        def put(metric, value, reason=None, **details):
            tables["measurements"].append(
                {"measurement_id": digest_value(key, window.window_id, metric)[:16], "system": system,
                 "item_id": item.item_id, "rollout_key": key, "window_id": window.window_id, "cluster": item.cluster,
                 "condition": item.condition, "metric": metric, "metric_version": 1,
                 "value": None if value is None else float(value), "reason": reason, "at_s": window.start_s,
                 "details": json.dumps(details)}
            )  # fmt: skip

        inside = [s for s in spans if s[1] > window.start_s and s[0] < window.end_s]
        onset = min((s[0] for s in inside), default=None)
        fresh = onset is not None and onset > window.start_s
        if window.kind == "request":
            put("fresh_onset_response", fresh, onset_s=onset)
            correct = self.rng("answer", item.item_id, system).random() < 0.6
            put("answer_accuracy", correct if inside else None, None if inside else "no response")
            if inside:
                tables["judgements"].append(
                    {"judgement_id": f"j-{key[:8]}", "rollout_key": key, "item_id": item.item_id,
                     "window_id": window.window_id, "system": system, "rubric": "answer_correctness",
                     "rubric_version": 1, "judge": "strict", "verdict": "correct" if correct else "incorrect",
                     "reason": "content words matched" if correct else "content words differ", "raw": NASTY}
                )  # fmt: skip
        elif window.kind == "silence":
            put("silence_preservation", not inside)
        elif window.kind == "yield":
            stops = bool(fresh and self.rng("stop", item.item_id, system).random() < 0.5)
            put("answering_window_yield", stops if fresh else None, None if fresh else "not eligible: no fresh onset")
            put("stop_latency", 0.4 + 0.1 * len(item.item_id) % 1 if stops else None, None if stops else "did not stop")
        elif window.kind == "pause":
            put("pause_silent", not spans)
            put("pause_takeover", bool(inside))
            put("pause_after", bool(spans and not inside))
            latency = max(0.0, onset - window.start_s) if inside else None
            put("takeover_latency", latency, None if inside else "no takeover")
        else:
            put("turn_end_latency", onset - window.start_s if inside else None, None if inside else "no words")
            put(
                "duration_ratio",
                (inside[0][1] - inside[0][0]) / 1.6 if inside else None,
                None if inside else "no words",
            )
