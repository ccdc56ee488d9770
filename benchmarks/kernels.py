"""Kernel logistic regression against the support vector machine with the same kernel, and its speed.

Both see the same splits (30 % held out, five times), the same standardised features, the same Gaussian
kernel (``gamma="scale"``) and the same grid of C, chosen by three-fold cross-validation within it:
by log-loss for kernel logistic regression and the Platt-scaled machine, by accuracy for the plain one.
CPU time of one thread: set OMP_NUM_THREADS=1 and OPENBLAS_NUM_THREADS=1.
"""

from __future__ import annotations

import json
import subprocess
import sys
import time
import warnings
from collections.abc import Iterator

import numpy as np
from sklearn import datasets
from sklearn.calibration import CalibratedClassifierCV
from sklearn.linear_model import Perceptron
from sklearn.metrics import log_loss
from sklearn.model_selection import GridSearchCV, StratifiedKFold, train_test_split
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler
from sklearn.svm import SVC

from pindown.learn.kernels import KernelLogisticClassifier, LeaveOneOutKernelRidge
from pindown.learn.margins import MarginPerceptron

GRID = np.logspace(-1, 3, 5)
N_SPLITS = 5


def data_sets() -> Iterator[tuple[str, np.ndarray, np.ndarray]]:
    yield "iris", *datasets.load_iris(return_X_y=True)
    yield "wine", *datasets.load_wine(return_X_y=True)
    yield "breast cancer", *datasets.load_breast_cancer(return_X_y=True)
    X, y = datasets.load_digits(return_X_y=True)
    some = np.random.default_rng(0).permutation(len(X))[:600]
    yield "digits (600)", X[some], y[some]
    yield "moons", *datasets.make_moons(400, noise=0.25, random_state=0)
    yield "circles", *datasets.make_circles(400, noise=0.15, factor=0.5, random_state=0)
    yield (
        "classification",
        *datasets.make_classification(
            400, n_features=10, n_informative=5, n_classes=3, flip_y=0.1, random_state=0
        ),
    )


def chosen(model: object, scoring: str, X: np.ndarray, y: np.ndarray) -> GridSearchCV:
    scaled = make_pipeline(StandardScaler(), model)
    name = next(p for p in scaled.get_params() if p.endswith("__C"))
    folds = StratifiedKFold(3, shuffle=True, random_state=0)
    return GridSearchCV(scaled, {name: GRID}, scoring=scoring, cv=folds).fit(X, y)


def one_split(X: np.ndarray, y: np.ndarray, seed: int) -> tuple[float, float, float, float]:
    A, B, a, b = train_test_split(X, y, test_size=0.3, stratify=y, random_state=seed)
    ours = chosen(KernelLogisticClassifier(), "neg_log_loss", A, a)
    machine = chosen(SVC(), "accuracy", A, a)
    platt = chosen(CalibratedClassifierCV(SVC(), ensemble=False, cv=5), "neg_log_loss", A, a)
    losses = [log_loss(b, model.predict_proba(B), labels=np.unique(y)) for model in (ours, platt)]
    right = [float(np.mean(model.predict(B) == b)) for model in (ours, machine)]
    return right[0], right[1], losses[0], losses[1]


def accuracy_rows() -> list[tuple[str, str]]:
    rows, wins, sets = [], 0, 0
    for name, X, y in data_sets():
        results = np.array([one_split(X, y, seed) for seed in range(N_SPLITS)])
        accuracy, machine, loss, platt = results.mean(axis=0)
        error = (results[:, 0] - results[:, 1]).std(ddof=1) / np.sqrt(N_SPLITS)
        wins, sets = wins + (loss < platt), sets + 1
        rows.append((
            name,
            f"accuracy {accuracy:.4f}, SVC {machine:.4f} "
            f"(difference {accuracy - machine:+.4f} +- {error:.4f}); "
            f"log-loss {loss:.4f}, Platt-scaled SVC {platt:.4f}",
        ))  # fmt: skip
    rows.append(("better log-loss than Platt scaling", f"{wins} of {sets} data sets"))
    return rows


def timed(model: object, X: np.ndarray, y: np.ndarray, repeats: int = 3) -> float:
    seconds = []
    for _ in range(repeats):
        start = time.process_time()
        model.fit(X, y)
        seconds.append(time.process_time() - start)
    return min(seconds)


def speed_rows() -> list[tuple[str, str]]:
    rows = []
    X, y = datasets.make_moons(2000, noise=0.2, random_state=0)
    rng = np.random.default_rng(0)
    W = rng.normal(size=(2000, 30))
    labels = (W @ rng.normal(size=(30, 10)) + 2 * rng.normal(size=(2000, 10))).argmax(axis=1)
    D, d = datasets.load_digits(return_X_y=True)
    D = D / 16
    for name, A, b in (
        ("moons, 2,000 samples, 2 classes", X, y),
        ("digits, 1,797 samples, 10 classes", D, d),
        ("30 normal features, 2,000 samples, 2 classes", W, labels % 2),
        ("30 normal features, 2,000 samples, 10 classes", W, labels),
    ):
        for C in (1.0, 100.0):
            model = KernelLogisticClassifier(C=C)
            seconds, other = timed(model, A, b), timed(SVC(C=C), A, b)
            rows.append(
                (f"{name}, C = {C:g}", f"{seconds:.2f} s (SVC {other:.2f} s); {model.convergence_}")
            )
    X, y = datasets.make_moons(20_000, noise=0.2, random_state=0)
    model = KernelLogisticClassifier(n_components=300)
    rows.append(
        ("moons, 20,000 samples, 300 landmarks", f"{timed(model, X, y, 1):.2f} s; {model.convergence_}")
    )
    return rows


BESIDE_PLATT = """
import json, sys, time, warnings
from sklearn import datasets
from sklearn.calibration import CalibratedClassifierCV
from sklearn.metrics import log_loss
from sklearn.svm import SVC
from pindown.learn.kernels import KernelLogisticClassifier
warnings.simplefilter("ignore")
# Not getrusage: a new process inherits the peak of its parent there.
peak = lambda: int(open("/proc/self/status").read().split("VmHWM:")[1].split()[0]) / 1024
models = {
    "ours": KernelLogisticClassifier(),
    "ours, no landmarks": KernelLogisticClassifier(n_components=None),
    "Platt": CalibratedClassifierCV(SVC(), ensemble=False, cv=5),
}
X, y = datasets.make_moons(10_000, noise=0.25, random_state=0)
A, B, a, b = X[:8000], X[8000:], y[:8000], y[8000:]
models[sys.argv[1]].fit(A[:100], a[:100])
before = peak()
start = time.process_time()
model = models[sys.argv[1]].fit(A, a)
seconds = time.process_time() - start
used = peak() - before
print(json.dumps([seconds, used, model.score(B, b), log_loss(b, model.predict_proba(B))]))
"""


def beside_platt_rows() -> list[tuple[str, str]]:
    """8,000 samples, each in a process of its own, whose memory is what fitting added."""
    rows = []
    for name in ("ours", "ours, no landmarks", "Platt"):
        command = [sys.executable, "-c", BESIDE_PLATT, name]
        done = subprocess.run(command, capture_output=True, text=True, check=True)
        seconds, used, accuracy, loss = json.loads(done.stdout)
        rows.append((
            f"moons, 8,000 samples, {name}",
            f"{seconds:.2f} s, {used:.0f} MB; on 2,000 others: accuracy {accuracy:.4f}, "
            f"log-loss {loss:.4f}",
        ))  # fmt: skip
    return rows


def other_rows() -> list[tuple[str, str]]:
    rng = np.random.default_rng(0)
    X = rng.normal(size=(20_000, 20))
    X /= np.linalg.norm(X, axis=1, keepdims=True)
    u = rng.normal(size=20)
    scores = X @ u / np.linalg.norm(u)
    X, y = X[np.abs(scores) > 0.05], np.sign(scores[np.abs(scores) > 0.05])
    ours = MarginPerceptron(fit_intercept=False, margin=0.05)
    theirs = Perceptron(fit_intercept=False, tol=None, max_iter=100)
    a, b = timed(ours, X, y, 1), timed(theirs, X, y, 1)
    t, f = (
        np.linspace(0, 10, 1000)[:, None],
        np.sin(np.linspace(0, 10, 1000)) + 0.1 * rng.normal(size=1000),
    )
    ridge = LeaveOneOutKernelRidge()
    c = timed(ridge, t, f, 1)
    return [
        (f"perceptron, {len(X):,} samples, margin 0.05",
         f"{a:.2f} s (scikit-learn, 100 passes: {b:.2f} s); {ours.guarantee_}"),
        ("leave-one-out ridge, 1,000 samples, 19 penalties", f"{c:.2f} s, penalty {ridge.alpha_:.3g}"),
    ]  # fmt: skip


def run() -> list[tuple[str, str]]:
    warnings.simplefilter("ignore")
    return speed_rows() + beside_platt_rows() + other_rows() + accuracy_rows()


if __name__ == "__main__":
    for what, result in run():
        print(f"{what}: {result}", flush=True)
