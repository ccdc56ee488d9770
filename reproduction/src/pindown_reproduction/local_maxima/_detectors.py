"""What the experiments on local maxima share: data with a stand-in, training, AUROC, tables of means.

Data come from the folder that ``PINDOWN_DATA`` names. Where a data set is not there, a small one that
comes with scikit-learn takes its place, every row says so, and there is no verdict: the published
numbers are about other data then.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from functools import lru_cache
from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray

from pindown.affine import Array
from pindown.datasets.public_data import (
    VARIABLE,
    ImageClasses,
    has_data,
    load_cifar10,
    load_gtsrb,
    load_mnist,
    small_digits,
)
from pindown_reproduction.experiment import Cell, Results, Verdict

PRESETS = ("paper", "auto")
PRESET_NAMES = {
    "paper": "as printed",
    "auto": "default preset",
    "networks": "default preset without density",
}
_LOADERS: dict[str, Callable[[], ImageClasses]] = {
    "mnist": load_mnist,
    "cifar10": load_cifar10,
    "gtsrb": load_gtsrb,
}
# Seeds of what is drawn besides training: subsets, noise.
SUBSET, NOISE = 1, 2


@lru_cache(maxsize=2)
def _images(name: str, _folder: str | None) -> ImageClasses:
    return _LOADERS[name]() if has_data(name) else small_digits()


def images(name: str) -> tuple[ImageClasses, bool]:
    """Return a data set, and whether it is the stand-in."""
    import os

    return _images(name, os.environ.get(VARIABLE)), not has_data(name)


def part(values: NDArray[Any], most: int | None, seed: int) -> NDArray[Any]:
    """Return a random part of the rows, or all of them if ``most`` is None."""
    if most is None or len(values) <= most:
        return values
    chosen = np.random.default_rng([SUBSET, seed]).permutation(len(values))[:most]
    return values[np.sort(chosen)]


def one_class_images(cell: Cell) -> tuple[ImageClasses, bool, Array, Array, NDArray[np.bool_]]:
    """Return data, stand-in or not, training images of the class, test images and which are in class.

    The cell names ``data``, ``class``, ``seed`` and the numbers of images ``train`` and ``test``
    (None for all); images come in [0, 1].
    """
    data, stand_in = images(cell["data"])
    label = cell["class"] % 10 if stand_in else cell["class"]
    train = part(data.train[data.train_labels == label], cell["train"], cell["seed"])
    rows = _test_rows(data.test_labels == label, cell["test"], cell["seed"])
    return data, stand_in, train / 255.0, data.test[rows] / 255.0, data.test_labels[rows] == label


def _test_rows(inside: NDArray[np.bool_], most: int | None, seed: int) -> NDArray[np.int64]:
    """Return all rows, or a part of which up to a third is in class: a plain part may have too few."""
    if most is None:
        return np.arange(len(inside))
    members = part(np.flatnonzero(inside), most // 3, seed)
    others = part(np.flatnonzero(~inside), most - len(members), seed)
    return np.sort(np.concatenate([members, others]))


def image_cell(
    settings: Mapping[str, Any], data: str, label: int, preset: str, seed: int, **more: Any
) -> Cell:
    """Return the cell that trains one preset on one class with one seed."""
    return {
        "data": data,
        "class": label,
        "preset": preset,
        "seed": seed,
        **more,
        **{key: settings[key] for key in ("train", "test", "members")},
        "epochs": settings["epochs"][preset],
    }


def fitted(cell: Cell, X: Array, **settings: Any) -> Any:
    """Return a detector trained on the rows or images.

    The cell names ``preset``, ``seed``, ``epochs`` (None for the preset's own) and, if there is one, the
    ``ablation``.
    """
    from pindown.learn.one_class import LocalMaximaDetector

    if cell.get("members"):
        settings["n_estimators"] = cell["members"]
    return LocalMaximaDetector(
        cell["preset"],
        max_epochs=cell["epochs"],
        ablation=cell.get("ablation"),
        random_state=cell["seed"],
        calibration=None,
        verbose=0,
        **settings,
    ).fit(X)


def auc(inside: ArrayLike, outside: ArrayLike) -> float:
    """Return 100 times the probability that a score of the first kind is above one of the second.

    >>> auc([3.0, 4.0], [1.0, 2.0]), auc([1.0], [1.0])
    (100.0, 50.0)
    """
    from sklearn.metrics import roc_auc_score

    a, b = np.ravel(np.asarray(inside)), np.ravel(np.asarray(outside))
    return 100 * float(roc_auc_score(np.repeat([1, 0], [len(a), len(b)]), np.concatenate([a, b])))


def noisy(X: Array, sd: float, seed: int) -> Array:
    """Return images with Gaussian noise added; values may leave [0, 1], as the source does not clip."""
    return X + sd * np.random.default_rng([NOISE, seed]).standard_normal(X.shape)


def mean(results: Results, key: str, **where: Any) -> float:
    """Return the mean of one number over the cells that have these settings; NaN if there is none.

    >>> mean([({"a": 1}, {"x": 2.0}), ({"a": 1}, {"x": 4.0}), ({"a": 2}, {"x": 9.0})], "x", a=1)
    3.0
    """
    found = [r[key] for r in (_matching(results, where)) if r.get(key) is not None]
    return float(np.mean(found)) if found else float("nan")


def spread(results: Results, key: str, **where: Any) -> float:
    """Return the standard deviation over the cells that have these settings; NaN if there is none."""
    found = [r[key] for r in (_matching(results, where)) if r.get(key) is not None]
    return float(np.std(found)) if found else float("nan")


def _matching(results: Results, where: Mapping[str, Any]) -> Iterable[Mapping[str, Any]]:
    return (r for cell, r in results if all(cell.get(key) == value for key, value in where.items()))


def seen(results: Results, key: str) -> list[Any]:
    """Return the values of one setting, in the order of the cells."""
    return list(dict.fromkeys(cell[key] for cell, _ in results))


def verdict_of(results: Results, holds: bool | None) -> tuple[Verdict, str]:
    """Return the verdict, and a sentence about stand-ins if there are any.

    Args:
        results: All cells; results with ``stand_in`` are not about the published data.
        holds: What the rule says; None if cells it needs are missing.
    """
    if any(r.get("stand_in") for _, r in results):
        names = ", ".join(sorted({r["data"] for _, r in results if r.get("stand_in")}))
        return (
            "no published number",
            f" Run on {names} in place of the data: set {VARIABLE} to a folder.",
        )
    if holds is None:
        return "no published number", " Cells that the rule needs are missing."
    return ("reproduced" if holds else "not reproduced"), ""


def seconds() -> float:
    """Return CPU seconds of this process."""
    import time

    return time.process_time()
