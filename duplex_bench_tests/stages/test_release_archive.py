"""The archive of a bundle: any reader opens it, its bytes depend on nothing else, and nothing is compressed twice."""

import os
import tarfile
import zlib

import pytest

from duplex_bench.stages.release.archive import opened, pack

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
