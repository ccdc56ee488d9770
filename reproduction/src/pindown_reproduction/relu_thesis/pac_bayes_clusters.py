r"""The mixture bound beside the spectral one on two clusters of points.

Points in n dimensions around the all-ones vector and a times it, normal with unit variance and kept
within 1 of a centre in every coordinate; networks without biases of several depths.

Mukherjee 2020, section 6.4.2.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray
from scipy.special import ndtr, ndtri

from pindown.affine import Array
from pindown_reproduction.experiment import Cell, Experiment, Outcome, Results
from pindown_reproduction.relu_thesis import _pac_bayes as protocol

if TYPE_CHECKING:
    from matplotlib.figure import Figure

_NORM_PER_ROOT = {20: 50.0, 40: 100.0}  # the source's bounds on inputs


def two_clusters(
    n_samples: int, dimension: int, separation: float, rng: np.random.Generator
) -> tuple[Array, NDArray[np.int64]]:
    """Draw half of the points around each centre.

    Coordinates are independent, so each is drawn from its own truncated normal distribution: rejecting
    whole points would keep one in two thousand.

    >>> X, y = two_clusters(10, 20, 6.0, np.random.default_rng(0))
    >>> bool(np.all(np.abs(X - np.where(y, 6.0, 1.0)[:, None]) <= 1))
    True
    """
    y = np.arange(n_samples) % 2
    u = rng.uniform(ndtr(-1.0), ndtr(1.0), (n_samples, dimension))
    return np.where(y, separation, 1.0)[:, None] + ndtri(u), y.astype(np.int64)


def cells(settings: Mapping[str, Any]) -> list[Cell]:
    """One cell per dimension, separation, depth and seed."""
    return [
        {**cell, "dimension": n}
        for n in settings.get("dimensions", [settings["fixed"]["dimension"]])
        for cell in protocol.grid(settings, "separations", "separation")
    ]


def run(cell: Cell) -> dict[str, Any]:
    """Train and compute the bounds for one cell."""
    d, n = cell["depth"], cell["dimension"]
    rng = np.random.default_rng([cell["seed"], int(10 * cell["separation"])])
    X, y = two_clusters(cell["points"], n, cell["separation"], rng)
    norm = _NORM_PER_ROOT[n]
    epochs = cell.get("epochs") or (5 if d < 5 else 8)  # as printed, where nothing else is said
    task = protocol.Task(X, y, norm, batch=100, epochs=epochs, enough=cell.get("enough", 1.0))
    widths = (n, *[cell["width"]] * (d - 1), 2)
    return protocol.measure(task, widths, cell["cluster"], cell["seed"])


def compare(results: Results) -> Outcome:
    """Compare both bounds for every separation and depth."""
    return protocol.compare(results, ("dimension", "separation", "depth"))


def draw(results: Results) -> Figure:
    """Draw both bounds over the depth."""
    return protocol.draw(results, "separation")


EXPERIMENT = Experiment(
    id="pac-bayes-clusters",
    title="A prior around the start against a prior around zero, on two clusters",
    source="Mukherjee 2020, section 6.4.2 and Figure 6.4.2",
    published="The mixture bound is below the spectral one by a factor at every depth from 2 to 8, for "
    "separations 6 and 10 in 20 dimensions (curves on a logarithmic scale; no numbers; far above 1).",
    rule="Reproduced if with both theorems in their corrected forms, at the same confidence and margin "
    "(the smallest of the fixed grid that is nice), the mean of the mixture bound over seeds is below "
    "that "
    "of the spectral bound in every setting.",
    settings={
        "quick": {
            "separations": [6, 10],
            "depths": [2, 3, 4],
            "seeds": 1,
            "fixed": {"dimension": 20, "points": 1000, "width": 100, "cluster": 5},
        },
        "decisive": {
            "separations": [6, 10],
            "dimensions": [20, 40],
            "depths": [2, 4, 8],
            "seeds": 3,
            "fixed": {
                "dimension": 20,
                "points": 1000,
                "width": 100,
                "cluster": 5,
                "epochs": 60,
                "enough": 0.999,
            },
        },
        "paper": {
            "separations": [2, 4, 6, 8, 10],
            "depths": [2, 3, 4, 5, 6, 7, 8],
            "seeds": 10,
            "fixed": {"dimension": 20, "points": 1000, "width": 800, "cluster": 25},
        },
    },
    seconds={"quick": 7.5, "decisive": 150},
    power=protocol.POWER,
    remark="All values are vacuous. At quick scale printed forms win in 2 of 6 settings, corrected "
    "ones at the same"
    " margin in 6 of 6 (1.7 to 5 times lower), sharp ones in 6 of 6 (3.6 to 8 times). At the "
    "smallest margin that is nice, 69 to 100 % of the sample already counts as wrong, so the "
    "win of the corrected form means little; what helps is the prior around the start. The "
    "rule first let each bound choose its own margin; the mixture bound then sat where "
    "everything is wrong, so both are now compared at one margin.",
    cells=cells,
    run=run,
    compare=compare,
    draw=draw,
)
