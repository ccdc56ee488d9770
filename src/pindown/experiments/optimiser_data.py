"""Images for the comparisons of optimisers: MNIST and CIFAR-10, else scikit-learn's digits.

The folder with the data is named by the environment variable ``PINDOWN_DATA``; it holds the four files
of MNIST in ``mnist`` and a file of CIFAR-10 images in ``cifar10``. Without it the digits that come with
scikit-learn take their place, and every table says so.
"""

from __future__ import annotations

import os
from dataclasses import dataclass
from functools import lru_cache
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from pindown.datasets.files import load_arrays
from pindown.datasets.images import read_idx

VARIABLE = "PINDOWN_DATA"
# TensorFlow's reader, which the source used, keeps the first images for validation: 55,000 remain.
VALIDATION = 5_000
CROPPED = 22


@dataclass(frozen=True)
class Images:
    """Training and test images with values in [0, 1].

    Attributes:
        name: Where they are from.
        train: Shape (n, side, side) or (n, 3, side, side).
        test: Shape alike.
        labels: Labels of both, or None where there is no use for them.
    """

    name: str
    train: NDArray[np.float32]
    test: NDArray[np.float32]
    labels: tuple[NDArray[np.int64], NDArray[np.int64]] | None = None


def data_folder() -> Path | None:
    """Return the folder that ``PINDOWN_DATA`` names, if there is one."""
    named = os.environ.get(VARIABLE)
    return Path(named) if named and Path(named).is_dir() else None


def digit_images(n_train: int, n_test: int, side: int = CROPPED) -> Images:
    """Return digits: MNIST cropped to 22 x 22 or resized, or the digits of scikit-learn (8 x 8).

    Args:
        n_train: How many training images, from the first one.
        n_test: How many test images.
        side: 22 crops three pixels from each side; other sizes are resized by bilinear interpolation.
    """
    return _digits(data_folder(), n_train, n_test, side)


@lru_cache(maxsize=2)  # a search for step sizes trains on the same images many times
def _digits(folder: Path | None, n_train: int, n_test: int, side: int) -> Images:
    if folder is not None and (folder / "mnist").is_dir():
        train = read_idx(folder / "mnist" / "train-images-idx3-ubyte.gz")
        test = read_idx(folder / "mnist" / "t10k-images-idx3-ubyte.gz")
        train = train[VALIDATION : VALIDATION + n_train]
        return Images(f"MNIST, {side} x {side}", _fitted(train, side), _fitted(test[:n_test], side))
    from sklearn.datasets import load_digits

    X = (load_digits().images / 16).astype(np.float32)
    n_test = min(n_test, len(X) // 4)
    return Images("scikit-learn digits, 8 x 8", X[: min(n_train, len(X) - n_test)], X[len(X) - n_test :])


def colour_images(n_train: int, n_test: int) -> Images:
    """Return colour images 32 x 32 with labels: CIFAR-10, or digits of scikit-learn enlarged to that."""
    return _colours(data_folder(), n_train, n_test)


@lru_cache(maxsize=1)
def _colours(folder: Path | None, n_train: int, n_test: int) -> Images:
    files = sorted((folder / "cifar10").glob("*.npz")) if folder is not None else []
    if files:
        names = ("x_train", "y_train", "x_test", "y_test")
        found: dict[str, Any] = load_arrays(files[0], names)
        rng = np.random.default_rng(0)  # the file may be sorted by class
        parts = []
        for part, n in (("train", n_train), ("test", n_test)):
            chosen = rng.permutation(len(found[f"x_{part}"]))[:n]
            pixels = found[f"x_{part}"][chosen].astype(np.float32) / 255
            parts.append((pixels.transpose(0, 3, 1, 2), found[f"y_{part}"][chosen].astype(np.int64)))
        (X, y), (X_test, y_test) = parts
        return Images("CIFAR-10", X, X_test, (y, y_test))
    from sklearn.datasets import load_digits

    bunch = load_digits()
    large = np.kron(bunch.images / 16, np.ones((4, 4))).astype(np.float32)
    colour, labels = np.repeat(large[:, None], 3, axis=1), bunch.target.astype(np.int64)
    n_test = min(n_test, len(colour) // 4)
    n_train = min(n_train, len(colour) - n_test)
    ends = slice(0, n_train), slice(len(colour) - n_test, None)
    return Images(
        "scikit-learn digits, enlarged",
        colour[ends[0]],
        colour[ends[1]],
        (labels[ends[0]], labels[ends[1]]),
    )


def _fitted(images: NDArray[np.uint8], side: int) -> NDArray[np.float32]:
    scaled = images.astype(np.float32) / 255
    if side == CROPPED:
        return np.ascontiguousarray(scaled[:, 3:-3, 3:-3])
    import torch

    tensor = torch.from_numpy(scaled)[:, None]
    resized = torch.nn.functional.interpolate(tensor, size=(side, side), mode="bilinear")
    return np.asarray(resized[:, 0].numpy())
