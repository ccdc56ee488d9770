"""Who lives longer? Correlations of the learned functions with survival, near pairs and all rows."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import numpy as np
from numpy.typing import NDArray

from pindown.affine import Array
from pindown.datasets.public_data import SurvivalTable, has_data, load_survival
from pindown_reproduction.experiment import Cell, Experiment, Outcome, Power, Results, SourceData
from pindown_reproduction.local_maxima._detectors import PRESET_NAMES, PRESETS, fitted, seen, verdict_of

FOLDS = 10  # a tenth of the rows is for testing, as published
LEVEL = 0.05  # of the test
# Local Pearson correlation, p-value; standard correlation, p-value.
PUBLISHED = {
    "h": (0.076, 0.021, 0.041, 0.384),
    "c": (0.020, 0.520, 0.029, 0.444),
    "h alone": (0.033, 0.405, 0.017, 0.716),
    "c alone": (0.029, 0.444, 0.031, 0.420),
    "first component": (0.047, 0.308, 0.006, 0.903),
}


def cells(settings: Mapping[str, Any]) -> list[Cell]:
    """One cell per table, preset and fold: the folds' test rows have nothing in common."""
    return [
        {
            "table": table,
            "preset": preset,
            "fold": fold,
            "seed": fold,
            "members": settings["members"],
            "epochs": settings["epochs"][preset],
        }
        for table in settings["tables"]
        for preset in settings["presets"]
        for fold in range(settings["folds"])
    ]


def survival_rows(name: str) -> tuple[SurvivalTable, bool]:
    """Return a table, or scikit-learn's diabetes data (a target without censoring) in its place."""
    if has_data("survival"):
        return load_survival(name), False
    from sklearn.datasets import load_diabetes

    X, y = load_diabetes(return_X_y=True)
    return SurvivalTable("scikit-learn's diabetes", X, y, np.ones(len(y), dtype=bool)), True


def run(cell: Cell) -> dict[str, Any]:
    """Train all variants on nine tenths of the rows; return correlations on the last tenth."""
    data, stand_in = survival_rows(cell["table"])
    order = np.random.default_rng(0).permutation(len(data.X))
    test = np.array_split(order, FOLDS)[cell["fold"]]
    train = np.setdiff1d(order, test)
    centre, scale = data.X[train].mean(axis=0), data.X[train].std(axis=0)
    Z = (data.X - centre) / np.where(scale > 0, scale, 1.0)
    joint = fitted(cell, Z[train])
    alone = {key: fitted({**cell, "ablation": key}, Z[train]) for key in ("c", "h")}
    _, _, directions = np.linalg.svd(Z[train], full_matrices=False)
    unary = {
        "h": joint.quality,
        "c": joint.score_samples,
        "h alone": alone["h"].quality,
        "c alone": alone["c"].score_samples,
        "first component": lambda rows: rows @ directions[0],
    }
    pairs = {"h": joint.compare, "h alone": alone["h"].compare}
    result: dict[str, Any] = {"data": data.name, "stand_in": stand_in}
    for rows, kind in ((test, "all rows"), (test[data.event[test]], "with event")):
        for name, function in unary.items():
            found = correlations(Z[rows], data.time[rows], function, pairs.get(name))
            result[f"{name}, {kind}"] = found
    return result


def correlations(X: Array, target: Array, unary: Any, pair: Any = None) -> list[float]:
    """Return local and standard Pearson correlation with their p-values.

    Local: each row with its nearest other row; the difference of targets against h of the two rows, or
    the difference of a function of one row.

    Example:
        >>> X = np.array([[0.0], [1.0], [3.0], [3.5]])
        >>> [round(v, 6) for v in correlations(X, 2 * X[:, 0], lambda rows: rows[:, 0])][::2]
        [1.0, 1.0]
    """
    near = nearest(X)
    local = unary(X) - unary(X[near]) if pair is None else pair(X, X[near])
    return [*_pearson(local, target - target[near]), *_pearson(unary(X), target)]


def nearest(X: Array) -> NDArray[np.int64]:
    """Return of each row the nearest other row.

    >>> nearest(np.array([[0.0], [1.0], [5.0]])).tolist()
    [1, 0, 1]
    """
    squares = (X**2).sum(axis=1)
    distances = squares[:, None] + squares[None] - 2 * X @ X.T
    np.fill_diagonal(distances, np.inf)
    return distances.argmin(axis=1)


def _pearson(a: Array, b: Array) -> tuple[float, float]:
    from scipy.stats import pearsonr

    if len(a) < 3 or np.ptp(a) == 0 or np.ptp(b) == 0:
        return 0.0, 1.0  # nothing to correlate
    found = pearsonr(a, b)
    return float(found.statistic), float(found.pvalue)


def compare(results: Results) -> Outcome:
    """Average over folds; test whether the mean local correlation is zero."""
    rows, holds = [], {}
    for table in seen(results, "table"):
        for preset in seen(results, "preset"):
            mine = [r for cell, r in results if (cell["table"], cell["preset"]) == (table, preset)]
            if not mine:
                continue
            for kind in ("all rows", "with event"):
                local = {}
                for name, known in PUBLISHED.items():
                    values = np.array([r[f"{name}, {kind}"] for r in mine])
                    p_local, p_standard = _t_test(values[:, 0]), _t_test(values[:, 2])
                    local[name] = (float(values[:, 0].mean()), p_local)
                    rows.append(
                        (
                            *(mine[0]["data"], PRESET_NAMES[preset], kind, name, *local[name]),
                            *(float(values[:, 2].mean()), p_standard, *known),
                        )
                    )
                others = max(value for name, (value, _) in local.items() if name != "h")
                holds[table, preset, kind] = local["h"][0] > others and local["h"][1] < LEVEL
    printed = [
        held for (_, preset, kind), held in holds.items() if (preset, kind) == ("paper", "all rows")
    ]
    verdict, stand_in = verdict_of(results, all(printed) if printed else None)
    parts = [
        f"{PRESET_NAMES[p]}: in {sum(h for (_, q, _), h in holds.items() if q == p)} of "
        f"{sum(q == p for _, q, _ in holds)} comparisons"
        for p in seen(results, "preset")
    ]
    return Outcome(
        verdict=verdict,
        words="The local correlation of h is the largest, and not by chance: "
        f"{'; '.join(parts)}. The source's own table of patients is not public in this form.{stand_in}",
        columns=(
            *("data", "algorithm", "rows", "function", "local", "p", "standard", "p (standard)"),
            *("published local", "published p", "published standard", "published p (standard)"),
        ),
        rows=tuple(rows),
    )


def _t_test(values: NDArray[np.float64]) -> float:
    """Return the two-sided p-value of mean zero over folds; 1 where there are too few."""
    from scipy.stats import ttest_1samp

    if len(values) < 2 or np.ptp(values) == 0:
        return 1.0
    return float(ttest_1samp(values, 0.0).pvalue)


EXPERIMENT = Experiment(
    id="local-maxima-survival",
    title="Local and standard correlation with survival",
    source="Wolf et al. 2019, Table 4",
    published="On expression data of 9,492 patients the local correlation of h with survival is "
    "0.076 (p = 0.021); those of c, of h or c trained alone, and of the first principal "
    "component are not significant, nor is any standard correlation.",
    rule="Judged on the algorithm as printed, all rows; the default preset and rows with an "
    "event are beside it. Reproduced if on every table the local correlation of h, mean "
    "over folds, is the largest and differs from 0 at the level 0.05 (t-test over folds).",
    settings={
        "quick": {
            "tables": ["gse7390"],
            "presets": list(PRESETS),
            "folds": 4,
            "members": 1,
            "epochs": {"paper": 3, "auto": 20},
        },
        "paper": {
            "tables": ["metabric_mrna", "tcga_glioma", "gse7390"],
            "presets": list(PRESETS),
            "folds": FOLDS,
            "members": None,
            "epochs": {"paper": None, "auto": None},
        },
    },
    seconds={"quick": 13},
    power=Power(
        why="The folds are the draws; tables of other patients cannot refute what was found in those."
    ),
    cells=cells,
    run=run,
    compare=compare,
    data=SourceData("the source's table of 9,492 patients"),
)
