"""How synthetic sessions lie on disk: WAV and JSON of each side, and the corpus's four tables with its habits."""

import csv
import io
import json
from collections.abc import Sequence
from pathlib import Path
from typing import Any, Final, NamedTuple

import soundfile

from duplex_bench.audio.files import write_atomic
from duplex_bench.conversation.generator_faults import SideFiles, header_only_wav
from duplex_bench.storage.object_store import FolderStore

LABEL: Final = "naturalistic"
SPLIT: Final = "dev"
CORPUS_FOLDER: Final = "corpus"

# Prompt hashes are reused between sessions, session and participant numbers between vendors, as in the corpus.
INTERACTIONS: Final = ("00000582", "00000009", "00001203")
_UNUSED_CHARADES = "00000777"
_BATCH = 0


class ListedSide(NamedTuple):
    """One row of ``filelist.csv``: a participant's file and the archive that it lies in."""

    file_id: str
    archive: int


def write_side(store: FolderStore, root: Path, side: SideFiles, sample_rate_hz: int) -> None:
    """Write one participant's WAV and JSON in the form that its fault asks for."""
    key = f"{CORPUS_FOLDER}/{LABEL}/{SPLIT}/{_BATCH:04d}/{side.archive:04d}/{side.file_id}"
    if side.form == "header_only":
        store.put(f"{key}.wav", header_only_wav(sample_rate_hz))
    elif side.form == "float32":
        buffer = io.BytesIO()
        soundfile.write(buffer, side.samples, sample_rate_hz, format="WAV", subtype="FLOAT")
        store.put(f"{key}.wav", buffer.getvalue())
    else:
        write_atomic(root / f"{key}.wav", side.samples, sample_rate_hz)
    text = json.dumps(side.note, indent=4)
    store.put(f"{key}.json", (text[: len(text) // 2] if side.cut_json else text).encode())


def write_tables(store: FolderStore, sides: Sequence[ListedSide]) -> None:
    """The four tables of the corpus, with its habits: quoted line breaks, vendors with and without the V."""
    types = ("ipc_conversation", "grounded_gesture", "collaborative_storytelling", "charades")
    prompts = [
        [number, key, number, "Talk about\nsomething you like.", "Listen\nand ask.", "APCP", "APCP", types[number]]
        for number, key in enumerate((*INTERACTIONS, _UNUSED_CHARADES))
    ]
    people = sorted({tuple(side.file_id.replace("V", "").replace("P", "").split("_")) for side in sides})
    sessions = sorted({tuple(side.file_id.split("_")[:2]) for side in sides})
    tables: dict[str, tuple[list[str], list[list[Any]]]] = {
        "filelist.csv": (
            ["file_id", "label", "split", "batch_idx", "archive_idx"],
            [[side.file_id, LABEL, SPLIT, _BATCH, side.archive] for side in sides],
        ),
        "interactions.csv": (
            ["", "prompt_hash", "prompt_id_unique", "participant_a_prompt_text", "participant_b_prompt_text",
             "ipc_a", "ipc_b", "interaction_type"],
            prompts,
        ),
        "participants.csv": (
            ["vendor_id", "participant_id", "extraversion_raw"],
            [[person[0], person[3], "Undisclosed"] for person in people],
        ),
        "relationships.csv": (
            ["vendor_id", "session_id", "relationship", "relationship_detail"],
            [[vendor, session[1:], "stranger", "stranger"] for vendor, session in sessions],
        ),
    }  # fmt: skip
    for name, (header, rows) in tables.items():
        buffer = io.StringIO()
        writer = csv.writer(buffer, lineterminator="\n")
        writer.writerow(header)
        writer.writerows(rows)
        store.put(f"{CORPUS_FOLDER}/{name}", buffer.getvalue().encode())
