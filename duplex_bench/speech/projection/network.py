"""The network of voice activity projection, run from a checkpoint's tensors by their published names.

Source: Ekstedt and Skantze 2022, with the tensors of their repository's ``VapGPT`` (MIT); the numbers are those of
maai 0.2.25's blocks, see the golden test. Sound of one speaker -> CPC (five convolutions, a recurrent net) -> a causal
convolution to 50 frames a second -> self-attention; both speakers -> layers that also attend to the other -> 256
classes. Attention is causal with linear biases (ALiBi). Every size is read from the tensors.
"""

from collections.abc import Mapping
from typing import Any, Final

import torch
from torch.nn import functional

MODEL_RATE_HZ: Final = 16_000
SAMPLES_PER_FRAME: Final = 320
# Stride and padding of the five convolutions; kernels lie in the tensors.
_CONVOLUTIONS: Final = ((5, 3), (4, 2), (2, 1), (2, 1), (2, 1))
_DOWNSAMPLE_STRIDE: Final = 2
_NORM_EPSILON: Final = 1e-5
# Gates of one unit, which tell the kind of recurrent net from the height of its tensors.
_RECURRENT: Final = {4: "LSTM", 3: "GRU", 1: "RNN"}
# Tensors that projecting does not need: the voice activity head, and the table of classes.
_UNUSED: Final = ("va_classifier.", "objective.", "VAP.")


class CheckpointError(ValueError):
    """A checkpoint does not hold the tensors of this network; the message names one that is missing or unknown."""


class VapNetwork:
    """Projects from the sound of two speakers; single-threaded where the caller sets torch so."""

    def __init__(self, tensors: Mapping[str, Any]) -> None:
        """Take the tensors and see that all that is needed is there, and nothing unknown.

        Args:
            tensors: by name, as ``VapGPT.state_dict()`` has them.

        Raises:
            CheckpointError: a tensor is missing, unknown, or of an impossible shape.
        """
        self._tensors = dict(tensors)
        self._read: set[str] = set()
        try:
            self._recurrent = self._recurrent_net()
            with torch.inference_mode():
                self(torch.zeros(2, SAMPLES_PER_FRAME * 2))
        except RuntimeError as error:
            raise CheckpointError(f"the checkpoint's tensors do not fit one another: {error}") from error
        unknown = sorted(name for name in self._tensors if name not in self._read and not name.startswith(_UNUSED))
        if unknown:
            raise CheckpointError(
                f"the checkpoint has {len(unknown)} tensors that this network does not know, {unknown[0]} among them: "
                "use a checkpoint of the stereo model at 50 frames a second (VapGPT)"
            )

    def __call__(self, waveform: Any) -> Any:
        """Class probabilities, float32 (frames, 256), of both speakers' sound, float32 (2, n) at 16 kHz.

        There is one frame for each 320 samples; n is a multiple of that.
        """
        speakers = self._encoded(waveform[:, None, :])
        for number in range(self._count("ar_channel.layers")):
            speakers = self._layer(speakers, None, f"ar_channel.layers.{number}")
        for number in range(self._count("ar.layers")):
            speakers = self._layer(speakers, speakers.flip(0), f"ar.layers.{number}")
        heads = [
            functional.gelu(self._norm(self._linear(one, f"ar.combinator.{name}"), "ar.combinator.ln"))
            for one, name in zip(speakers, ("h0_a", "h0_b"), strict=True)
        ]
        logits = self._linear(heads[0] + heads[1], "vap_head")
        return torch.softmax(logits, dim=-1)

    def _get(self, name: str) -> Any:
        self._read.add(name)
        try:
            return self._tensors[name]
        except KeyError:
            raise CheckpointError(
                f"the checkpoint has no tensor {name!r}: use a checkpoint of the stereo model (VapGPT)"
            ) from None

    def _count(self, prefix: str) -> int:
        return len({name.removeprefix(f"{prefix}.").split(".")[0] for name in self._tensors if name.startswith(prefix)})

    def _recurrent_net(self) -> Any:
        prefix = "encoder.encoder.gAR.baseNet."
        mine = {name.removeprefix(prefix): tensor for name, tensor in self._tensors.items() if name.startswith(prefix)}
        self._read |= {prefix + name for name in mine}
        hidden = self._get(f"{prefix}weight_hh_l0").shape[1]
        gates, width = divmod(mine["weight_hh_l0"].shape[0], hidden)[0], self._get(f"{prefix}weight_ih_l0").shape[1]
        if gates not in _RECURRENT:
            raise CheckpointError(f"tensor {prefix}weight_hh_l0 has the shape of no recurrent net")
        n_layers = sum(name.startswith("weight_ih_l") for name in mine)
        net = getattr(torch.nn, _RECURRENT[gates])(width, hidden, num_layers=n_layers, batch_first=True)
        net.load_state_dict(mine)
        return net.eval()

    def _encoded(self, waveform: Any) -> Any:
        """(2, 1, n) -> (2, n / 320, width)."""
        sound = waveform
        for number, (stride, padding) in enumerate(_CONVOLUTIONS):
            name = f"encoder.encoder.gEncoder.conv{number}"
            sound = functional.conv1d(
                sound, self._get(f"{name}.weight"), self._get(f"{name}.bias"), stride=stride, padding=padding
            )
            sound = functional.relu(self._channel_norm(sound, f"encoder.encoder.gEncoder.batchNorm{number}"))
        heard, _ = self._recurrent(sound.transpose(1, 2))
        kernel = self._get("encoder.downsample.1.weight")
        past = functional.pad(heard.transpose(1, 2), (kernel.shape[-1] - 1, 0))
        slower = functional.conv1d(past, kernel, self._get("encoder.downsample.1.bias"), stride=_DOWNSAMPLE_STRIDE)
        return functional.gelu(self._norm(slower.transpose(1, 2), "encoder.downsample.2.ln"))

    def _channel_norm(self, sound: Any, name: str) -> Any:
        # CPC's own: over the channels of one moment, with the unbiased variance.
        mean, variance = sound.mean(dim=1, keepdim=True), sound.var(dim=1, keepdim=True)
        scaled = (sound - mean) * torch.rsqrt(variance + _NORM_EPSILON)
        return scaled * self._get(f"{name}.weight") + self._get(f"{name}.bias")

    def _layer(self, inputs: Any, others: Any, name: str) -> Any:
        normed = self._norm(inputs, f"{name}.ln_self_attn")
        hidden = inputs + self._attention(normed, normed, f"{name}.mha")
        if others is not None:
            normed = self._norm(hidden, f"{name}.ln_src_attn")
            hidden = hidden + self._attention(normed, others, f"{name}.mha_cross")
        wide = functional.gelu(self._linear(self._norm(hidden, f"{name}.ln_ffnetwork"), f"{name}.ffnetwork.0"))
        return hidden + self._linear(wide, f"{name}.ffnetwork.3")

    def _attention(self, asking: Any, told: Any, name: str) -> Any:
        n_speakers, n_frames, width = asking.shape
        slopes = self._get(f"{name}.m")

        def split(values: Any) -> Any:
            return values.reshape(n_speakers, n_frames, len(slopes), -1).transpose(1, 2)

        query, key = split(self._linear(asking, f"{name}.query")), split(self._linear(told, f"{name}.key"))
        # Scaled by the whole width, not by that of a head, as these models were trained.
        scores = query @ key.transpose(2, 3) / width**0.5
        frames = torch.arange(n_frames, dtype=scores.dtype)
        scores = scores + slopes[:, None, None] * frames
        scores = scores.masked_fill(frames[None, :] > frames[:, None], float("-inf"))
        mixed = torch.softmax(scores, dim=-1) @ split(self._linear(told, f"{name}.value"))
        return self._linear(mixed.transpose(1, 2).reshape(n_speakers, n_frames, width), f"{name}.proj")

    def _linear(self, values: Any, name: str) -> Any:
        bias = self._get(f"{name}.bias") if f"{name}.bias" in self._tensors else None
        return functional.linear(values, self._get(f"{name}.weight"), bias)

    def _norm(self, values: Any, name: str) -> Any:
        return functional.layer_norm(values, values.shape[-1:], self._get(f"{name}.weight"), self._get(f"{name}.bias"))
