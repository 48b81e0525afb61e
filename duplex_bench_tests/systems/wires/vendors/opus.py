"""sphn, the codec library of servers of Moshi's kind: ``read FROM TO`` decodes to float32, ``write`` encodes."""

import sys
from pathlib import Path

import numpy as np
import sphn

verb, source, target = sys.argv[1], Path(sys.argv[2]), Path(sys.argv[3])
if verb == "read":
    data, reader = source.read_bytes(), sphn.OpusStreamReader(24_000)
    parts = [reader.append_bytes(data[at : at + 500]) for at in range(0, len(data), 500)]
    np.concatenate([part for part in parts if part is not None]).astype("<f4").tofile(target)
else:
    audio, writer = np.fromfile(source, dtype="<f4"), sphn.OpusStreamWriter(24_000)
    target.write_bytes(b"".join(writer.append_pcm(audio[at : at + 1920]) for at in range(0, len(audio), 1920)))
