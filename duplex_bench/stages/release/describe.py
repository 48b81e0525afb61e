"""What a bundle says about itself: the dataset card for people, Croissant (JSON-LD) for machines."""

from collections.abc import Mapping
from importlib.resources import files
from typing import Any, Final

import polars as pl

from duplex_bench.stages.release.layout import AUDIO, DESCRIPTIONS, OUTPUT_LICENCE

# The context that Croissant 1.0 asks for: every term of its own vocabulary.
_TERMS: Final = (
    "citeAs", "column", "equivalentProperty", "extract", "field", "fileProperty", "fileObject", "fileSet", "format",
    "includes", "isLiveDataset", "jsonPath", "key", "md5", "parentField", "path", "recordSet", "references", "regex",
    "repeated", "replace", "samplingRate", "separator", "source", "subField", "transform",
)  # fmt: skip
_CONTEXT: Final = {
    "@language": "en",
    "@vocab": "https://schema.org/",
    "cr": "http://mlcommons.org/croissant/",
    "rai": "http://mlcommons.org/croissant/RAI/",
    "sc": "https://schema.org/",
    "dct": "http://purl.org/dc/terms/",
    "conformsTo": "dct:conformsTo",
    "data": {"@id": "cr:data", "@type": "@json"},
    "dataType": {"@id": "cr:dataType", "@type": "@vocab"},
    "examples": {"@id": "cr:examples", "@type": "@json"},
    **{term: f"cr:{term}" for term in _TERMS},
}
_TYPES: Final[Mapping[Any, str]] = {
    pl.String: "sc:Text",
    pl.Float64: "sc:Float",
    pl.Int64: "sc:Integer",
    pl.Boolean: "sc:Boolean",
}


def croissant(
    marker: Mapping[str, Any], tables: Mapping[str, pl.DataFrame], hashes: Mapping[str, str]
) -> dict[str, Any]:
    """The bundle in Croissant 1.0: files with digests, and a record set by table with its flat columns.

    Args:
        marker: what ``release.json`` says.
        tables: the tables by name.
        hashes: SHA-256 of each table's file.
    """
    return {
        "@context": dict(_CONTEXT),
        "@type": "sc:Dataset",
        "name": f"duplex_bench-{marker['profile']}",
        "description": (
            "Scores of speech systems in conversation, with what they said and how it was judged. Columns with "
            "intervals or words are lists, which are in the files and not described here."
        ),
        "conformsTo": "http://mlcommons.org/croissant/1.0",
        "license": [OUTPUT_LICENCE, *marker["licences_of_sources"]],
        "version": f"{marker['facts'].get('version', '')}+{marker['run_id']}",
        "citeAs": f"duplex_bench release {marker['profile']}, run {marker['run_id']}",
        "isLiveDataset": False,
        "distribution": [
            *(
                {
                    "@type": "cr:FileObject", "@id": f"{name}.parquet", "name": f"{name}.parquet",
                    "description": DESCRIPTIONS[name], "contentUrl": f"{name}.parquet",
                    "encodingFormat": "application/x-parquet", "sha256": hashes[name],
                }
                for name in tables
            ),
            {
                "@type": "cr:FileSet", "@id": AUDIO, "name": AUDIO, "encodingFormat": "audio/flac",
                "description": "What a listener heard of each rollout; machine-generated.",
                "includes": f"{AUDIO}/*.flac",
            },
        ],
        "recordSet": [
            {
                "@type": "cr:RecordSet", "@id": name, "name": name, "description": DESCRIPTIONS[name],
                "field": [_field(name, column, kind) for column, kind in frame.schema.items() if type(kind) in _TYPES],
            }
            for name, frame in tables.items()
        ],
    }  # fmt: skip


def _field(table: str, column: str, kind: pl.DataType) -> dict[str, Any]:
    return {
        "@type": "cr:Field",
        "@id": f"{table}/{column}",
        "name": column,
        "dataType": _TYPES[type(kind)],
        "source": {"fileObject": {"@id": f"{table}.parquet"}, "extract": {"column": column}},
    }


def dataset_card(marker: Mapping[str, Any], tables: Mapping[str, pl.DataFrame]) -> str:
    """The README of the bundle: front matter that dataset hubs read, then what is in it and under which terms."""
    text = (files("duplex_bench.stages.release") / "card.md").read_text("utf-8")
    facts = marker["facts"]
    withheld = " and ".join(marker["words_withheld"])
    return text.format_map(
        {
            "front": _front(tables),
            "profile": marker["profile"],
            "n_scores": f"{marker['rows']['measurements']:,}",
            "n_systems": tables["measurements"]["system"].n_unique(),
            "n_items": f"{marker['rows']['items']:,}",
            "tracks": " and ".join(marker["tracks"]),
            "audio_minutes": round(marker["audio_seconds"] / 60, 1),
            "run_id": marker["run_id"],
            "version": facts.get("version") or "unknown",
            "commit": (facts.get("commit") or "unknown")[:12],
            "tables": "\n".join(
                f"| `{name}.parquet` | {frame.height:,} | {DESCRIPTIONS[name]} |" for name, frame in tables.items()
            ),
            "withheld": (
                f"The words of the {withheld} track are withheld too, since they are of people or of a user: "
                "transcripts, gold answers, replies, and what judges said about them."
                if withheld
                else "The words of all items are given: they were written by this package's engines."
            ),
            "licence": marker["licence_of_outputs"],
            "sources": "; ".join(marker["licences_of_sources"]),
        }
    )


def _front(tables: Mapping[str, pl.DataFrame]) -> str:
    lines = ["license: cc-by-nc-4.0", "language:", "- en", "tags:", "- speech", "- machine-generated", "configs:"]
    for name, frame in tables.items():
        if frame.height:
            lines += [f"- config_name: {name}", f"  data_files: {name}.parquet"]
    return "".join(f"{line}\n" for line in lines)
