"""A blind sample as a folder: a CSV to fill, a page that plays and fills it, and the audio."""

import csv
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

import jinja2
import numpy as np
import numpy.typing as npt
import soundfile


@dataclass(frozen=True, slots=True)
class Sample:
    """What a person is shown and plays: named texts in order, and mono PCM16 audio (n,)."""

    sample: str
    texts: tuple[tuple[str, str], ...]
    audio: npt.NDArray[np.int16]
    sample_rate_hz: int


@dataclass(frozen=True, slots=True)
class SheetQuestion:
    """A column to fill, what it asks, and the answers allowed."""

    column: str
    asks: str
    answers: tuple[str, ...]


def write_sheet(
    folder: Path, draw_id: str, title: str, instruction: str, questions: Sequence[SheetQuestion],
    samples: Sequence[Sample],
) -> Path:  # fmt: skip
    """Write ``sheet.csv``, ``index.html`` and ``audio/`` into ``folder``; returns the sheet.

    Nothing in the folder says which system spoke or what the judge said.

    Raises:
        ValueError: ``folder`` holds something already: filled sheets are never overwritten.
    """
    if folder.exists() and any(folder.iterdir()):
        raise ValueError(f"{folder} is not empty: name another folder, so that no filled sheet is lost")
    (folder / "audio").mkdir(parents=True)
    for sample in samples:
        soundfile.write(folder / _audio(sample), sample.audio, sample.sample_rate_hz, subtype="PCM_16")
    names = [name for name, _ in samples[0].texts] if samples else []
    header = ["draw", "sample", "audio", *names, *(question.column for question in questions), "note"]
    with (folder / "sheet.csv").open("w", encoding="utf-8", newline="") as file:
        writer = csv.writer(file)
        writer.writerow(header)
        for sample in samples:
            texts = [text for _, text in sample.texts]
            writer.writerow([draw_id, sample.sample, _audio(sample), *texts, *([""] * len(questions)), ""])
    environment = jinja2.Environment(
        loader=jinja2.PackageLoader("duplex_bench.reporting.site"), autoescape=True, undefined=jinja2.StrictUndefined
    )
    shown = [{"sample": sample.sample, "audio": _audio(sample), "texts": sample.texts} for sample in samples]
    page = environment.get_template("validation.html").render(
        title=title, instruction=instruction, questions=questions, samples=shown, draw_id=draw_id, header=header
    )
    (folder / "index.html").write_text(page, encoding="utf-8")
    return folder / "sheet.csv"


def _audio(sample: Sample) -> str:
    return f"audio/{sample.sample}.flac"
