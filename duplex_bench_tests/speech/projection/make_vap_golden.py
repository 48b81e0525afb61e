"""Makes vap_golden.npz from the blocks of maai 0.2.25 (MIT), put together as VapGPT of VoiceActivityProjection is.

Run where torch and einops are, with the folder of the unpacked wheel: ``python make_vap_golden.py <folder>/maai``.
"""

import importlib
import sys
import types
from pathlib import Path

import numpy as np
import torch
from torch import nn

WIDTH, HEADS, FRAMES = 8, 4, 24

# The package's own import pulls audio devices; its blocks do not.
package = types.ModuleType("maai")
package.__path__ = [sys.argv[1]]
sys.modules["maai"] = package
blocks, parts, objective = (
    importlib.import_module(f"maai.{name}") for name in ("modules", "encoder_components", "objective")
)


class Encoder(nn.Module):
    def __init__(self):
        super().__init__()
        self.encoder = parts.CPCModel(
            parts.CPCEncoder(WIDTH, "layerNorm"), parts.CPCAR(WIDTH, WIDTH, False, 2, mode="LSTM")
        )
        self.downsample = parts.get_cnn_layer(dim=WIDTH, kernel=[5], stride=[2], dilation=[1], activation="GELU")
        # The streaming package leaves out the padding that VapGPT has.
        self.downsample[1] = parts.CConv1d(WIDTH, WIDTH, kernel_size=5, stride=2, dilation=1)

    def forward(self, sound):
        heard = self.encoder.gAR(self.encoder.gEncoder(sound).transpose(1, 2))
        return self.downsample(heard)


class Projection(nn.Module):
    def __init__(self):
        super().__init__()
        common = {"dim": WIDTH, "dff_k": 3, "num_heads": HEADS, "dropout": 0.1}
        self.encoder = Encoder()
        self.ar_channel = blocks.GPT(num_layers=1, **common)
        self.ar = blocks.GPTStereo(num_layers=3, **common)
        self.objective = objective.ObjectiveVAP(bin_times=[0.2, 0.4, 0.6, 0.8], frame_hz=50)
        self.va_classifier = nn.Linear(WIDTH, 1)
        self.vap_head = nn.Linear(WIDTH, 256)

    def forward(self, sound):
        one, two = (first(self.ar_channel(self.encoder(sound[:, [n]])))["x"] for n in (0, 1))
        return self.vap_head(first(self.ar(one, two))["x"])


def first(result):
    return result[0] if isinstance(result, tuple) else result


torch.manual_seed(20261130)
model = Projection().eval()
with torch.no_grad():
    for name, parameter in model.named_parameters():
        if name.endswith(".m") or "codebook" in name:
            continue
        # Far from the small initial values, so that each part moves the result.
        if parameter.ndim > 1:
            parameter.normal_(0, 0.5)
        else:
            parameter.add_(torch.randn_like(parameter) * 0.3)
at_s = np.arange(320 * FRAMES) / 16000
noise = np.random.default_rng(7).normal(0, 0.005, (2, len(at_s)))
tones = [0.3 * np.sin(2 * np.pi * 220 * at_s) * (at_s < 0.2), 0.3 * np.sin(2 * np.pi * 330 * at_s) * (at_s > 0.25)]
sound = np.rint(32768 * (np.stack(tones) + noise)).astype(np.int16)
with torch.no_grad():
    probabilities = model(torch.from_numpy(sound.astype(np.float32) / 32768)[None]).softmax(-1)
    shares = {
        name: model.objective.probs_next_speaker_aggregate(probabilities, *bins)[0].numpy()
        for name, bins in (("now", (0, 1)), ("future", (2, 3)))
    }
tensors = {name: tensor.numpy() for name, tensor in model.state_dict().items()}
np.savez_compressed(
    Path(__file__).parent / "vap_golden.npz",
    waveform=sound,
    probabilities=probabilities[0].numpy(),
    codes=tensors.pop("objective.codebook.emb.weight").astype(np.int8),
    **shares,
    **{f"tensor:{name}": array for name, array in tensors.items()},
)
