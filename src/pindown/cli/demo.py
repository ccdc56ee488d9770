"""A first look without any file of one's own: a small network on scikit-learn's digits."""

from __future__ import annotations

import warnings
from dataclasses import dataclass
from pathlib import Path

import numpy as np

from pindown.network import ReluNetwork
from pindown.whole_files import together, whole_file


@dataclass(frozen=True)
class DemoFiles:
    """What :func:`write_demo_files` wrote.

    Attributes:
        model: The trained network, as ONNX with float32 weights.
        train: The images it was trained on, with labels, as NPZ.
        test: Images it has not seen, with labels, as NPZ.
    """

    model: Path
    train: Path
    test: Path


def write_demo_files(directory: Path, *, seed: int = 0) -> DemoFiles:
    """Train 64-32-32-10 on three quarters of the digits and write the model and the data."""
    from sklearn.datasets import load_digits
    from sklearn.exceptions import ConvergenceWarning
    from sklearn.model_selection import train_test_split
    from sklearn.neural_network import MLPClassifier

    X, y = load_digits(return_X_y=True)
    splits = train_test_split(X / 16.0, y, test_size=0.25, stratify=y, random_state=seed)
    X_train, X_test, y_train, y_test = splits
    mlp = MLPClassifier(hidden_layer_sizes=(32, 32), max_iter=80, random_state=seed)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", ConvergenceWarning)  # 80 epochs are enough for a demo
        mlp.fit(X_train, y_train)

    directory.mkdir(parents=True, exist_ok=True)
    files = DemoFiles(directory / "digits.onnx", directory / "train.npz", directory / "test.npz")
    with together():
        ReluNetwork.from_sklearn(mlp).save(files.model, dtype="float32")
        with whole_file(files.train) as train, whole_file(files.test) as test:
            np.savez_compressed(train, X=X_train, y=y_train)
            np.savez_compressed(test, X=X_test, y=y_test)
    return files
