"""Images with classes for one-class learning: MNIST and its like (IDX), CIFAR-10 and GTSRB (NPZ).

The files are untrusted, so what a header claims is checked against what is there before memory is taken.
"""

from __future__ import annotations

import gzip
import math
import zlib
from dataclasses import dataclass
from os import PathLike
from pathlib import Path

import numpy as np
from numpy.typing import NDArray

from pindown.datasets.files import MAX_BYTES, load_arrays
from pindown.datasets.folder import find_folder
from pindown.errors import DataFileError

_IDX_BYTES = b"\x00\x00\x08"  # two zeros, then the code for unsigned bytes
_MOST_AXES = 4


@dataclass(frozen=True, eq=False)
class ImageClasses:
    """Training and test images with the class of each.

    Attributes:
        name: Which data set.
        train: Bytes, (n, side, side) grey or (n, side, side, 3) colour.
        test: Alike.
        train_labels: Classes, whole numbers from 0.
        test_labels: Alike; may hold classes that training has not.
        train_groups: Images of one number show one physical thing: never part them in a split.
    """

    name: str
    train: NDArray[np.uint8]
    test: NDArray[np.uint8]
    train_labels: NDArray[np.int64]
    test_labels: NDArray[np.int64]
    train_groups: NDArray[np.int64] | None = None

    def __post_init__(self) -> None:
        for images, labels, part in (
            (self.train, self.train_labels, "train"),
            (self.test, self.test_labels, "test"),
        ):
            if images.ndim not in (3, 4) or images.dtype != np.uint8:
                raise DataFileError(
                    f"{self.name}: {part} images must be bytes (n, height, width[, 3]); "
                    f"got {images.dtype} of shape {images.shape}."
                )
            if labels.shape != (len(images),):
                raise DataFileError(
                    f"{self.name}: {len(images)} {part} images but labels of shape {labels.shape}."
                )
        if self.train.shape[1:] != self.test.shape[1:]:
            raise DataFileError(f"{self.name}: train and test images differ in size.")

    @property
    def image_shape(self) -> tuple[int, ...]:
        """Shape of one image: (height, width), or (height, width, 3)."""
        return tuple(int(n) for n in self.train.shape[1:])

    def __str__(self) -> str:
        size = " x ".join(map(str, self.image_shape))
        return f"{self.name}: {len(self.train):,} + {len(self.test):,} images, {size}"


def load_mnist(folder: str | PathLike[str] | None = None, *, name: str = "mnist") -> ImageClasses:
    """Read MNIST, or a data set in the same four files.

    Args:
        folder: Folder that holds ``mnist/`` with the four IDX files, with or without ``.gz``;
            by default the one that ``PINDOWN_DATA`` names.
        name: The sub-folder: ``"fashion-mnist"`` reads Fashion-MNIST.

    Raises:
        DataFileError: If a file is missing, damaged or of another kind.
    """
    place = find_folder(folder, name)
    parts = {
        f"{part}-{kind}": read_idx(_plain_or_gz(place / f"{part}-{kind}"))
        for part in ("train", "t10k")
        for kind in ("images-idx3-ubyte", "labels-idx1-ubyte")
    }
    return ImageClasses(
        {"mnist": "MNIST", "fashion-mnist": "Fashion-MNIST"}.get(name, name),
        parts["train-images-idx3-ubyte"],
        parts["t10k-images-idx3-ubyte"],
        parts["train-labels-idx1-ubyte"].astype(np.int64),
        parts["t10k-labels-idx1-ubyte"].astype(np.int64),
    )


def load_cifar10(folder: str | PathLike[str] | None = None) -> ImageClasses:
    """Read CIFAR-10, or a part of it, from ``cifar10/*.npz`` with x_train, y_train, x_test and y_test.

    Raises:
        DataFileError: If the file is missing or damaged.
    """
    return _from_npz("cifar10", "CIFAR-10", folder)


def load_gtsrb(folder: str | PathLike[str] | None = None) -> ImageClasses:
    """Read German traffic signs from ``gtsrb/*.npz``; ``train_groups`` are the tracks of one sign.

    Raises:
        DataFileError: If the file is missing or damaged.
    """
    return _from_npz("gtsrb", "GTSRB", folder, groups="train_track")


def small_digits(test_share: float = 0.3) -> ImageClasses:
    """Return the 1,797 digits of 8 x 8 pixels that come with scikit-learn: no file is needed.

    Args:
        test_share: Share of the images, the last ones, that are the test part.

    Example:
        >>> print(small_digits())
        scikit-learn's digits: 1,258 + 539 images, 8 x 8
    """
    from sklearn.datasets import load_digits

    bunch = load_digits()
    pixels = np.round(bunch.images * (255 / 16)).astype(np.uint8)
    labels = bunch.target.astype(np.int64)
    cut = len(pixels) - int(test_share * len(pixels))
    return ImageClasses("scikit-learn's digits", pixels[:cut], pixels[cut:], labels[:cut], labels[cut:])


def read_idx(path: str | PathLike[str]) -> NDArray[np.uint8]:
    """Read an IDX file of bytes, compressed or not.

    Raises:
        DataFileError: If the file is missing, damaged, too large or of another kind.
    """
    file = Path(path)
    if not file.is_file():
        raise DataFileError(f"{file.name} cannot be read: there is no data file {str(file)!r}.")
    try:
        with (gzip.open if file.suffix == ".gz" else open)(file, "rb") as stream:
            head = stream.read(4)
            if len(head) < 4 or head[:3] != _IDX_BYTES or not 1 <= head[3] <= _MOST_AXES:
                raise DataFileError(f"{file.name} is not an IDX file of bytes.")
            axes = stream.read(4 * head[3])
            shape = tuple(int(n) for n in np.frombuffer(axes, ">u4"))
            claimed = math.prod(shape)
            if claimed > MAX_BYTES:
                raise DataFileError(f"{file.name} claims {claimed:,} bytes; the most is {MAX_BYTES:,}.")
            body = stream.read(claimed + 1)
    except (OSError, EOFError, ValueError, zlib.error) as error:
        if isinstance(error, DataFileError):
            raise
        raise DataFileError(f"{file.name} cannot be read: {error}") from None
    if len(shape) != head[3] or len(body) != claimed:
        raise DataFileError(f"{file.name} claims {claimed:,} bytes and has {len(body):,}.")
    return np.frombuffer(body, np.uint8).reshape(shape)


def _plain_or_gz(path: Path) -> Path:
    compressed = path.with_name(f"{path.name}.gz")
    return compressed if compressed.is_file() or not path.is_file() else path


def _from_npz(
    place: str, name: str, folder: str | PathLike[str] | None, groups: str | None = None
) -> ImageClasses:
    files = sorted(find_folder(folder, place).glob("*.npz"))
    if not files:
        raise DataFileError(f"there is no .npz file in the folder {place!r} of the data folder.")
    wanted = ["x_train", "y_train", "x_test", "y_test", *([groups] if groups else [])]
    found = load_arrays(files[0], wanted)
    return ImageClasses(
        name,
        found["x_train"],
        found["x_test"],
        found["y_train"].astype(np.int64),
        found["y_test"].astype(np.int64),
        found[groups].astype(np.int64) if groups else None,
    )
