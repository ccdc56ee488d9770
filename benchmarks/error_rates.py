"""Realised error rates of conformal p-values: false alarms among members, false discoveries, power.

    python benchmarks/error_rates.py
    python benchmarks/error_rates.py --detectors iforest knn --sets 29_Pima wine

On each of the 12 ADBench tables and four sets of scikit-learn's, each of 20 times: half of the members,
at random, to fit and calibrate on, the other half and anomalies to judge. The members are split anew
each time, so those that are judged are exchangeable with those of the calibration, whatever they are. A
batch for the false discovery rate has all judged members and one anomaly for every nine of them, as far
as there are any.

``local-maxima`` is what ``LocalMaximaDetector.p_values`` uses: a detector of one network that has not
seen the held-out rows. Each finished run is a line of error_rates.jsonl and is not repeated. The summary
says for each detector and calibration in which sets a rate is more than three standard errors off;
standard errors of rates are those of ranks (beta-binomial), of discoveries those of the 20 runs.
"""

from __future__ import annotations

import argparse
import json
import math
import time
import warnings
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np
from sklearn import datasets
from sklearn.ensemble import IsolationForest

from pindown.datasets.public_data import ADBENCH, load_adbench
from pindown.learn import ConformalDetector, LocalMaximaDetector, benjamini_hochberg

ALPHAS, QS = (0.01, 0.05, 0.1), (0.05, 0.1, 0.2)
OWN = {
    "breast cancer": (datasets.load_breast_cancer, 1),
    "wine": (datasets.load_wine, 1),
    "iris": (datasets.load_iris, 0),
    "digits": (datasets.load_digits, 3),
}
SPLITS, FOLDS = 20, 5
RESULTS = Path(__file__).with_suffix(".jsonl")


def rows_of(name: str) -> tuple[np.ndarray, np.ndarray]:
    """Return members and anomalies of a set; of scikit-learn's, one class against the others."""
    if name in OWN:
        load, label = OWN[name]
        X, y = load(return_X_y=True)
        return X[y == label], X[y != label]
    X, y = load_adbench(name)
    return X[y == 0], X[y == 1]


def detector(name: str, seed: int) -> Any:
    if name == "iforest":
        return IsolationForest(random_state=seed)
    if name == "knn":
        from pyod.models.knn import KNN

        return KNN()
    return LocalMaximaDetector(n_estimators=1, calibration=None, random_state=seed)


def measured(name: str, which: str, method: str, seed: int) -> dict[str, Any]:
    members, anomalies = rows_of(name)
    rng = np.random.default_rng(seed)
    members = rng.permutation(members)
    half = len(members) // 2
    start = time.process_time()
    model = ConformalDetector(
        detector(which, seed), calibration=method, n_folds=FOLDS, random_state=seed
    )
    model.fit(members[:half])
    p = model.p_values(members[half:])
    planted = rng.permutation(anomalies)[: round(len(p) / 9)]
    batch = np.concatenate([p, model.p_values(planted)])
    found: dict[str, Any] = {"n": model.n_calibration_, "m": len(p), "planted": len(planted)}
    found["rates"] = {str(a): float(np.mean(p <= a)) for a in ALPHAS}
    found["fdp"], found["power"] = {}, {}
    for q in QS:
        called = benjamini_hochberg(batch, q)
        found["fdp"][str(q)] = float(called[: len(p)].sum() / max(called.sum(), 1))
        found["power"][str(q)] = float(called[len(p) :].mean())
    return found | {"cpu": round(time.process_time() - start, 2)}


def deviation_of_ranks(alpha: float, n: int, m: int) -> float:
    """Return the standard deviation of the share of m new members with a p-value of at most alpha."""
    k = math.floor(alpha * (n + 1) + 1e-9)
    a, b = k, n + 1 - k
    return math.sqrt(a * b * (a + b + m) / (m * (a + b) ** 2 * (a + b + 1)))


def finished(out: Path) -> list[dict[str, Any]]:
    return [json.loads(line) for line in out.read_text().splitlines()] if out.exists() else []


def run() -> Iterator[tuple[str, str]]:
    """Yield the rows of the table, of what was run before."""
    yield from table(finished(RESULTS))


def table(lines: list[dict[str, Any]]) -> Iterator[tuple[str, str]]:
    for which, method in dict.fromkeys((line["detector"], line["method"]) for line in lines):
        mine = [line for line in lines if (line["detector"], line["method"]) == (which, method)]
        sets = {
            name: [line for line in mine if line["set"] == name]
            for name in dict.fromkeys(line["set"] for line in mine)
        }
        ran = f"{which}, {method}, {len(sets)} sets, {len(mine)} runs"
        for alpha in ALPHAS:
            yield f"{ran}: false alarms at {alpha}", of_alarms(sets, alpha)
        for q in QS:
            yield f"{ran}: discoveries at {q}", of_discoveries(sets, q)


def of_alarms(sets: dict[str, list[dict[str, Any]]], alpha: float) -> str:
    means, above, below, wanted = [], [], [], []
    for name, runs in sets.items():
        rate = float(np.mean([line["rates"][str(alpha)] for line in runs]))
        n, m = runs[0]["n"], runs[0]["m"]
        error = deviation_of_ranks(alpha, n, m) / math.sqrt(len(runs))
        least = math.floor(alpha * (n + 1) + 1e-9) / (n + 1)
        means.append(rate)
        wanted.append(least)
        above += [f"{name} {rate:.4f}"] if rate > alpha + 3 * error else []
        below += [f"{name} {rate:.4f} of {least:.4f}"] if rate < least - 3 * error else []
    return (
        f"mean {np.mean(means):.4f} (of ranks {np.mean(wanted):.4f}), sets {min(means):.4f} to "
        f"{max(means):.4f}; above: {', '.join(above) or 'none'}; below: {', '.join(below) or 'none'}"
    )


def of_discoveries(sets: dict[str, list[dict[str, Any]]], q: float) -> str:
    fdr, power, over = [], [], []
    for name, runs in sets.items():
        fdp = np.array([line["fdp"][str(q)] for line in runs])
        error = fdp.std() / math.sqrt(len(runs))
        fdr.append(fdp.mean())
        power.append(np.mean([line["power"][str(q)] for line in runs]))
        over += [f"{name} {fdp.mean():.3f}"] if fdp.mean() > q + 3 * error else []
    return (
        f"false ones {np.mean(fdr):.3f}, sets up to {max(fdr):.3f}; power {np.mean(power):.2f}; "
        f"over: {', '.join(over) or 'none'}"
    )


def main() -> None:
    parser = argparse.ArgumentParser(description=(__doc__ or "").split("\n")[0])
    parser.add_argument("--sets", nargs="*", default=[*OWN, *ADBENCH])
    parser.add_argument("--detectors", nargs="*", default=["iforest", "knn", "local-maxima"])
    parser.add_argument("--methods", nargs="*", default=["split", "cross"])
    parser.add_argument("--splits", type=int, default=SPLITS)
    parser.add_argument("--out", type=Path, default=RESULTS)
    args = parser.parse_args()
    lines = finished(args.out)
    done = {(line["detector"], line["method"], line["set"], line["seed"]) for line in lines}
    warnings.simplefilter("ignore")
    for which in args.detectors:
        for method in args.methods:
            for seed in range(args.splits):
                for name in args.sets:
                    if (which, method, name, seed) in done:
                        continue
                    key = {"detector": which, "method": method, "set": name, "seed": seed}
                    lines.append(key | measured(name, which, method, seed))
                    with args.out.open("a") as file:
                        file.write(json.dumps(lines[-1]) + "\n")
    for what, result in table(lines):
        print(f"{what}: {result}")


if __name__ == "__main__":
    main()
