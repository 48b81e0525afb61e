"""Voice activity projection over a recording: weights from a file, the network in torch, stretches that overlap."""

import importlib.metadata
import importlib.util
from collections.abc import Iterator
from functools import cached_property
from pathlib import Path
from typing import Any

import numpy as np

from duplex_bench.audio.resample import resample
from duplex_bench.speech.interfaces import Samples
from duplex_bench.speech.projection.classes import FUTURE_BINS, NOW_BINS, first_speakers_share
from duplex_bench.speech.projection.settings import FloorProjection, ProjectionSettings
from duplex_bench.storage.digests import digest_file

_VERSION = 1
# Older checkpoints: a training wrapper around the network, and a head of another name.
_WRAPPER, _OLD_HEAD = "net.", "vap_head.projection_head."


class ProjectionError(ValueError):
    """The projection cannot be made; the message says what is missing and what to do."""


class VoiceActivityProjection:
    """A projection model as published for the stereo VAP model, by the path of its weights. Needs torch."""

    def __init__(self, settings: ProjectionSettings) -> None:
        """Look whether weights and torch are there; they are loaded when first needed.

        Raises:
            ProjectionError: no such file, or torch is not installed.
        """
        self._path = Path(settings.weights)
        if not self._path.is_file():
            raise ProjectionError(
                f"speech.projection.weights {settings.weights!r} is no file: name a checkpoint, or leave it empty "
                "to do without projection flags"
            )
        if importlib.util.find_spec("torch") is None:
            raise ProjectionError(
                "the activity projection needs torch: pip install 'duplex-bench[models]', or leave "
                "speech.projection.weights empty"
            )
        self._settings = settings

    @cached_property
    def engine_id(self) -> str:
        """Version, digest of the weights, stretches, and version of torch."""
        torch = importlib.metadata.version("torch")
        cut = f"context={self._settings.context_s:g} step={self._settings.step_s:g}"
        return f"vap/{_VERSION} weights@{digest_file(self._path)[:12]} {cut} torch=={torch}"

    def project(self, samples: Samples, sample_rate_hz: int) -> FloorProjection:
        """Who holds the floor next, 50 times a second.

        Args:
            samples: (n, 2) in [-1, 1], one speaker a channel, as recorded: the model was given no normalised sound.
            sample_rate_hz: their rate.

        Raises:
            ValueError: another shape, or samples that are no numbers.
            CheckpointError: the weights are not of this network.
        """
        if samples.ndim != 2 or samples.shape[1] != 2:
            raise ValueError(f"samples have shape {samples.shape}: two channels, (n, 2), are wanted")
        if not np.isfinite(samples).all():
            raise ValueError("samples hold NaN or infinity")
        import torch

        from duplex_bench.speech.projection import network

        heard = [resample(np.ascontiguousarray(one), sample_rate_hz, network.MODEL_RATE_HZ) for one in samples.T]
        waveform = torch.from_numpy(np.stack(heard).astype(np.float32))
        n_frames = waveform.shape[1] // network.SAMPLES_PER_FRAME
        rate = network.MODEL_RATE_HZ / network.SAMPLES_PER_FRAME
        parts = [np.zeros((0, 2), dtype=np.float32)]
        with torch.inference_mode():
            for first, start, stop in _stretches(n_frames, self._settings, rate):
                sound = waveform[:, first * network.SAMPLES_PER_FRAME : stop * network.SAMPLES_PER_FRAME]
                classes = self._network(sound)[start - first :].numpy()
                parts.append(
                    np.stack([first_speakers_share(classes, bins) for bins in (NOW_BINS, FUTURE_BINS)], axis=1)
                )
        shares = np.concatenate(parts)
        return FloorProjection(rate, np.ascontiguousarray(shares[:, 0]), np.ascontiguousarray(shares[:, 1]))

    @cached_property
    def _network(self) -> Any:
        import torch

        from duplex_bench.speech.projection.network import VapNetwork

        # As every engine: one thread, so that the numbers are the same each time.
        torch.set_num_threads(1)
        return VapNetwork(read_tensors(self._path))


def read_tensors(path: Path) -> dict[str, Any]:
    """The tensors of a checkpoint by their present names; only tensors are read from the file, no code is run.

    Raises:
        ProjectionError: no checkpoint, or one that holds more than tensors and plain data.
    """
    import pickle

    import torch

    try:
        found = torch.load(path, map_location="cpu", weights_only=True)
    except pickle.UnpicklingError as error:
        raise ProjectionError(
            f"{path}: holds objects besides tensors, which are not loaded from a file that could run code. Save its "
            f"tensors alone: torch.save(torch.load(path, weights_only=False)['state_dict'], new_path) ({error})"
        ) from error
    except (RuntimeError, EOFError, OSError) as error:
        raise ProjectionError(f"{path}: no checkpoint that torch can read: {error}") from error
    if isinstance(found, dict) and isinstance(found.get("state_dict"), dict):
        found = found["state_dict"]
    if not isinstance(found, dict) or not all(isinstance(value, torch.Tensor) for value in found.values()):
        raise ProjectionError(f"{path}: holds no table of tensors: name a checkpoint's state_dict")
    return {
        str(name).removeprefix(_WRAPPER).replace(_OLD_HEAD, "vap_head."): value.to(torch.float32)
        for name, value in found.items()
    }


def _stretches(n_frames: int, settings: ProjectionSettings, rate_hz: float) -> Iterator[tuple[int, int, int]]:
    """(first frame heard, first frame kept, end) of each stretch; the first one keeps its context too."""
    context, step = round(settings.context_s * rate_hz), round(settings.step_s * rate_hz)
    start, stop = 0, min(context + step, n_frames)
    while start < n_frames:
        yield max(start - context, 0), start, stop
        start, stop = stop, min(stop + step, n_frames)
