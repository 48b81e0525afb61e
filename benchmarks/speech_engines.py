"""Speed and quality of the embedded speech engines on this machine, one thread each."""

import argparse
import time

import numpy as np
import polars as pl

from duplex_bench.speech import engines, quality


def edge_errors_ms() -> None:
    """Voice activity edges and word starts against what the clips were placed at."""
    tts, vad, rec = engines.text_to_speech(), engines.voice_activity(), engines.recogniser("whisper-base")
    rng = np.random.default_rng(0)
    for voice in tts.voices:
        pieces, gold, starts, position = [], [], [], 0
        for sentence in quality.quality_sentences():
            gap = np.zeros(int(rng.integers(18000, 36000)), dtype=np.float32)
            clip = tts.speak(sentence, voice)
            position += len(gap)
            gold.append((position, position + len(clip.samples)))
            starts += [position / 24000 + start for start in clip.word_starts_s]
            position += len(clip.samples)
            pieces += [gap, clip.samples]
        track = np.concatenate([*pieces, np.zeros(24000, dtype=np.float32)])
        begun_s = time.perf_counter()
        regions = vad.speech_regions(track, 24000)
        vad_s = time.perf_counter() - begun_s
        words = rec.words(track, 24000)
        words_s = time.perf_counter() - begun_s - vad_s
        duration_s = len(track) / 24000
        onsets = [min((int(r[0]) - start for r in regions), key=abs) / 24 for start, _ in gold]
        offsets = [min((int(r[1]) - stop for r in regions), key=abs) / 24 for _, stop in gold]
        errors = [1000 * min((word.start_s - start for start in starts), key=abs) for word in words if word.aligned]
        print(
            f"{voice:9} vad {duration_s / vad_s:5.0f}x, edges {np.median(onsets):+.0f}/{np.median(offsets):+.0f} ms; "
            f"words {words_s / duration_s:.3f} RTF, start bias {np.median(errors):+.0f}, "
            f"median {np.median(np.abs(errors)):.0f}, p90 {np.quantile(np.abs(errors), 0.9):.0f} ms, "
            f"unaligned {sum(not word.aligned for word in words)} of {len(words)}",
            flush=True,
        )


def main() -> None:
    parser = argparse.ArgumentParser()
    parser.add_argument("--recogniser", action="append", choices=engines.RECOGNISERS, default=[])
    arguments = parser.parse_args()
    pl.Config.set_tbl_cols(20)
    pl.Config.set_tbl_rows(40)
    pl.Config.set_tbl_width_chars(200)
    edge_errors_ms()
    for name in arguments.recogniser or ["whisper-base", "whisper-tiny.en"]:
        print(name, quality.cast_quality(engines.text_to_speech(), engines.recogniser(name)), flush=True)
        print(quality.detector_controls(engines.voice_activity(), engines.recogniser(name)), flush=True)
    sentences = quality.quality_sentences()
    tts = engines.text_to_speech()
    clips = {voice: [tts.speak(sentence, voice) for sentence in sentences] for voice in tts.voices}
    print(quality.speaker_distance(clips).pivot("other", index="voice", values="distance"))
    detector = engines.turn_end()
    pause = np.zeros(4800, dtype=np.float32)
    for name, share in (("whole", 1.0), ("cut at 60 %", 0.6)):
        begun_s = time.perf_counter()
        answers = [
            detector.completion_probability(
                np.concatenate([clip.samples[: int(share * len(clip.samples))], pause]), 24000
            )
            for spoken in clips.values()
            for clip in spoken
        ]
        took_ms = (time.perf_counter() - begun_s) / len(answers) * 1000
        print(f"smart-turn, {name}: {np.mean(np.array(answers) > 0.5):.2f} called complete, {took_ms:.0f} ms each")


if __name__ == "__main__":
    main()
