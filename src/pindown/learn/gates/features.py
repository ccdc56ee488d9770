"""What gate learners share: inputs of norm at most one, an intercept as one more input, the network."""

from __future__ import annotations

from typing import Any

import numpy as np
from sklearn.utils.validation import check_is_fitted, validate_data

from pindown.affine import Array
from pindown.learn.gates.links import Link, as_link
from pindown.network import ReluNetwork

_FAR = 1e4  # times the fitted norm: weights that far away are no explanation of the labels
_NOTICED = 1e-12  # of the squared size of labels: a risk below is rounding
_LARGEST = 1e70  # its fourth power, which the constants need, is still a float64


def scaled_features(X: Array, fit_intercept: bool, scale: float) -> Array:
    """Return the inputs divided by the scale, with a last column for the intercept if there is one."""
    Z = X / scale
    return np.column_stack([Z, np.full(len(Z), 1 / scale)]) if fit_intercept else np.ascontiguousarray(Z)


def check_range(X: Array, y: Array) -> None:
    """Refuse numbers whose powers leave the range of float64.

    Raises:
        ValueError: If inputs are not zero and the largest is not between 1e-70 and 1e70, or a label is
            larger.

    Example:
        >>> check_range(np.array([[1e99]]), np.array([1.0]))
        Traceback (most recent call last):
        ValueError: inputs must reach between 1e-70 and 1e70, labels not more; got 1e+99, 1: rescale.
    """
    inputs, labels = float(np.abs(X).max()), float(np.abs(y).max())
    if inputs > _LARGEST or 0 < inputs < 1 / _LARGEST or labels > _LARGEST:
        raise ValueError(
            "inputs must reach between 1e-70 and 1e70, labels not more; "
            f"got {inputs:.3g}, {labels:.3g}: rescale."
        )


def is_unexplained(residual: Array, pull: Array, w: Array, y: Array, lipschitz: float) -> bool:
    r"""Whether a gate that gave these labels without noise would be absurdly far from the weights w.

    .. math:: \langle \text{pull}, w_* - w \rangle \ge \text{risk} / L,

    so that a large mean squared error under a tiny pull of GLM-Tron needs :math:`w_*` far away.

    Args:
        residual: Labels minus answers.
        pull: The mean of residuals times inputs, for inputs of norm at most one.
        w: The weights.
        y: The labels.
        lipschitz: L.

    Mukherjee 2020, proof of Lemma 3.5.1.
    """
    risk = float(np.mean(residual**2))
    reach = float(np.linalg.norm(w)) + float(np.sqrt(risk))
    noticed = risk > _NOTICED * float(np.mean(y**2))
    return noticed and risk > _FAR * lipschitz * float(np.linalg.norm(pull)) * reach


class Gate:
    """A fitted gate: weights, intercept, answers, and the network they make."""

    fit_intercept: bool
    start: Any
    scale_: float
    n_features_in_: int
    coef_: Array
    intercept_: float

    def __sklearn_tags__(self) -> Any:
        tags = super().__sklearn_tags__()  # type: ignore[misc]
        tags.regressor_tags.poor_score = True  # a gate has one sign: it fits what a gate could have said
        return tags

    @property
    def network_(self) -> ReluNetwork:
        """The gate as a network."""
        if not hasattr(self, "coef_"):
            raise AttributeError("network_ exists after fit.")
        return self._link().network(self.coef_, self.intercept_)

    def _link(self) -> Link:
        return as_link("relu")

    def _largest_norm(self, X: Array) -> float:
        """Return the largest norm of an input, the intercept's one included; 1 if all are zero."""
        biggest = float(np.abs(X).max())
        if biggest == 0:
            return 1.0
        # Divided out first: the square of a huge number overflows.
        squares = ((X / biggest) ** 2).sum(axis=1) + (float(self.fit_intercept) / biggest) ** 2
        return biggest * float(np.sqrt(squares.max()))

    def _first_weights(self, n: int) -> Array:
        if self.start is None:
            return np.zeros(n)
        start = np.array(self.start, dtype=np.float64)
        if start.shape != (n,) or not np.isfinite(start).all():
            raise ValueError(
                f"start must be {n} finite numbers, the intercept last if fitted; "
                f"got shape {start.shape}."
            )
        return start

    def _set_weights(self, scaled: Array) -> None:
        """Publish weights that belong to scaled inputs."""
        w = scaled / self.scale_
        self.coef_ = w[:-1].copy() if self.fit_intercept else w
        self.intercept_ = float(w[-1]) if self.fit_intercept else 0.0

    def predict(self, X: Any) -> Array:
        """Return the gate's answers."""
        check_is_fitted(self)
        X = validate_data(self, X, dtype=np.float64, reset=False)
        return self._link()(X @ self.coef_ + self.intercept_)
