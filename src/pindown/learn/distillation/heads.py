"""A linear head on given features: what distillation leaves of a classifier."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from pindown.affine import Array
from pindown.learn.distillation.labels import answers, probabilities
from pindown.learn.distillation.teachers import features_of
from pindown.network import ReluNetwork


@dataclass(frozen=True, eq=False)
class DistilledHead:
    """A linear classifier on features, with the teacher's classes.

    Attributes:
        coef_: Weights, (d,) for two classes, or (k, d).
        intercept_: One number, or k.
        classes_: Names of the classes.
        features: What turns inputs into features; None if they are the features.

    >>> head = DistilledHead(np.array([1.0, -1.0]), 0.0, np.array(["no", "yes"]))
    >>> head.predict([[3.0, 1.0], [0.0, 1.0]]).tolist()
    ['yes', 'no']
    """

    coef_: Array
    intercept_: Any
    classes_: NDArray[Any]
    features: Any = None

    def decision_function(self, X: Any) -> Array:
        """Return logits, (n,) for two classes, or (n, k)."""
        table = features_of(self.features, X)
        if table.shape[1] != self.coef_.shape[-1]:
            raise ValueError(f"the head takes {self.coef_.shape[-1]} features; got {table.shape[1]}.")
        return np.asarray(table @ self.coef_.T + self.intercept_)

    def predict_proba(self, X: Any) -> Array:
        """Return the probability of each class, (n, k)."""
        return probabilities(self.decision_function(X))

    def predict(self, X: Any) -> NDArray[Any]:
        """Return the likeliest class of each input."""
        return np.asarray(self.classes_[answers(self.decision_function(X))])

    def score(self, X: Any, y: Any) -> float:
        """Return the accuracy on labelled inputs."""
        return float(np.mean(self.predict(X) == np.asarray(y)))

    def to_network(self) -> ReluNetwork:
        """Return the head as a network of one affine layer, from features to logits."""
        return ReluNetwork.from_layers([(np.atleast_2d(self.coef_), np.atleast_1d(self.intercept_))])

    def to_torch(self) -> Any:
        """Return the head as a float64 ``torch.nn.Linear``, from features to logits."""
        import torch

        weights, bias = np.atleast_2d(self.coef_), np.atleast_1d(self.intercept_)
        layer = torch.nn.Linear(weights.shape[1], weights.shape[0], dtype=torch.float64)
        with torch.no_grad():
            layer.weight.copy_(torch.from_numpy(weights))
            layer.bias.copy_(torch.from_numpy(bias))
        return layer

    def __str__(self) -> str:
        return f"linear head on {self.coef_.shape[-1]} features for {len(self.classes_)} classes"
