"""Survival times with gene expression or clinical features, from NPZ files."""

from __future__ import annotations

from dataclasses import dataclass
from os import PathLike

import numpy as np
from numpy.typing import NDArray

from pindown.affine import Array
from pindown.datasets.files import load_arrays
from pindown.datasets.folder import find_folder
from pindown.errors import DataFileError

NAMES = ("metabric_mrna", "tcga_glioma", "gse7390")


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
