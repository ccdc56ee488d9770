"""Fitted scikit-learn multi-layer perceptrons as networks."""

from __future__ import annotations

from typing import Any

from pindown.errors import UnsupportedModelError
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
        return ReluNetwork.from_layers(layers, output_activation=output_activation)
    if estimator.activation == "identity":
        return _linear_network(layers, output_activation)
    raise UnsupportedModelError(
        f"the hidden activation {estimator.activation!r} is not piecewise linear; "
        "fit with activation='relu' or 'identity'."
    )


def _linear_network(layers: list[tuple[Any, Any]], output_activation: str | None) -> ReluNetwork:
    """Merge layers with nothing between them into one affine map."""
    maps = [ReluNetwork.from_layers([layer]) for layer in layers]
    total = maps[0]
    for following in maps[1:]:
        total = following @ total
    return ReluNetwork.from_layers(total.layers, output_activation=output_activation)
