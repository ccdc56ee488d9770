"""Fitted scikit-learn multi-layer perceptrons as networks."""

from __future__ import annotations

import warnings
from dataclasses import replace
from typing import Any

import numpy as np

from pindown.affine import Array
from pindown.errors import UnsupportedModelError
from pindown.io._agreement import DisagreementError, require_agreement
from pindown.network import ReluNetwork

_OUTPUT_ACTIVATIONS = {"identity": None, "softmax": "softmax", "logistic": "sigmoid"}


def network_from_estimator(estimator: Any) -> ReluNetwork:
    """Read a fitted ``MLPClassifier`` or ``MLPRegressor`` with ReLU or linear hidden layers.

    Raises:
        TypeError: If the estimator is not such an object.
        ValueError: If it is not fitted, or its activation is not piecewise linear.
    """
    if not {"activation", "hidden_layer_sizes"} <= set(dir(estimator)):
        raise TypeError(
            f"from_sklearn reads MLPClassifier and MLPRegressor; got {type(estimator).__name__}."
        )
    if not hasattr(estimator, "coefs_"):
        raise ValueError(f"this {type(estimator).__name__} is not fitted; call fit first.")
    layers = [(W.T, b) for W, b in zip(estimator.coefs_, estimator.intercepts_, strict=True)]
    if estimator.out_activation_ not in _OUTPUT_ACTIVATIONS:
        raise UnsupportedModelError(
            f"the output activation {estimator.out_activation_!r} is not read; pindown reads "
            f"{', '.join(_OUTPUT_ACTIVATIONS)}. A regressor has one of them with loss='squared_error'."
        )
    output_activation = _OUTPUT_ACTIVATIONS[estimator.out_activation_]
    if estimator.activation == "relu":
        net = ReluNetwork.from_layers(layers, output_activation=output_activation)
    elif estimator.activation == "identity":
        net = _linear_network(layers, output_activation)
    else:
        raise UnsupportedModelError(
            f"the hidden activation {estimator.activation!r} is not piecewise linear; "
            "fit with activation='relu' or 'identity'."
        )
    return replace(net, notes=_require_agreement(net, estimator))


def _require_agreement(net: ReluNetwork, estimator: Any) -> tuple[str, ...]:
    """Compare the network with what the estimator predicts."""

    def reference(row: Array, change: Any) -> Array:
        X = (row if change is None else change(row))[None]
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")  # rows without the names of columns
            if not hasattr(estimator, "predict_proba"):
                return np.asarray(estimator.predict(X), dtype=np.float64).ravel()
            shares = np.asarray(estimator.predict_proba(X), dtype=np.float64).ravel()
        # With two classes the network has the output of the second one.
        return shares[1:] if net.out_features == 1 and shares.size == 2 else shares

    try:
        return require_agreement(net, reference, activated=True)
    except DisagreementError as error:
        raise UnsupportedModelError(f"the estimator was not read as what it is: {error}") from None


def _linear_network(layers: list[tuple[Any, Any]], output_activation: str | None) -> ReluNetwork:
    """Merge layers with nothing between them into one affine map."""
    maps = [ReluNetwork.from_layers([layer]) for layer in layers]
    total = maps[0]
    for following in maps[1:]:
        total = following @ total
    return ReluNetwork.from_layers(total.layers, output_activation=output_activation)
