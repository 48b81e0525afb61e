"""What a choice of interactions needs, archives and bucket layout as they are downloaded, and disjoint speakers."""

import io
import json
import shutil
import tarfile

import pytest
from hypothesis import given
from hypothesis import strategies as st

from duplex_bench.conversation.generator import GeneratorSettings, generate
from duplex_bench.conversation.seamless import SeamlessRules, load_seamless
from duplex_bench.conversation.seamless_archives import (
    from_bucket_layout,
    needed_archives,
    needed_s3_keys,
    read_file_list,
    read_selection,
    selected,
    speaker_disjoint_split,
    unpack_archives,
)
from duplex_bench.conversation.sessions import LoadedSessions, Session, Side

pytestmark = pytest.mark.unit
LABEL = "naturalistic"


@pytest.fixture(scope="module")
def generated(tmp_path_factory, noise_voices):
    root = tmp_path_factory.mktemp("generated")
    generate(GeneratorSettings(n_sessions=4, minutes=0.4, sample_rate_hz=8000), noise_voices, root)
    return root / "corpus"


@pytest.fixture
def plain(generated):
    return load_seamless(generated)


def as_downloaded(generated, root):
    """The corpus with every archive folder as a tar, members below a folder of their own."""
    shutil.copytree(generated, root)
    for folder in sorted((root / LABEL).glob("*/*/*")):
        with tarfile.open(folder.with_name(f"{folder.name}.tar"), "w") as archive:
            for path in sorted(folder.iterdir()):
                archive.add(path, arcname=f"deep/inside/{path.name}")
            video = tarfile.TarInfo(f"deep/{min(folder.iterdir()).stem}.mp4")
            archive.addfile(video, io.BytesIO(b""))
        shutil.rmtree(folder)
    return root


def told(loaded):
    return [(one.session_id, one.duration_s, one.left.words, one.right.words) for one in loaded.sessions]


def test_archives_are_unpacked_once_and_load_as_folders_do(generated, plain, tmp_path):
    root = as_downloaded(generated, tmp_path / "tars")
    assert unpack_archives(root, LABEL) == []
    assert told(load_seamless(root)) == told(plain)
    assert not list(root.rglob("*.mp4"))
    assert not list(root.rglob("*.part"))
    for path in root.rglob("*.tar"):
        path.write_bytes(b"changed since")
    assert unpack_archives(root, LABEL) == []


def test_a_cut_archive_is_named_and_leaves_no_folder(generated, tmp_path):
    root = as_downloaded(generated, tmp_path / "tars")
    first = min(root.rglob("*.tar"))
    first.write_bytes(first.read_bytes()[:700])
    (rejection,) = unpack_archives(root, LABEL)
    assert (rejection.rule, rejection.where) == ("broken_archive", str(first))
    assert not first.with_suffix("").exists()


def test_members_cannot_leave_the_folder_and_links_are_refused(tmp_path):
    folder = tmp_path / LABEL / "train" / "0000"
    folder.mkdir(parents=True)
    with tarfile.open(folder / "0001.tar", "w") as archive:
        outside = tarfile.TarInfo("../../../../V00_S0001_I00000582_P0001.json")
        outside.size = 2
        archive.addfile(outside, io.BytesIO(b"{}"))
        link = tarfile.TarInfo("V00_S0001_I00000582_P0002.json")
        link.type, link.linkname = tarfile.SYMTYPE, "/etc/hostname"
        archive.addfile(link)
    (rejection,) = unpack_archives(tmp_path, LABEL)
    assert rejection.rule == "unsafe_member"
    assert [path.name for path in tmp_path.rglob("*.json")] == ["V00_S0001_I00000582_P0001.json"]
    assert (folder / "0001" / "V00_S0001_I00000582_P0001.json").is_file()


def test_the_bucket_s_layout_loads_as_the_folders_do(generated, plain, tmp_path):
    for note in generated.rglob(f"{LABEL}/**/*.json"):
        split = tmp_path / LABEL / note.parent.parent.parent.name
        for kind in ("audio", "metadata/transcript", "metadata/vad"):
            (split / kind).mkdir(parents=True, exist_ok=True)
        shutil.copy(note.with_suffix(".wav"), split / "audio" / f"{note.stem}.wav")
        data = json.loads(note.read_text())
        for kind in ("transcript", "vad"):
            lines = "\n".join(json.dumps(row) for row in data[f"metadata:{kind}"])
            (split / "metadata" / kind / f"{note.stem}.jsonl").write_text(lines)
    assert from_bucket_layout(tmp_path, tmp_path, LABEL) == []
    assert told(load_seamless(tmp_path)) == told(plain)
    assert from_bucket_layout(tmp_path, tmp_path, LABEL) == []


def test_a_choice_names_only_the_archives_of_both_sides(generated, plain, tmp_path):
    listed = read_file_list(generated / "filelist.csv")
    key = plain.sessions[0].session_id
    (tmp_path / "chosen.txt").write_text(f"# mine\n{key}\n")
    keys = read_selection(tmp_path / "chosen.txt")
    assert keys == {key}
    archives = needed_archives(listed, keys)
    holding = {path.parent for path in generated.rglob(f"{key}_*.wav")}
    assert archives == sorted(f"{folder.relative_to(generated)}.tar" for folder in holding)
    objects = needed_s3_keys(listed, keys)
    assert len(objects) == 6
    assert all(key in name and not name.endswith("mp4") for name in objects)
    assert len(needed_archives(listed)) >= len(archives)
    assert [one.session_id for one in load_seamless(generated, SeamlessRules(only=keys)).sessions] == [key]


def test_a_csv_is_a_selection_and_nonsense_is_named_by_row(generated, tmp_path):
    assert len(read_selection(generated / "filelist.csv")) == 4
    (tmp_path / "bad.txt").write_text("V00_S0001_I00000582\nsome words\n")
    with pytest.raises(ValueError, match=r"bad\.txt, line 2"):
        read_selection(tmp_path / "bad.txt")
    (tmp_path / "bad.csv").write_text("file_id,label,split,batch_idx,archive_idx\nx,naturalistic,dev,0,0\n")
    with pytest.raises(ValueError, match=r"bad\.csv, line 2"):
        read_file_list(tmp_path / "bad.csv")


def session(number, left, right):
    sides = [Side("x.wav", 0, (), (), f"V00_P{speaker:04d}") for speaker in (left, right)]
    return Session(f"s{number}", *sides, 48_000, 600.0, "CC BY-NC 4.0")


@given(st.lists(st.tuples(st.integers(0, 25), st.integers(26, 50)), min_size=1, max_size=40), st.integers(0, 5))
def test_no_speaker_is_in_two_parts_and_every_session_in_one(pairs, seed):
    sessions = [session(number, *pair) for number, pair in enumerate(pairs)]
    parts = speaker_disjoint_split(sessions, (("train", 0.7), ("test", 0.3)), seed)
    assert set(parts) == {one.session_id for one in sessions}
    where = {}
    for one in sessions:
        for speaker in (one.left.speaker_id, one.right.speaker_id):
            assert where.setdefault(speaker, parts[one.session_id]) == parts[one.session_id]


def test_independent_sessions_are_split_by_their_shares():
    sessions = [session(number, 2 * number, 2 * number + 1) for number in range(100)]
    parts = list(speaker_disjoint_split(sessions, (("train", 3), ("test", 1)), 0).values())
    assert (parts.count("train"), parts.count("test")) == (75, 25)
    with pytest.raises(ValueError, match="share above 0"):
        speaker_disjoint_split(sessions, (("train", 0.0),), 0)


def test_a_selection_keeps_what_was_rejected():
    loaded = LoadedSessions((session(0, 1, 2), session(1, 3, 4)), ())
    assert [one.session_id for one in selected(loaded, {"s1"}).sessions] == ["s1"]
