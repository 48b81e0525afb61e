import tracemalloc
from pathlib import Path

import numpy as np
import pytest
import soundfile

from duplex_bench.audio.files import blocks, read
from duplex_bench.audio.gate import gate, stream_intervals

pytestmark = pytest.mark.unit

RATE_HZ = 8000


@pytest.fixture
def twenty_minutes(tmp_path: Path) -> Path:
    """Ten seconds of noise, ten of silence, and so on, each stretch cut 7 samples short of a round number."""
    path = tmp_path / "long.wav"
    noise = (np.random.default_rng(0).standard_normal(10 * RATE_HZ - 7) * 3000).astype(np.int16)
    with soundfile.SoundFile(path, "w", RATE_HZ, 1, "PCM_16") as stream:
        for part in range(120):
            stream.write(noise * (part % 2))
    return path


def test_the_gate_of_a_streamed_file_equals_that_of_the_whole_in_a_tenth_of_its_memory(twenty_minutes: Path) -> None:
    tracemalloc.start()
    streamed = stream_intervals((block[:, 0] for block in blocks(twenty_minutes, 5.0)), RATE_HZ)
    _, peak_bytes = tracemalloc.get_traced_memory()
    tracemalloc.stop()
    whole, _ = read(twenty_minutes)
    np.testing.assert_array_equal(streamed, gate(whole[:, 0], RATE_HZ))
    assert len(streamed) == 60
    assert peak_bytes < whole.nbytes / 10
