"""LocalMaximaDetector on MNIST one-vs-rest and the ADBench sets, with every ingredient left out in turn.

    python benchmarks/local_maxima.py mnist --digits 0 8 --seeds 0 1 2 --variants default no-density
    python benchmarks/local_maxima.py adbench --sets 6_cardio 43_WDBC
    python benchmarks/local_maxima.py noise --digits 3 --classes 0
    python benchmarks/local_maxima.py unseen --digits 0 3 8 --seeds 0 --variants one-member
    python benchmarks/local_maxima.py designs --seeds 0 1 2 3 4
    python benchmarks/local_maxima.py contaminated --variants expects default iforest knn
    python benchmarks/local_maxima.py grid --seeds 0 1 2 3 4 5 6 7 8 9

Each finished run is one line of JSON in ``--out`` and one line on the screen. A run that is in the file
already is not repeated, so an interrupted table goes on where it stopped. Times are CPU seconds.
Nothing here chooses anything: test labels are only read by the AUC at the end.
"""

from __future__ import annotations

import argparse
import gzip
import json
import os
import time
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import numpy as np
from scipy import ndimage
from sklearn.ensemble import IsolationForest
from sklearn.metrics import roc_auc_score
from sklearn.neighbors import NearestNeighbors
from sklearn.preprocessing import StandardScaler

from pindown.learn.one_class import LocalMaximaDetector
from pindown.learn.one_class._plan import INGREDIENTS

DATA = Path(os.environ.get("PINDOWN_DATA", "../shared/data"))
NOISE = (0.02, 0.05, 0.1, 0.2, 0.3, 0.5)
GRID = (-1.5, -0.5, 0.5, 1.5)


def without(*names: str) -> dict[str, Any]:
    return {"ingredients": [other for other in INGREDIENTS if other not in names]}


VARIANTS: dict[str, dict[str, Any]] = {
    "default": {},
    "with-p-values": {"calibration": "auto"},
    "expects": {"expects": 0.1},
    "untrained": {"max_epochs": 0},
    **{f"no-{name}": without(name) for name in INGREDIENTS},
    **{f"networks-no-{name}": without("density", name) for name in INGREDIENTS if name != "density"},
    "untrained-no-density": {"max_epochs": 0, **without("density")},
    "density-alone": {"learned_weight": 0.0},
    "one-member": {"n_estimators": 1},
    "not-symmetric": {"symmetric": False},
    "only-g-c": {"ablation": "only_g_c"},
    "only-g-h": {"ablation": "only_g_h"},
    "c-alone": {"ablation": "c", "ingredients": ["generators", "averaging"]},
    "h-alone": {"ablation": "h", **without("density")},
    "paper": {"preset": "paper"},
    "paper-c": {"preset": "paper", "ablation": "c"},
    "paper-h": {"preset": "paper", "ablation": "h"},
    "paper-symmetric": {"preset": "paper", "symmetric": True},
}


def digits_of(split: str) -> tuple[np.ndarray, np.ndarray]:
    """Return MNIST images on 0 to 1, and labels."""
    images, labels = (
        gzip.decompress((DATA / f"mnist/{split}-{kind}-ubyte.gz").read_bytes())
        for kind in ("images-idx3", "labels-idx1")
    )
    X = np.frombuffer(images, np.uint8, offset=16).reshape(-1, 28, 28) / 255.0
    return X, np.frombuffer(labels, np.uint8, offset=8)


def half_of_normals(name: str, seed: int) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """Return training rows, test rows and which of these are anomalies, all standardised."""
    with np.load(DATA / f"adbench/{name}.npz") as file:
        X, y = file["X"].astype(float), file["y"]
    normal = np.random.RandomState(seed).permutation(np.flatnonzero(y == 0))
    train, rest = normal[: len(normal) // 2], normal[len(normal) // 2 :]
    test = np.concatenate([rest, np.flatnonzero(y == 1)])
    scaler = StandardScaler().fit(X[train])
    return scaler.transform(X[train]), scaler.transform(X[test]), y[test]


def fitted(X: np.ndarray, variant: str, seed: int) -> tuple[Any, float]:
    start = time.process_time()
    if variant in PEERS:
        model = PEERS[variant](seed).fit(X)
    else:
        settings = {"calibration": None} | VARIANTS[variant]
        model = LocalMaximaDetector(random_state=seed, **settings).fit(X)
    return model, time.process_time() - start


def auc(truth: np.ndarray, scores: np.ndarray) -> float:
    return round(100 * float(roc_auc_score(truth, scores)), 3)


# ---------------------------------------------------------------------- tables


def mnist(args: argparse.Namespace) -> Iterator[tuple[dict[str, Any], Callable[[], dict[str, Any]]]]:
    (X, y), (X_test, y_test) = digits_of("train"), digits_of("t10k")

    def run(digit: int, variant: str, seed: int) -> dict[str, Any]:
        model, seconds = fitted(X[y == digit][: args.rows], variant, seed)
        return {"auc": auc(y_test == digit, model.score_samples(X_test)), "fit_cpu": round(seconds, 1)}

    for variant in args.variants:
        for seed in args.seeds:
            for digit in args.digits:
                key = {"table": "mnist", "variant": variant, "seed": seed, "digit": digit}
                yield key, lambda d=digit, v=variant, s=seed: run(d, v, s)


def adbench(args: argparse.Namespace) -> Iterator[tuple[dict[str, Any], Callable[[], dict[str, Any]]]]:
    names = args.sets or sorted(path.stem for path in (DATA / "adbench").glob("*.npz"))

    def run(name: str, variant: str, seed: int) -> dict[str, Any]:
        train, test, anomaly = half_of_normals(name, seed)
        model, seconds = fitted(train, variant, seed)
        return {"auc": auc(anomaly, -model.score_samples(test)), "fit_cpu": round(seconds, 2)}

    for variant in args.variants:
        for seed in args.seeds:
            for name in names:
                key = {"table": "adbench", "variant": variant, "seed": seed, "set": name}
                yield key, lambda n=name, v=variant, s=seed: run(n, v, s)


def noise(args: argparse.Namespace) -> Iterator[tuple[dict[str, Any], Callable[[], dict[str, Any]]]]:
    """Clean against noisy test images of the class, by quality and by membership; class against rest."""

    def images(data: str, label: int) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
        if data == "mnist":
            (X, y), (X_test, y_test) = digits_of("train"), digits_of("t10k")
        else:
            with np.load(DATA / "cifar10/cifar10_subset.npz") as file:
                X, y = file["x_train"] / 255.0, file["y_train"]
                X_test, y_test = file["x_test"] / 255.0, file["y_test"]
        return X[y == label][: args.rows], X_test, y_test == label

    def run(data: str, label: int, variant: str, seed: int) -> dict[str, Any]:
        train, tests, members = images(data, label)
        clean = tests[members]
        model, seconds = fitted(train, variant, seed)
        rng, found = np.random.default_rng(seed), {}
        truth = np.repeat([1, 0], len(clean))
        for sigma in NOISE:
            both = np.concatenate([clean, clean + sigma * rng.normal(size=clean.shape)])
            found[str(sigma)] = [auc(truth, model.quality(both)), auc(truth, model.score_samples(both))]
        wins = all(q >= c for q, c in found.values())
        return {
            "auc": auc(members, model.score_samples(tests)),
            "quality_and_membership": found,
            "quality_wins": wins,
            "fit_cpu": round(seconds, 1),
        }

    cells = [("mnist", d) for d in args.digits] + [("cifar10", c) for c in args.classes]
    for variant in args.variants:
        for seed in args.seeds:
            for data, label in cells:
                key = {"table": "noise", "variant": variant, "seed": seed, "data": data, "class": label}
                yield key, lambda a=data, b=label, v=variant, s=seed: run(a, b, v, s)


def unseen(args: argparse.Namespace) -> Iterator[tuple[dict[str, Any], Callable[[], dict[str, Any]]]]:
    """Clean test images of a digit against damaged ones, of kinds that no comparator has learned."""
    (X, y), (X_test, y_test) = digits_of("train"), digits_of("t10k")

    def run(digit: int, variant: str, seed: int) -> dict[str, Any]:
        train, clean = X[y == digit][: args.rows], X_test[y_test == digit]
        model, seconds = fitted(train, variant, seed)
        rng, truth = np.random.default_rng(seed), np.repeat([1, 0], len(clean))
        index = NearestNeighbors(n_neighbors=5).fit(train.reshape(len(train), -1))
        found = {}
        for name, damage in UNSEEN.items():
            both = np.concatenate([clean, [damage(image, rng) for image in clean]])
            near = -index.kneighbors(both.reshape(len(both), -1))[0].mean(axis=1)
            scores = model.quality(both), model.score_samples(both), near
            found[name] = [auc(truth, values) for values in scores]
        return {"quality_membership_neighbours": found, "fit_cpu": round(seconds, 1)}

    for variant in args.variants:
        for seed in args.seeds:
            for digit in args.digits:
                key = {"table": "unseen", "variant": variant, "seed": seed, "digit": digit}
                yield key, lambda d=digit, v=variant, s=seed: run(d, v, s)


UNSEEN: dict[str, Callable[[np.ndarray, np.random.Generator], np.ndarray]] = {
    "thinned": lambda image, rng: ndimage.grey_erosion(image, size=(2, 2)),
    "thickened": lambda image, rng: ndimage.grey_dilation(image, size=(2, 2)),
    "shifted by 3": lambda image, rng: ndimage.shift(image, (3, -3), order=0),
    "turned by 20 degrees": lambda image, rng: ndimage.rotate(image, 20, reshape=False, order=1),
    "half the contrast": lambda image, rng: 0.5 * image,
    "5 % salt and pepper": lambda image, rng: np.where(
        rng.random(image.shape) < 0.05, rng.integers(0, 2, image.shape), image
    ),
}


def designs(args: argparse.Namespace) -> Iterator[tuple[dict[str, Any], Callable[[], dict[str, Any]]]]:
    """Pairs of designs of known value: members are near the best ones, how far says the value.

    The share of pairs, near each other, whose better one is told, by quality, membership and neighbours.
    """

    def run(name: str, variant: str, seed: int) -> dict[str, Any]:
        rng, value = np.random.default_rng(seed), VALUES[name]
        drawn = rng.uniform(-2, 2, (200_000, 3))
        best = drawn[value(drawn) > np.quantile(value(drawn), 0.98)]
        train = rng.permutation(best)[:500]
        model, seconds = fitted(train, variant, seed)
        a = rng.uniform(-2, 2, (2000, 3))
        b = a + 0.3 * rng.normal(size=a.shape)
        told = value(a) > value(b)
        index = NearestNeighbors(n_neighbors=5).fit(train)
        found = {}
        for kind, score in (
            ("quality", model.quality),
            ("membership", model.score_samples),
            ("neighbours", lambda rows: -index.kneighbors(rows)[0].mean(axis=1)),
        ):
            found[kind] = round(100 * float(np.mean((score(a) > score(b)) == told)), 1)
        return found | {"fit_cpu": round(seconds, 1)}

    for variant in args.variants:
        for seed in args.seeds:
            for name in VALUES:
                key = {"table": "designs", "variant": variant, "seed": seed, "value": name}
                yield key, lambda n=name, v=variant, s=seed: run(n, v, s)


# Values of designs: the best ones are a point, a ring, a bent valley, and two points.
VALUES: dict[str, Callable[[np.ndarray], np.ndarray]] = {
    "point": lambda X: -np.sum(X**2, axis=1),
    "ring": lambda X: -((np.hypot(X[:, 0], X[:, 1]) - 1.2) ** 2) - X[:, 2] ** 2,
    "valley": lambda X: -((X[:, 1] - np.sin(2 * X[:, 0])) ** 2) - (X[:, 2] - 0.5 * X[:, 0]) ** 2,
    "two points": lambda X: -np.minimum(np.sum((X - 1) ** 2, axis=1), np.sum((X + 1) ** 2, axis=1)),
}


def grid(args: argparse.Namespace) -> Iterator[tuple[dict[str, Any], Callable[[], dict[str, Any]]]]:
    """Sixteen narrow Gaussians: how many centres c accepts, and how much of the space between them."""
    centres = np.array([[a, b] for a in GRID for b in GRID])

    def run(variant: str, seed: int) -> dict[str, Any]:
        rng = np.random.default_rng(seed)
        X = np.repeat(centres, 100, axis=0) + 0.01 * rng.normal(size=(1600, 2))
        model, seconds = fitted(X, variant, seed)
        empty = rng.uniform(-2, 2, (4000, 2))
        far = np.abs(empty[:, None] - centres).max(2).min(1) > 0.1
        at_centres = model.decision_function(centres)
        between = model.decision_function(empty[far])
        covered = int(((at_centres >= 0) & (at_centres > np.quantile(between, 0.9))).sum())
        return {
            "covered": covered,
            "accepted_between": round(float(np.mean(between >= 0)), 3),
            "auc": auc(np.r_[np.ones(16), np.zeros(len(between))], np.r_[at_centres, between]),
            "fit_cpu": round(seconds, 1),
        }

    for variant in args.variants:
        for seed in args.seeds:
            key = {"table": "grid", "variant": variant, "seed": seed}
            yield key, lambda v=variant, s=seed: run(v, s)


def contaminated(
    args: argparse.Namespace,
) -> Iterator[tuple[dict[str, Any], Callable[[], dict[str, Any]]]]:
    """Fit on all rows, anomalies among them and not told, and rank the same rows."""
    names = args.sets or sorted(path.stem for path in (DATA / "adbench").glob("*.npz"))

    def run(name: str, variant: str, seed: int) -> dict[str, Any]:
        with np.load(DATA / f"adbench/{name}.npz") as file:
            X, y = StandardScaler().fit_transform(file["X"].astype(float)), file["y"]
        model, seconds = fitted(X, variant, seed)
        return {"auc": auc(y, -model.score_samples(X)), "fit_cpu": round(seconds, 2)}

    for variant in args.variants:
        for seed in args.seeds:
            for name in names:
                key = {"table": "contaminated", "variant": variant, "seed": seed, "set": name}
                yield key, lambda n=name, v=variant, s=seed: run(n, v, s)


class Neighbours:
    """Minus the mean distance to five other rows: the usual baseline."""

    def fit(self, X: np.ndarray) -> Neighbours:
        """Keep the scores of the rows, none its own neighbour."""
        self.scores = -NearestNeighbors(n_neighbors=5).fit(X).kneighbors()[0].mean(axis=1)
        return self

    def score_samples(self, X: np.ndarray) -> np.ndarray:
        """Return the scores of the rows of fit."""
        return self.scores


PEERS = {
    "iforest": lambda seed: IsolationForest(random_state=seed),
    "knn": lambda seed: Neighbours(),
}
TABLES = {
    "mnist": mnist,
    "adbench": adbench,
    "noise": noise,
    "unseen": unseen,
    "designs": designs,
    "grid": grid,
    "contaminated": contaminated,
}


def finished(out: Path) -> list[dict[str, Any]]:
    return [json.loads(line) for line in out.read_text().splitlines()] if out.exists() else []


def summary(rows: list[dict[str, Any]], table: str) -> Iterator[str]:
    """Yield a line for each variant: the mean AUC, its deviation over seeds, the median time."""
    mine = [row for row in rows if row["table"] == table and "auc" in row]
    for variant in dict.fromkeys(row["variant"] for row in mine):
        chosen = [row for row in mine if row["variant"] == variant]
        by_seed = [
            np.mean([row["auc"] for row in chosen if row["seed"] == seed])
            for seed in sorted({row["seed"] for row in chosen})
        ]
        cpu = np.median([row["fit_cpu"] for row in chosen])
        yield (
            f"{table} {variant}: mean {np.mean(by_seed):.2f}, sd over {len(by_seed)} seeds "
            f"{np.std(by_seed):.2f}, {len(chosen)} runs, median fit {cpu:.1f} CPU s"
        )


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawTextHelpFormatter)
    parser.add_argument("table", choices=TABLES)
    parser.add_argument("--digits", type=int, nargs="*", default=list(range(10)))
    parser.add_argument("--classes", type=int, nargs="*", default=list(range(10)), help="of CIFAR-10")
    parser.add_argument("--sets", nargs="*", default=[])
    parser.add_argument("--seeds", type=int, nargs="*", default=[0, 1, 2])
    parser.add_argument("--variants", nargs="*", default=["default"], choices=[*VARIANTS, *PEERS])
    parser.add_argument("--rows", type=int, default=None, help="most training images")
    parser.add_argument("--out", type=Path, default=Path("local_maxima.jsonl"))
    args = parser.parse_args()
    rows = finished(args.out)
    for cell, run in TABLES[args.table](args):
        key = cell | ({"rows": args.rows} if args.rows else {})
        if any(all(row.get(name) == value for name, value in key.items()) for row in rows):
            continue
        rows.append({**key, **run()})
        with args.out.open("a") as file:
            file.write(json.dumps(rows[-1]) + "\n")
        print(json.dumps(rows[-1]), flush=True)
    print(*summary(rows, args.table), sep="\n")


if __name__ == "__main__":
    main()
