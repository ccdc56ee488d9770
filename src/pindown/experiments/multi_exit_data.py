"""Images of which few have labels, for the experiments on networks with exits.

The folder with the data is named by the environment variable ``PINDOWN_DATA``. The published data set is
CIFAR-100 (``cifar100/*.npz``, only for the paper scale); the quick scale takes MNIST at half its
size, or, if that is not there, the digits that come with scikit-learn, and its tables say so.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from functools import lru_cache
from typing import Any

import numpy as np
from numpy.typing import NDArray

from pindown.datasets.files import load_arrays
from pindown.datasets.images import ImageClasses, load_mnist, small_digits
from pindown.experiments.optimiser_data import data_folder

_HELD = 50  # images per class that the source keeps for validation


@dataclass(frozen=True, eq=False)
class FewLabels:
    """A data set with few labels.

    Attributes:
        name: Which.
        labelled: Images, (n, channels, side, side), channels scaled by the labelled ones.
        labels: Their classes.
        pool: Images without labels.
        held: Images for validation, with labels ``held_labels``.
        test: Test images, with labels ``test_labels``.
        black: What black is after scaling, (1, channels, 1, 1).
    """

    name: str
    labelled: Any
    labels: Any
    pool: Any
    held: Any
    held_labels: NDArray[np.int64]
    test: Any
    test_labels: NDArray[np.int64]
    black: Any


def few_labels(cell: Mapping[str, Any]) -> FewLabels:
    """Draw labelled, unlabelled, validation and test images, by the cell's seed."""
    import torch

    source = _images(cell["data"])
    rng = np.random.default_rng([7, cell["seed"]])
    y = source.train_labels
    groups = [rng.permutation(np.flatnonzero(y == k)) for k in np.unique(y)]
    least = min(map(len, groups))
    held = min(_HELD, least // 4)
    n = min(cell["labels"], least - held)
    parts = [(0, n), (n, n + held), (n + held, n + held + cell["pool"])]
    rows, held_rows, pool_rows = (np.concatenate([own[a:b] for own in groups]) for a, b in parts)
    test_rows = np.random.default_rng(0).permutation(len(source.test))[: cell["test"]]
    images = {
        name: _tensor(source.train[r]) for name, r in (("x", rows), ("h", held_rows), ("p", pool_rows))
    }
    centre = images["x"].mean((0, 2, 3), keepdim=True)
    scale = images["x"].std((0, 2, 3), keepdim=True)
    scaled = {name: (part - centre) / scale for name, part in images.items()}
    return FewLabels(
        source.name,
        scaled["x"],
        torch.from_numpy(y[rows]),
        scaled["p"],
        scaled["h"],
        y[held_rows],
        (_tensor(source.test[test_rows]) - centre) / scale,
        source.test_labels[test_rows],
        -centre / scale,
    )


@lru_cache(maxsize=1)
def _images(which: str) -> ImageClasses:
    folder = data_folder()
    if which == "cifar100":
        if folder is None or not (files := sorted((folder / "cifar100").glob("*.npz"))):
            raise FileNotFoundError(
                "the paper scale needs cifar100/*.npz with x_train, y_train, x_test and y_test in the "
                "folder that PINDOWN_DATA names."
            )
        found = load_arrays(files[0], ["x_train", "y_train", "x_test", "y_test"])
        labels = (found[name].astype(np.int64) for name in ("y_train", "y_test"))
        return ImageClasses("CIFAR-100", found["x_train"], found["x_test"], *labels)
    if folder is None or not (folder / "mnist").is_dir():
        return small_digits()
    whole = load_mnist(folder)
    train, test = (_halved(part) for part in (whole.train, whole.test))
    return ImageClasses("MNIST, 14 x 14", train, test, whole.train_labels, whole.test_labels)


def _halved(images: NDArray[np.uint8]) -> NDArray[np.uint8]:
    n, height, width = images.shape
    blocks = images.reshape(n, height // 2, 2, width // 2, 2)
    return np.asarray(np.round(blocks.mean(axis=(2, 4))), dtype=np.uint8)


def _tensor(images: NDArray[np.uint8]) -> Any:
    import torch

    values = images if images.ndim == 4 else images[..., None]
    return torch.from_numpy(values.astype(np.float32) / 255).permute(0, 3, 1, 2).contiguous()
