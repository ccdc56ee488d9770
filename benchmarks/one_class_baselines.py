"""One-class detectors side by side: twelve ADBench tables, and MNIST one digit against the rest.

Tables: train on a random half of the normal rows, test on the rest and all anomalies, scaled by the
training rows. MNIST: train on one digit's training images, test on all test images. AUROC in percent,
mean and (population) standard deviation over seeds; CPU seconds of this process, fit and score apart.
Every baseline has one setting for all data; nothing is tuned on labels. Deep SVDD, AutoEncoder and DIF
are PyOD's (``pip install pyod``, part of the extra ``bench``).

    python benchmarks/one_class_baselines.py adbench --data FOLDER > lines.jsonl
    python benchmarks/one_class_baselines.py mnist --methods knn,kde,local-maxima --seeds 0

Lines of JSON go to stdout as they finish, the table to stderr; ``--resume lines.jsonl`` takes over
what an earlier run finished.
"""

from __future__ import annotations

import argparse
import json
import os
import sys
import time
from collections.abc import Callable, Iterable, Iterator
from pathlib import Path
from typing import Any, NamedTuple, Protocol

import numpy as np

from pindown.datasets.public_data import ADBENCH, load_adbench, load_mnist, one_class_split
from pindown_reproduction.local_maxima.local_maxima_one_class import held_out_bandwidth, log_density

DATA = Path(os.environ.get("PINDOWN_DATA", "../shared/data"))
SEEDS = (0, 1, 2)
PCA_SHARE = 0.95  # of the variance of images, kept for the methods that use distances


class Detector(Protocol):
    """What a baseline is: fit, then score; higher is more normal."""

    def fit(self, X: np.ndarray) -> Any:
        """Learn from normal rows."""

    def score_samples(self, X: np.ndarray) -> np.ndarray:
        """Return a score for each row."""


class Task(NamedTuple):
    """One cell: rows to train on, rows to test on, and which of those are anomalies."""

    name: str
    seed: int
    train: np.ndarray
    test: np.ndarray
    anomaly: np.ndarray
    image_shape: tuple[int, ...] | None = None


class NearestNeighbours:
    """Minus the mean distance to the five nearest training rows."""

    def __init__(self, k: int = 5) -> None:
        self.k = k

    def fit(self, X: np.ndarray) -> NearestNeighbours:
        """Learn from normal rows."""
        from sklearn.neighbors import NearestNeighbors

        self.index = NearestNeighbors(n_neighbors=min(self.k, len(X))).fit(X)
        return self

    def score_samples(self, X: np.ndarray) -> np.ndarray:
        """Return a score for each row."""
        return -self.index.kneighbors(X)[0].mean(axis=1)


class HeldOutKernelDensity:
    """A kernel density whose bandwidth has the largest likelihood on a fifth of the training rows."""

    def fit(self, X: np.ndarray) -> HeldOutKernelDensity:
        """Learn from normal rows."""
        self.rows, self.bandwidth = X, held_out_bandwidth(X)
        return self

    def score_samples(self, X: np.ndarray) -> np.ndarray:
        """Return a score for each row."""
        return log_density(self.rows, X, self.bandwidth)


class FromPyOD:
    """A PyOD detector with its sign turned round: there, higher is more abnormal."""

    def __init__(self, module: str, name: str, **settings: Any) -> None:
        from importlib import import_module

        try:
            kind = getattr(import_module(f"pyod.models.{module}"), name)
        except ImportError as error:
            raise MissingPeerError(
                f"{name} needs PyOD: pip install pyod, or the extra bench ({error})."
            ) from None
        self.make = lambda d: kind(**({"n_features": d} if name == "DeepSVDD" else {}), **settings)

    def fit(self, X: np.ndarray) -> FromPyOD:
        """Learn from normal rows."""
        self.model = self.make(X.shape[1]).fit(X)
        return self

    def score_samples(self, X: np.ndarray) -> np.ndarray:
        """Return a score for each row."""
        return -self.model.decision_function(X)


class MissingPeerError(ImportError):
    """A package that a baseline comes from is not installed."""


def baselines(*, images: bool = False) -> dict[str, Callable[[int, tuple[int, ...] | None], Detector]]:
    """Return name -> factory(seed, image_shape); images are reduced by PCA for distances."""
    from sklearn.ensemble import IsolationForest
    from sklearn.neighbors import KernelDensity, LocalOutlierFactor
    from sklearn.svm import OneClassSVM

    def reduced(make: Callable[[], Any]) -> Callable[[int, Any], Detector]:
        return lambda _seed, _shape: OnComponents(make()) if images else make()

    trees = 200 if images else 100
    return {
        "kde": reduced(HeldOutKernelDensity if images else lambda: KernelDensity(bandwidth="scott")),
        "one-class svm": reduced(lambda: OneClassSVM(nu=0.1, gamma="scale")),
        "isolation forest": lambda seed, _: IsolationForest(n_estimators=trees, random_state=seed),
        "knn": reduced(NearestNeighbours),
        "lof": reduced(lambda: LocalOutlierFactor(n_neighbors=20, novelty=True)),
        "deep svdd": lambda seed, _: FromPyOD(
            "deep_svdd", "DeepSVDD", epochs=20 if images else 50, random_state=seed, verbose=0
        ),
        "autoencoder": lambda seed, _: FromPyOD(
            "auto_encoder", "AutoEncoder", epoch_num=30, random_state=seed, verbose=0
        ),
        "dif": lambda seed, _: FromPyOD("dif", "DIF", random_state=seed),
        "local-maxima": _local_maxima("auto"),
        "local-maxima paper": _local_maxima("paper"),
    }


class OnComponents:
    """A detector on the principal components that keep 95 % of the variance."""

    def __init__(self, detector: Any) -> None:
        from sklearn.decomposition import PCA

        self.components, self.detector = PCA(PCA_SHARE, svd_solver="full"), detector

    def fit(self, X: np.ndarray) -> OnComponents:
        """Learn from normal rows."""
        self.detector.fit(self.components.fit_transform(X))
        return self

    def score_samples(self, X: np.ndarray) -> np.ndarray:
        """Return a score for each row."""
        return self.detector.score_samples(self.components.transform(X))


def _local_maxima(preset: str) -> Callable[[int, tuple[int, ...] | None], Detector]:
    def make(seed: int, image_shape: tuple[int, ...] | None) -> Detector:
        from pindown.learn.one_class import LocalMaximaDetector

        return LocalMaximaDetector(preset, image_shape=image_shape, random_state=seed, verbose=0)

    return make


def adbench_tasks(folder: Path, seeds: Iterable[int], names: Iterable[str] = ADBENCH) -> Iterator[Task]:
    for name in names:
        X, y = load_adbench(name, folder)
        for seed in seeds:
            yield Task(name, seed, *one_class_split(X, y, seed))


def mnist_tasks(folder: Path, seeds: Iterable[int], digits: Iterable[int] = range(10)) -> Iterator[Task]:
    data = load_mnist(folder)
    test = data.test.reshape(len(data.test), -1) / 255.0
    for digit in digits:
        train = data.train[data.train_labels == digit]
        train = train.reshape(len(train), -1) / 255.0
        for seed in seeds:
            outside = (data.test_labels != digit).astype(np.int64)
            yield Task(f"digit {digit}", seed, train, test, outside, data.image_shape)


def measure(detector: Detector, task: Task) -> dict[str, float]:
    """Return AUROC in percent and CPU seconds."""
    from sklearn.metrics import roc_auc_score

    start = time.process_time()
    detector.fit(task.train)
    fitted = time.process_time()
    scores = detector.score_samples(task.test)
    scored = time.process_time()
    auc = 100 * roc_auc_score(
        task.anomaly, -np.nan_to_num(np.asarray(scores, dtype=float), neginf=-1e300)
    )
    return {"auc": float(auc), "fit": fitted - start, "score": scored - fitted}


def lines(
    what: str, tasks: Iterable[Task], methods: list[str], finished: dict[Any, dict[str, Any]]
) -> Iterator[dict[str, Any]]:
    """Yield one record per method and task; those finished earlier are taken over."""
    factories = baselines(images=what == "mnist")
    absent: set[str] = set()
    for task in tasks:
        for method in methods:
            key = (what, method, task.name, task.seed)
            if key in finished:
                yield finished[key]
                continue
            if method in absent:
                continue
            try:
                detector = factories[method](task.seed, task.image_shape)
            except MissingPeerError as error:
                absent.add(method)
                print(f"left out: {error}", file=sys.stderr)
                continue
            record = {"what": what, "method": method, "set": task.name, "seed": task.seed}
            yield record | measure(detector, task)


def summary(records: list[dict[str, Any]]) -> list[tuple[str, ...]]:
    """Return a row per method: mean over sets, mean of the sets' deviations over seeds, CPU seconds."""
    rows = []
    for method in dict.fromkeys(r["method"] for r in records):
        mine = [r for r in records if r["method"] == method]
        by_set = {
            s: [r["auc"] for r in mine if r["set"] == s] for s in dict.fromkeys(r["set"] for r in mine)
        }
        mean = float(np.mean([np.mean(v) for v in by_set.values()]))
        spread = float(np.mean([np.std(v) for v in by_set.values()]))
        seconds = [(np.median([r[k] for r in mine]), max(r[k] for r in mine)) for k in ("fit", "score")]
        times = [f"{median:.2f} / {most:.1f}" for median, most in seconds]
        rows.append((method, f"{mean:.1f} ± {spread:.1f}", str(len(by_set)), *times))
    return rows


def table(records: list[dict[str, Any]]) -> str:
    """Return the AUROC of every method on every set, and the summary, as Markdown."""
    methods = list(dict.fromkeys(r["method"] for r in records))
    out = ["| set | " + " | ".join(methods) + " |", "|---" * (len(methods) + 1) + "|"]
    for name in dict.fromkeys(r["set"] for r in records):
        cells = []
        for method in methods:
            found = [r["auc"] for r in records if (r["set"], r["method"]) == (name, method)]
            cells.append(f"{np.mean(found):.1f} ± {np.std(found):.1f}" if found else "-")
        out.append(f"| {name} | " + " | ".join(cells) + " |")
    out += ["", "| method | AUROC | sets | fit CPU s, median / max | score |", "|---|---|---|---|---|"]
    out += ["| " + " | ".join(row) + " |" for row in summary(records)]
    return "\n".join(out)


def run() -> list[tuple[str, str]]:
    """Return the rows for RESULTS.md: the quick baselines and the detector on the tables."""
    if not (DATA / "adbench").is_dir():
        return [("ADBench", "not run: the data are not there (PINDOWN_DATA)")]
    methods = ["kde", "one-class svm", "isolation forest", "knn", "lof", "local-maxima"]
    records = list(lines("adbench", adbench_tasks(DATA, SEEDS), methods, {}))
    return [(f"ADBench, {row[0]}", f"AUROC {row[1]}, fit CPU s {row[3]}") for row in summary(records)]


def _finished(path: Path | None) -> dict[Any, dict[str, Any]]:
    if path is None or not path.is_file():
        return {}
    records = [json.loads(line) for line in path.read_text().splitlines() if line.startswith("{")]
    return {(r["what"], r["method"], r["set"], r["seed"]): r for r in records}


def main() -> None:
    known = list(baselines())
    parser = argparse.ArgumentParser(description=(__doc__ or "").split("\n")[0])
    parser.add_argument("what", choices=("adbench", "mnist"))
    parser.add_argument("--data", type=Path, default=DATA)
    parser.add_argument("--methods", default=",".join(known), help=f"some of {', '.join(known)}")
    parser.add_argument("--seeds", default=",".join(map(str, SEEDS)))
    parser.add_argument("--sets", help="names of tables, or digits, with commas between")
    parser.add_argument("--resume", type=Path)
    given = parser.parse_args()
    methods = [name.strip() for name in given.methods.split(",")]
    unknown = sorted(set(methods) - set(known))
    if unknown:
        parser.error(f"no baseline {', '.join(unknown)}; there are {', '.join(known)}")
    seeds = [int(seed) for seed in given.seeds.split(",")]
    chosen = given.sets.split(",") if given.sets else None
    if given.what == "adbench":
        tasks = adbench_tasks(given.data, seeds, chosen or ADBENCH)
    else:
        tasks = mnist_tasks(given.data, seeds, map(int, chosen) if chosen else range(10))
    records: list[dict[str, Any]] = []
    try:
        for record in lines(given.what, tasks, methods, _finished(given.resume)):
            records.append(record)
            print(json.dumps(record), flush=True)
    finally:
        if records:
            print(table(records), file=sys.stderr)


if __name__ == "__main__":
    import torch

    torch.set_num_threads(1)  # small networks on a busy machine: one thread is far faster than two
    main()
