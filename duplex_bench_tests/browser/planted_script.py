"""A report in which every text that comes from outside tries to run as a script."""

import dataclasses
import gzip
import json

import polars as pl

from duplex_bench.reporting.inputs import StandIn, Table

# Without spaces, so that what is split into names stays whole. U+2028 and U+2029 end a line in old JavaScript.
EVIL = (
    "</script><script>window.broken=1</script>\"'><img/src=planted.png/onerror=window.broken=1>"
    "\u2028\u2029<!--<svg/onload=window.broken=1>javascript:window.broken=1`${window.broken=1}\\"
)
_NAMES = ("item_id", "cluster", "system", "system_a", "system_b")
_TEXTS = ("reason", "text", "verdict", "judge", "raw", "licence", "language", "engine", "vad_engine")
_SPOKEN = {"text", "gold_answer", "speaker", "utterance_id", "speakers", "domain"}


def planted(inputs):
    """The inputs with ``EVIL`` at the end of every name and text."""
    return dataclasses.replace(
        inputs,
        title=f"Report {EVIL}",
        run_id=EVIL,
        profile=EVIL,
        tracks=tuple(_track(track, inputs.blobs) for track in inputs.tracks),
        systems=tuple(_system(system) for system in inputs.systems),
        provenance={f"fact{EVIL}": EVIL},
        stand_ins=(StandIn(EVIL, EVIL, EVIL, EVIL, EVIL),),
        extra_tables=(Table("planted", EVIL, EVIL, pl.DataFrame({EVIL: [EVIL], "reason": [EVIL], "item_id": [EVIL]})),),
        notes=(EVIL,),
        warnings=(EVIL,),
        unmeasured={"stop_latency": EVIL},
    )


def _system(system):
    texts = dict.fromkeys(("summary", "licence", "stands_in_for", "conformance"), EVIL)
    return dataclasses.replace(
        system,
        name=system.name + EVIL,
        title=system.title + EVIL,
        card={f"notes{EVIL}": EVIL, "links": f"javascript:window.broken=1//{EVIL}"},
        **texts,
    )


def _track(track, blobs):
    frames = {}
    for name in ("items", "rollouts", "activity", "words", "judgements", "measurements", "statistics", "comparisons"):
        frame = getattr(track, name)
        found = [column for column in (*_NAMES, *_TEXTS) if column in frame.columns]
        frames[name] = frame.with_columns(pl.col(column) + EVIL for column in found)
    frames["items"] = frames["items"].with_columns(pl.col("reference").map_elements(_reference, return_dtype=pl.String))
    frames["words"] = _words(frames["words"])
    log = {"kind": f"state{EVIL}", "state": EVIL, "text": EVIL, "available_s": 1.0}
    events = blobs.put(gzip.compress(json.dumps(log).encode(), mtime=0), "jsonl.gz")
    frames["rollouts"] = frames["rollouts"].with_columns(
        pl.when(pl.col("events").is_not_null()).then(pl.lit(events)).alias("events")
    )
    frames["measurements"] = frames["measurements"].with_columns(
        pl.lit(json.dumps({"answer": EVIL, EVIL: EVIL, "outcome": EVIL})).alias("details")
    )
    return dataclasses.replace(track, **frames)


def _words(frame):
    rows = frame.to_dicts()
    for row in rows:
        for word in row["words"] or []:
            word["text"] += EVIL
    return pl.DataFrame(rows, schema=frame.schema)


def _reference(text):
    def walked(value, key=""):
        if isinstance(value, dict):
            return {name: walked(inner, name) for name, inner in value.items()}
        if isinstance(value, list):
            return [walked(inner, key) for inner in value]
        return value + EVIL if isinstance(value, str) and key in _SPOKEN else value

    return json.dumps(walked(json.loads(text)))
