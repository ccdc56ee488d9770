r"""The classifier that an infinitely long trained two-layer network becomes, without training it."""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import ArrayLike
from sklearn.base import BaseEstimator, ClassifierMixin
from sklearn.utils.multiclass import check_classification_targets, type_of_target
from sklearn.utils.validation import check_is_fitted, validate_data

from pindown.affine import Array
from pindown.bias.margins.hard_margin import NoMarginError, max_margin
from pindown.validation import positive


class TwoNeuronMaxMargin(ClassifierMixin, BaseEstimator):  # type: ignore[misc]
    r"""Two neurons, each the max-margin vector of one class.

    .. math:: x \mapsto \operatorname{sign}\bigl(\rho(\langle w_+, x\rangle) - \rho(\langle w_-,
              x\rangle)\bigr)

    A sample on which neither neuron is active, or both alike, goes to the class whose product is larger.

    Args:
        slack_price: Where zero lies in the hull of a class there is no margin; then
            :math:`\lVert w\rVert^2 + C\sum_i\xi_i^2` under :math:`\langle w, x_i\rangle \ge 1 - \xi_i`
            is least, with this C and samples in units of the largest entry of their class. It has no
            effect on classes that have one.

    Attributes:
        classes_: The two labels, the negative one first.
        coef_: :math:`w_-` and :math:`w_+` (2, d).
        margins_: Their margins, NaN for a class without one.
        n_features_in_: d.

    Example:
        >>> model = TwoNeuronMaxMargin().fit([[2.0, 1.0], [1.0, 2.0], [-1.0, 0.0]], ["up", "up", "down"])
        >>> model.predict([[3.0, 3.0], [-2.0, 0.5]]).tolist(), model.coef_.round(3).tolist()
        (['up', 'down'], [[-1.0, 0.0], [0.333, 0.333]])

    Phuong 2021, Corollary 3.1.
    """

    def __init__(self, slack_price: float = 1e3) -> None:
        self.slack_price = slack_price

    def fit(self, X: ArrayLike, y: ArrayLike) -> TwoNeuronMaxMargin:
        """Solve the two max-margin problems.

        Args:
            X: Samples (n, d).
            y: Labels of two classes.

        Returns:
            The estimator.
        """
        points, labels = validate_data(self, X, y, dtype=np.float64)
        check_classification_targets(labels)
        positive("slack_price", self.slack_price)
        self.classes_ = np.unique(labels)
        if len(self.classes_) != 2:
            target = type_of_target(y, input_name="y")
            what = f"{len(self.classes_)} class" + ("es" if len(self.classes_) > 1 else "")
            raise ValueError(
                f"Only binary classification is supported. The type of the target is {target}: {what}."
            )
        found = [self._vector(points[labels == name]) for name in self.classes_]
        self.coef_ = np.array([w for w, _ in found])
        self.margins_ = np.array([margin for _, margin in found])
        return self

    def decision_function(self, X: ArrayLike) -> Array:
        """Return the difference of the two neurons, and a trace of their products where it is zero."""
        check_is_fitted(self)
        points = validate_data(self, X, dtype=np.float64, reset=False)
        values = points @ self.coef_.T
        outputs = np.maximum(values, 0.0)
        score = outputs[:, 1] - outputs[:, 0]
        tie = values[:, 1] - values[:, 0]
        # Below every output that differs, and without a jump for samples that both neurons miss.
        return np.asarray(np.where(score == 0.0, np.finfo(np.float64).eps * tie, score))

    def predict(self, X: ArrayLike) -> Any:
        """Return the label of each sample."""
        positive = self.decision_function(X) > 0
        return self.classes_[positive.astype(int)]

    def _vector(self, points: Array) -> tuple[Array, float]:
        ones = np.ones(len(points))
        try:
            found = max_margin(points, ones)
            return found.w, found.margin
        except NoMarginError:
            # Squared slack is a margin in more dimensions: one for each sample.
            scale = float(np.abs(points).max()) or 1.0
            room = np.eye(len(points)) / self.slack_price**0.5
            lifted = max_margin(np.hstack([points / scale, room]), ones)
            return lifted.w[: points.shape[1]] / scale, float("nan")

    def __sklearn_tags__(self) -> Any:
        tags = super().__sklearn_tags__()
        tags.classifier_tags.multi_class = False
        return tags
