"""The archive of a bundle: any reader opens it, its bytes depend on nothing else, and nothing is compressed twice."""

import contextlib
import json
import os
import tarfile
import zlib

import numpy as np
import polars as pl
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from duplex_bench.reporting.inputs import ReportInputError
from duplex_bench.reporting.run_tables import load_run
from duplex_bench.stages.release.archive import opened, pack
from duplex_bench.stages.release.check import check_release
from duplex_bench.stages.release.contents import ReleaseError
from duplex_bench.storage.digests import digest_file

pytestmark = pytest.mark.unit

FILES = {
    "README.md": b"words " * 50_000,
    "empty.json": b"",
    "audio/block.flac": bytes(512),
    "audio/large.flac": os.urandom(3 << 20),
    f"prompts/{'long-name-' * 20}.md": b"+++\n",
    "unicode-\N{LATIN SMALL LETTER E WITH ACUTE}.json": b"{}",
    "table.parquet": bytes(100_000),
}


@pytest.fixture
def folder(tmp_path):
    for name, data in FILES.items():
        path = tmp_path / "bundle" / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_bytes(data)
    return tmp_path / "bundle"


def released_in(folder):
    """A bundle with one table, of a kind of its own, and a manifest."""
    folder.mkdir()
    scores = pl.DataFrame({"track": ["multiparty"] * 400, "value": np.random.default_rng(1).random(400)})
    scores.write_parquet(folder / "scores.parquet", compression="uncompressed")
    (folder / "release.json").write_text(json.dumps({"format": 1, "profile": "small", "tracks": ["multiparty"]}))
    files = {path.name: {"sha256": digest_file(path)} for path in folder.iterdir()}
    (folder / "manifest.json").write_text(json.dumps({"files": files}))
    return folder


@pytest.fixture
def released(tmp_path):
    return released_in(tmp_path / "released")


@pytest.fixture(scope="module")
def packed(tmp_path_factory):
    folder = released_in(tmp_path_factory.mktemp("packed") / "released")
    return pack(folder), pl.read_parquet(folder / "scores.parquet")


def held(folder):
    return {path.relative_to(folder).as_posix(): path.read_bytes() for path in folder.rglob("*") if path.is_file()}


def test_what_is_packed_is_what_is_unpacked(folder):
    with opened(pack(folder)) as found:
        assert held(found) == FILES
    with tarfile.open(pack(folder)) as tar:
        assert all((member.mode, member.mtime, member.uid, member.uname) == (0o644, 0, 0, "") for member in tar)


def test_it_is_one_gzip_member_with_its_sum(folder):
    """Some readers stop after the first member of a gzip file."""
    reader = zlib.decompressobj(zlib.MAX_WBITS | 16)
    whole = reader.decompress(pack(folder).read_bytes())
    assert reader.eof
    assert reader.unused_data == b""
    assert len(whole) % 10_240 == 0


def test_the_bytes_hang_on_names_and_contents_alone(folder):
    first = pack(folder).read_bytes()
    for path in folder.rglob("*"):
        os.utime(path, (1, 1))
        path.chmod(0o700)
    assert pack(folder).read_bytes() == first


def test_what_is_compressed_already_is_stored_and_text_is_deflated(folder):
    """Zeros would vanish under a compressor: stored, they keep their size."""
    with_zeros = pack(folder).stat().st_size
    (folder / "table.parquet").unlink()
    assert with_zeros - pack(folder).stat().st_size > 100_000
    assert len(FILES["README.md"]) > 100 * 1024
    before = pack(folder).stat().st_size
    (folder / "README.md").unlink()
    assert before - pack(folder).stat().st_size < 5_000


def test_a_table_that_is_not_the_one_released_is_refused_before_it_is_read(released):
    """The bytes of a column are cut short: read, they take polars down with them."""
    file = released / "scores.parquet"
    data = file.read_bytes()
    file.write_bytes(data[:400] + data[500:])
    run = load_run(released)
    with pytest.raises(ReportInputError, match="is not the file that was released"):
        run["multiparty-scores"]
    with pytest.raises(ReportInputError, match="is not the file that was released"):
        load_run(pack(released))["multiparty-scores"]
    assert "scores.parquet" in {problem.file for problem in check_release(released)}


def test_a_bundle_without_its_manifest_is_refused(released):
    (released / "manifest.json").unlink()
    with pytest.raises(ReportInputError, match=r"has no manifest\.json"):
        load_run(released)


@settings(max_examples=40, deadline=None)
@given(st.integers(0, 10**9), st.integers(1, 255), st.integers(1, 40))
def test_a_damaged_archive_is_refused_or_read_as_it_was(packed, place, flip, n):
    """Whatever bytes are hit: a reason, or the same tables; no other error, and never another number."""
    archive, scores = packed
    data = bytearray(archive.read_bytes())
    place %= len(data)
    data[place : place + n] = bytes(byte ^ flip for byte in data[place : place + n])
    damaged = archive.with_name("damaged.tar.gz")
    damaged.write_bytes(data)
    with contextlib.suppress(ReportInputError):
        assert load_run(damaged)["multiparty-scores"].equals(scores)
    with contextlib.suppress(ReleaseError):
        check_release(damaged)
