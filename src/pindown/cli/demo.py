"""A first look without any file of one's own, ``demo``: a small network on scikit-learn's digits."""

from __future__ import annotations

import warnings
from dataclasses import dataclass
from pathlib import Path
from typing import Annotated

import typer

from pindown.atomic_files import together, whole_file
from pindown.cli.audit import audit
from pindown.cli.options import Budget, Json, check_outputs, say

LEAKED = 30  # training images that the demo puts among the test images

Folder = Annotated[Path, typer.Option("--out", help="Folder for the model, the data and the page.")]


def demo(out: Folder = Path("pindown-demo"), budget: Budget = 30.0, json: Json = None) -> int:
    """Train a small network on digits, save it and audit it, with a mistake put in: no file needed."""
    from pindown.report.terminal import progress_bar

    check_outputs(json=json)
    if out.exists() and not out.is_dir():
        raise ValueError(f"--out names a folder; {str(out)!r} is a file.")
    with progress_bar() as report:
        report("training a 64-32-32-10 network on scikit-learn's digits", 0, 1)
        files = write_demo_files(out, leaked=LEAKED)
    page = out / "audit.html"
    code = audit(files.model, files.train, files.test, html=str(page), json=json, budget=budget)
    by_hand = f"pindown audit {files.model} --data {files.train} --test {files.test} --html report.html"
    said = (
        f"\nThe concern is real: {LEAKED} training images were put among the test images, as happens "
        f"when files are merged.\nThe same by hand, and so for a model of your own:\n{by_hand}"
    )
    say(said, err=json == "-")  # stdout is then the document's
    return code


@dataclass(frozen=True)
class DemoFiles:
    """What :func:`write_demo_files` wrote.

    Attributes:
        model: The trained network, as ONNX with float32 weights.
        train: The images it was trained on, with labels, as NPZ.
        test: Images with labels, as NPZ; it has not seen them, apart from those that were leaked.
    """

    model: Path
    train: Path
    test: Path


def write_demo_files(directory: Path, *, seed: int = 0, leaked: int = 0) -> DemoFiles:
    """Train 64-32-32-10 on three quarters of the digits and write the model and the data.

    Args:
        directory: Where.
        seed: Seed of the split and of training.
        leaked: So many training images are put among the test images.
    """
    import numpy as np
    from sklearn.datasets import load_digits
    from sklearn.exceptions import ConvergenceWarning
    from sklearn.model_selection import train_test_split
    from sklearn.neural_network import MLPClassifier

    from pindown.network import ReluNetwork

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
            np.savez_compressed(
                test,
                X=np.concatenate([X_test, X_train[:leaked]]),
                y=np.concatenate([y_test, y_train[:leaked]]),
            )
    return files
