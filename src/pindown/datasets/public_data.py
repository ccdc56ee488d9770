"""Public data sets, from a folder that the caller or ``PINDOWN_DATA`` names; nothing is fetched.

Images with classes (MNIST and its like, CIFAR-10, GTSRB), tables with anomalies (ADBench) and the split
that trains on half of the normal rows, survival times. The files are untrusted, so what a header claims
is checked against what is there before memory is taken.
"""

from __future__ import annotations

import gzip
import math
import os
import zlib
from dataclasses import dataclass
from os import PathLike
from pathlib import Path
from typing import NamedTuple

import numpy as np
from numpy.typing import ArrayLike, NDArray

from pindown.affine import Array
from pindown.datasets._limits import MAX_AXES, MAX_BYTES
from pindown.datasets.files import load_arrays
from pindown.errors import DataFileError
from pindown.validation import integer

VARIABLE = "PINDOWN_DATA"
_IDX_BYTES = b"\x00\x00\x08"  # two zeros, then the code for unsigned bytes
# The sets of the comparison; other ADBench files can be named as well.
ADBENCH = (
    *("6_cardio", "12_fault", "14_glass", "18_Ionosphere", "23_mammography", "26_optdigits"),
    *("28_pendigits", "29_Pima", "30_satellite", "38_thyroid", "40_vowels", "43_WDBC"),
)
NAMES = ("metabric_mrna", "tcga_glioma", "gse7390")


def find_folder(folder: str | PathLike[str] | None, name: str) -> Path:
    """Return the folder of one data set.

    Args:
        folder: Folder with one sub-folder per data set; None takes what ``PINDOWN_DATA`` names.
        name: The sub-folder.

    Raises:
        DataFileError: If no folder is named, or it has no such sub-folder.

    >>> from tempfile import TemporaryDirectory
    >>> with TemporaryDirectory() as folder:
    ...     Path(folder, "mnist").mkdir()
    ...     find_folder(folder, "mnist").name
    'mnist'
    """
    named = os.environ.get(VARIABLE) if folder is None else folder
    if not named:
        raise DataFileError(
            f"no folder with data is named: pass folder=..., or set {VARIABLE} to one with {name}/."
        )
    found = Path(named) / name
    if not found.is_dir():
        raise DataFileError(
            f"there is no folder {name!r} in {str(named)!r}; it is to hold the files of {name}."
        )
    return found


def has_data(name: str, folder: str | PathLike[str] | None = None) -> bool:
    """Return whether the folder of a data set is there.

    >>> has_data("mnist", folder="nowhere")
    False
    """
    try:
        find_folder(folder, name)
    except DataFileError:
        return False
    return True


@dataclass(frozen=True, eq=False)
class ImageClasses:
    """Training and test images with the class of each.

    Attributes:
        name: Which data set.
        train: Bytes, (n, side, side) grey or (n, side, side, 3) colour.
        test: Bytes of the same shape.
        train_labels: Classes, integers from 0.
        test_labels: Classes, integers from 0; may hold some that training has not.
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
            if len(head) < 4 or head[:3] != _IDX_BYTES or not 1 <= head[3] <= MAX_AXES:
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


class OneClassSplit(NamedTuple):
    """Normal rows to train on, and rows of both kinds to test on.

    Attributes:
        train: Normal rows.
        test: The other normal rows, then all anomalies.
        anomaly: For each test row, 1 if it is an anomaly, else 0.
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


@dataclass(frozen=True, eq=False)
class SurvivalTable:
    """Rows of patients.

    Attributes:
        name: Which data set.
        X: Features (n, d).
        time: Time to the event, or to the last time the patient was seen; not negative.
        event: Whether the event was seen; False where the time is censored.
    """

    name: str
    X: Array
    time: Array
    event: NDArray[np.bool_]

    def __str__(self) -> str:
        return f"{self.name}: {len(self.X):,} x {self.X.shape[1]}, {self.event.mean():.1%} with an event"


def load_survival(name: str, folder: str | PathLike[str] | None = None) -> SurvivalTable:
    """Read one of the survival tables; rows with a negative time or a missing value are left out.

    Args:
        name: ``"metabric_mrna"``, ``"tcga_glioma"`` or ``"gse7390"``.
        folder: Folder that holds ``survival/``; by default the one that ``PINDOWN_DATA`` names.

    Raises:
        DataFileError: If the file is missing, damaged, or its arrays do not fit together.
    """
    if name not in NAMES:
        raise DataFileError(f"survival tables are {', '.join(NAMES)}; got {name!r}.")
    found = load_arrays(find_folder(folder, "survival") / f"{name}.npz", ("X", "time", "event"))
    X = found["X"].astype(np.float64)
    time, event = found["time"].astype(np.float64).ravel(), found["event"].ravel() == 1
    if X.ndim != 2 or len({len(X), len(time), len(event)}) != 1:
        raise DataFileError(
            f"{name}.npz: X, time and event need as many rows; got {len(X)}, {len(time)}, {len(event)}."
        )
    kept = (time >= 0) & np.isfinite(time) & np.isfinite(X).all(axis=1)
    if not kept.any():
        raise DataFileError(f"{name}.npz holds no usable rows.")
    return SurvivalTable(name, X[kept], time[kept], event[kept])
