"""A small projection network with random weights, whose numbers were made by the vendor's own blocks."""

from pathlib import Path

import numpy as np
import pytest


@pytest.fixture(scope="session")
def golden():
    """Tensors, sound and results of ``make_vap_golden.py``."""
    with np.load(Path(__file__).parent / "vap_golden.npz") as stored:
        return dict(stored)


@pytest.fixture(scope="session")
def golden_tensors(golden):
    torch = pytest.importorskip("torch")
    return {
        name.removeprefix("tensor:"): torch.from_numpy(array)
        for name, array in golden.items()
        if name.startswith("tensor:")
    }


@pytest.fixture
def checkpoint(golden_tensors, tmp_path):
    """The tensors as a file, as the vendor saves them."""
    import torch

    path = tmp_path / "vap.pt"
    torch.save(golden_tensors, path)
    return path
