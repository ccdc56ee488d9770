"""Tables for one-class learning: ADBench files and the split that trains on half of the normal rows."""

from __future__ import annotations

from os import PathLike
from typing import NamedTuple

import numpy as np
from numpy.typing import ArrayLike, NDArray

from pindown.affine import Array
from pindown.datasets.files import load_arrays
from pindown.datasets.folder import find_folder
from pindown.errors import DataFileError
from pindown.validation import integer

# The sets of the comparison; other ADBench files can be named as well.
ADBENCH = (
    *("6_cardio", "12_fault", "14_glass", "18_Ionosphere", "23_mammography", "26_optdigits"),
    *("28_pendigits", "29_Pima", "30_satellite", "38_thyroid", "40_vowels", "43_WDBC"),
)


class OneClassSplit(NamedTuple):
    """Normal rows to train on, and rows of both kinds to test on.

    Attributes:
        train: Normal rows.
        test: The other normal rows, then all anomalies.
        anomaly: Of each test row, 1 if it is an anomaly, else 0.
    """

    train: Array
    test: Array
    anomaly: NDArray[np.int64]


def load_adbench(
    name: str, folder: str | PathLike[str] | None = None
) -> tuple[Array, NDArray[np.int64]]:
    """Read one ADBench table.

    Args:
        name: File name without ``.npz``, such as one of :data:`ADBENCH`.
        folder: Folder that holds ``adbench/``; by default the one that ``PINDOWN_DATA`` names.

    Returns:
        The rows, and 1 for anomalies, 0 for normal rows.

    Raises:
        DataFileError: If the file is missing, damaged, or its labels are not 0 and 1.
    """
    found = load_arrays(find_folder(folder, "adbench") / f"{name}.npz", ("X", "y"))
    X, y = found["X"].astype(np.float64), found["y"].ravel()
    if X.ndim != 2 or len(X) != len(y):
        raise DataFileError(
            f"{name}.npz: X has shape {X.shape}, y has {len(y)} labels; rows must match."
        )
    if not np.isin(y, (0, 1)).all():
        raise DataFileError(f"{name}.npz: labels must be 0 (normal) and 1 (anomaly).")
    if not np.isfinite(X).all():
        raise DataFileError(f"{name}.npz: X holds values that are not finite.")
    return X, y.astype(np.int64)


def one_class_split(X: ArrayLike, y: ArrayLike, seed: int = 0) -> OneClassSplit:
    """Train on a random half of the normal rows, test on the rest; scaled by the training rows alone.

    The normal rows are permuted by ``numpy.random.RandomState(seed)``, so that every method and every
    published table with this protocol sees the same halves.

    Args:
        X: Rows (n, d).
        y: 1 for anomalies, 0 for normal rows.
        seed: Which split.

    Raises:
        ValueError: If there are fewer than two normal rows, or no anomaly.

    Example:
        >>> split = one_class_split([[0.0], [2.0], [4.0], [6.0], [99.0]], [0, 0, 0, 0, 1], seed=0)
        >>> len(split.train), split.anomaly.tolist(), round(float(split.train.mean()), 12)
        (2, [0, 0, 1], 0.0)

    Livernoche et al. 2024 (DTE), the protocol of their repository; Han et al. 2022 (ADBench).
    """
    integer("seed", seed, least=0)
    rows, labels = np.asarray(X, dtype=np.float64), np.asarray(y).ravel()
    if rows.ndim != 2 or len(rows) != len(labels):
        raise ValueError(
            f"X must be (n, d) with one label per row; got {rows.shape} and {labels.shape}."
        )
    normal, anomalies = rows[labels == 0], rows[labels == 1]
    if len(normal) < 2 or len(anomalies) == 0:
        raise ValueError(
            f"a split needs two normal rows (0) and one anomaly (1); got {len(normal)} and "
            f"{len(anomalies)}."
        )
    from sklearn.preprocessing import StandardScaler

    normal = normal[np.random.RandomState(seed).permutation(len(normal))]
    half = len(normal) // 2
    scaler = StandardScaler().fit(normal[:half])
    test = np.vstack([normal[half:], anomalies])
    anomaly = np.repeat([0, 1], [len(normal) - half, len(anomalies)])
    return OneClassSplit(scaler.transform(normal[:half]), scaler.transform(test), anomaly)
