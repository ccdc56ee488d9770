"""scikit-learn pipelines of the zoo, and what skl2onnx writes for such models."""

from __future__ import annotations

import warnings
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import onnx
from sklearn.datasets import make_classification, make_regression
from sklearn.decomposition import PCA
from sklearn.exceptions import ConvergenceWarning
from sklearn.linear_model import LinearRegression, LogisticRegression, Ridge, SGDClassifier
from sklearn.neural_network import MLPClassifier, MLPRegressor
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import MaxAbsScaler, MinMaxScaler, Normalizer, RobustScaler, StandardScaler
from sklearn.svm import LinearSVC

FEATURES = 8
MADE_FOR = 17  # operator set of the exports


def classes(n_classes: int) -> tuple[np.ndarray, np.ndarray]:
    """Return a task in float32: an estimator that is fitted to it computes in float32."""
    X, y = make_classification(
        300, FEATURES, n_informative=5, n_classes=n_classes, n_clusters_per_class=1, random_state=0
    )
    return 3 * X.astype(np.float32) + 1, y


def targets(n_targets: int) -> tuple[np.ndarray, np.ndarray]:
    """Return a task in float64."""
    X, y = make_regression(300, FEATURES, n_targets=n_targets, noise=1.0, random_state=0)
    return 3 * X + 1, y / 100


def small(kind: type, activation: str = "relu") -> Any:
    return kind(hidden_layer_sizes=(16, 12), activation=activation, max_iter=30, random_state=0)


def fitted(estimator: Any, data: tuple[np.ndarray, np.ndarray]) -> Any:
    with warnings.catch_warnings():
        warnings.simplefilter(
            "ignore", ConvergenceWarning
        )  # not trained to the end: that does not matter
        return estimator.fit(*data)


PIPELINES: dict[str, Callable[[], Any]] = {
    "scaler_mlp": lambda: fitted(make_pipeline(StandardScaler(), small(MLPClassifier)), classes(3)),
    "pca_logistic": lambda: fitted(
        make_pipeline(MinMaxScaler(), PCA(5, whiten=True), LogisticRegression()), classes(3)
    ),
    "robust_linear": lambda: fitted(make_pipeline(RobustScaler(), LinearRegression()), targets(2)),
    "maxabs_tanh": lambda: fitted(
        make_pipeline(MaxAbsScaler(), small(MLPRegressor, "tanh")), targets(1)
    ),
}
EXPORTED: dict[str, Callable[[], Any]] = {
    **PIPELINES,
    "mlp_binary": lambda: fitted(small(MLPClassifier), classes(2)),
    "normalizer_ridge": lambda: fitted(make_pipeline(Normalizer(), Ridge()), targets(1)),
    "linear_svc": lambda: fitted(LinearSVC(), classes(3)),
    "sgd_logistic": lambda: fitted(
        make_pipeline(StandardScaler(), SGDClassifier(loss="log_loss", random_state=0)), classes(2)
    ),
}
# A classifier's scores are a list of dicts unless this is switched off, as most people do.
WITH_ZIPMAP = ("pca_logistic", "mlp_binary")


def export_sklearn(name: str, path: Path) -> None:
    """Write one of ``EXPORTED`` with skl2onnx."""
    from skl2onnx import to_onnx

    model = EXPORTED[name]()
    plain = hasattr(model, "predict_proba") and name not in WITH_ZIPMAP
    options = {id(model): {"zipmap": False}} if plain else None
    example = np.zeros((1, FEATURES), np.float32)
    onnx.save(to_onnx(model, example, options=options, target_opset=MADE_FOR), path)


def scores(model: Any, X: np.ndarray) -> np.ndarray:
    """Return the numbers a user looks at: probabilities, else decisions, else predictions."""
    for method in ("predict_proba", "decision_function", "predict"):
        if hasattr(model, method):
            return np.asarray(getattr(model, method)(X))
    raise AssertionError(model)
