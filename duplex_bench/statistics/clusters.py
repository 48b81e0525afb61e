"""Values by cluster: dropping what is missing, and numbering clusters."""

from typing import Any

import numpy as np
import numpy.typing as npt

Floats = npt.NDArray[np.float64]


def present(values: npt.ArrayLike, clusters: npt.ArrayLike) -> tuple[Floats, npt.NDArray[Any]]:
    """Rows without NaN: values float64 (m,) or (m, 2) and their cluster labels (m,).

    Raises:
        ValueError: lengths differ, or a value is infinite.
    """
    numbers = np.asarray(values, dtype=np.float64)
    labels = np.asarray(clusters)
    if labels.ndim != 1 or numbers.ndim not in (1, 2) or len(numbers) != len(labels):
        raise ValueError(f"values {numbers.shape} and clusters {labels.shape}: give one cluster for each row")
    if np.isinf(numbers).any():
        raise ValueError(f"value {int(np.argwhere(np.isinf(numbers))[0, 0])} is infinite: give NaN for a missing value")
    keep = ~np.isnan(numbers) if numbers.ndim == 1 else ~np.isnan(numbers).any(axis=1)
    return numbers[keep], labels[keep]


def cluster_sums(values: npt.ArrayLike, clusters: npt.ArrayLike) -> tuple[Floats, npt.NDArray[np.int64]]:
    """Sum and number of present values (m,) in each cluster, in the order of the sorted labels."""
    numbers, labels = present(values, clusters)
    names, index = np.unique(labels, return_inverse=True)
    sums = np.bincount(index, numbers, len(names)).astype(np.float64)
    return sums, np.bincount(index, minlength=len(names)).astype(np.int64)
