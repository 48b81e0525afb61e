import shutil

import pytest

from duplex_bench.speech import model_cache, model_catalogue, whisper_engine
from duplex_bench.storage import model_files

pytestmark = pytest.mark.unit


def test_every_model_is_what_the_catalogue_says():
    for name in model_catalogue.model_cards():
        assert model_catalogue.verified_model(name)


def test_a_tampered_copy_is_refused(tmp_path, monkeypatch):
    card = model_catalogue.model_cards()["silero"]
    original = model_files.package_folder("silero_vad") / card.files[0].path
    copy = tmp_path / card.files[0].path
    copy.parent.mkdir(parents=True)
    shutil.copy(original, copy)
    monkeypatch.setattr(model_files, "package_folder", lambda module: tmp_path)
    model_files.verified_file.__wrapped__("silero_vad", card.files[0].path, card.files[0].sha256)
    data = bytearray(copy.read_bytes())
    data[len(data) // 2] ^= 1
    copy.write_bytes(data)
    with pytest.raises(model_files.ModelFileError, match="expected"):
        model_files.verified_file.__wrapped__("silero_vad", card.files[0].path, card.files[0].sha256)


def test_an_unknown_model_is_named():
    with pytest.raises(ValueError, match="no model 'gpt'"):
        model_catalogue.verified_model("gpt")


def test_a_damaged_joined_file_is_made_again(tmp_path, monkeypatch):
    monkeypatch.setenv(model_cache.CACHE_VARIABLE, str(tmp_path))
    parts = [tmp_path / "one", tmp_path / "two"]
    parts[0].write_bytes(b"half ")
    parts[1].write_bytes(b"and half")
    sha256 = model_cache.digest_bytes(b"half and half")
    joined = model_cache.joined_file(parts, sha256, "joined/model.bin")
    joined.write_bytes(b"half and HALF")
    assert model_cache.joined_file(parts, sha256, "joined/model.bin").read_bytes() == b"half and half"
    with pytest.raises(ValueError, match="expected"):
        model_cache.joined_file(parts[:1], sha256, "joined/other.bin")


def test_a_damaged_edited_graph_is_made_again(tmp_path, monkeypatch):
    from duplex_bench.speech.hibari_engine import _add_durations

    monkeypatch.setenv(model_cache.CACHE_VARIABLE, str(tmp_path))
    source = model_catalogue.verified_model("hibari")["hibari.onnx"]
    graph = model_cache.edited_graph(source, "a" * 64, "durations", _add_durations)
    whole = graph.read_bytes()
    graph.write_bytes(whole[:1000])
    assert model_cache.edited_graph(source, "a" * 64, "durations", _add_durations).read_bytes() == whole


def test_the_fallback_names_itself(monkeypatch):
    def missing():
        raise model_files.ModelFileError("not installed")

    monkeypatch.setattr(whisper_engine, "base_folder", missing)
    assert "whisper-tiny.en" in whisper_engine.whisper_with_fallback().engine_id
