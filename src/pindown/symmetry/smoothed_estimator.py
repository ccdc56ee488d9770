"""Any scikit-learn estimator, averaged over a group when it predicts."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
from numpy.typing import NDArray
from sklearn.base import BaseEstimator, MetaEstimatorMixin, clone, is_classifier, is_regressor
from sklearn.linear_model import Ridge
from sklearn.utils import check_random_state, get_tags
from sklearn.utils.metaestimators import available_if
from sklearn.utils.validation import check_is_fitted, validate_data

from pindown.affine import Array
from pindown.symmetry.groups import Group, cyclic
from pindown.symmetry.smoothing import chosen_elements, kind_of_average

# The order of a sum over the orbit changes its last digits, and must not decide between equal classes.
TIE = 1e-12
_SCORES = ("predict_proba", "decision_function")


def _can(method: str) -> Callable[[Any], bool]:
    def check(self: Any) -> bool:
        inner = getattr(self, "estimator_", None)
        inner = self._inner() if inner is None else inner
        # The class of the largest mean score need not be that of the largest mean probability.
        if method == "decision_function" and hasattr(inner, "predict_proba"):
            return False
        return is_classifier(inner) and hasattr(inner, method)

    return check


class GroupSmoothed(MetaEstimatorMixin, BaseEstimator):  # type: ignore[misc]
    r"""A regressor or classifier whose answers do not change when a group moves the sample.

    Regressors answer with the mean of their predictions over the orbit; classifiers with the class of
    the largest mean probability, or mean score if they have no probabilities, or most votes if they have
    neither. Fitting is left as it is.

    Args:
        estimator: What is fitted; None for ``Ridge()``. Wrap one that is fitted already in
            ``sklearn.frozen.FrozenEstimator``.
        group: The group with its action on rows of X, or a function that makes one for a number of
            features, such as ``cyclic``; None for no symmetry.
        elements: Indices of elements to average over, for a part of the group; None for all.
        n_elements: Average over so many elements drawn at random: then invariance is approximate.
        random_state: Seed of the draw.

    Attributes:
        estimator_: The fitted estimator.
        group_: The group.
        elements_: Indices of the elements that are averaged over.
        kind_: ``"exact"`` if these are all and the action is exact, else ``"estimate"``.
        classes_: Classes, if it is a classifier.

    Example:
        >>> from sklearn.neighbors import KNeighborsRegressor
        >>> X, y = np.array([[1.0, 0.0, 0.0], [2.0, 3.0, 4.0]]), np.array([1.0, 9.0])
        >>> model = GroupSmoothed(KNeighborsRegressor(1), group=cyclic).fit(X, y)
        >>> model.predict([[0.0, 1.0, 0.0], [0.0, 0.0, 1.0]]).tolist()
        [1.0, 1.0]

    Lecture course, section on invariant function classes.
    """

    def __init__(
        self,
        estimator: Any = None,
        group: Any = None,
        *,
        elements: Any = None,
        n_elements: int | None = None,
        random_state: Any = 0,
    ) -> None:
        self.estimator = estimator
        self.group = group
        self.elements = elements
        self.n_elements = n_elements
        self.random_state = random_state

    def _inner(self) -> Any:
        return Ridge() if self.estimator is None else self.estimator

    def __sklearn_tags__(self) -> Any:
        tags, inner = super().__sklearn_tags__(), get_tags(self._inner())
        tags.estimator_type = inner.estimator_type
        tags.classifier_tags, tags.regressor_tags = inner.classifier_tags, inner.regressor_tags
        tags.target_tags = inner.target_tags
        if inner.estimator_type == "classifier":
            tags.target_tags.multi_output = False
            tags.classifier_tags.multi_label = False
        return tags

    def fit(self, X: Any, y: Any, **parameters: Any) -> GroupSmoothed:
        """Fit the estimator; further parameters, such as ``sample_weight``, are its own."""
        inner = self._inner()
        if not (is_regressor(inner) or is_classifier(inner)):
            raise TypeError(f"estimator must be a regressor or a classifier; got {inner!r}.")
        answers = {"multi_output": True, "y_numeric": True} if is_regressor(inner) else {}
        X, y = validate_data(self, X, y, dtype=np.float64, **answers)
        self.group_ = self._made_group(X)
        seed = check_random_state(self.random_state).randint(2**31 - 1)
        self.elements_ = chosen_elements(self.group_, self.elements, self.n_elements, seed)
        self.kind_ = kind_of_average(self.group_, self.elements_)
        self.estimator_ = clone(inner).fit(X, y, **parameters)
        if hasattr(self.estimator_, "classes_"):
            self.classes_ = self.estimator_.classes_
        return self

    def _made_group(self, X: Array) -> Group:
        if self.group is None:
            return cyclic(1).acting_by(np.eye(X.shape[1])[None])
        made = callable(self.group) and not isinstance(self.group, Group)
        group = self.group(X.shape[1]) if made else self.group
        if not isinstance(group, Group):
            raise TypeError(f"group must be a Group or a function that makes one; got {self.group!r}.")
        moved = group.act(0, X[:1])
        if moved.shape != X[:1].shape:
            raise ValueError(f"{group.name} makes rows of shape {moved.shape[1:]} out of {X.shape[1:]}.")
        return group

    def _mean(self, method: str, X: Any) -> Array:
        return self._means(method, X)[0]

    def _means(self, method: str, X: Any) -> tuple[Array, Array]:
        """Return the mean answers, and the mean of their sizes: what rounding is measured by."""
        check_is_fitted(self)
        X = validate_data(self, X, dtype=np.float64, reset=False)
        answer = getattr(self.estimator_, method)
        total: Any = 0.0
        sizes: Any = 0.0
        for g in self.elements_:
            answers = np.asarray(answer(self.group_.act(g, X)))
            if method == "predict" and is_classifier(self.estimator_):
                answers = answers[:, None] == self.classes_  # nothing to average but votes
            total, sizes = total + answers, sizes + np.abs(answers)
        return np.asarray(total) / len(self.elements_), np.asarray(sizes) / len(self.elements_)

    def predict(self, X: Any) -> NDArray[Any]:
        """Return the mean answer over the orbit of each row, or the class with the largest mean."""
        check_is_fitted(self)
        if not is_classifier(self.estimator_):
            return self._mean("predict", X)
        known = [name for name in _SCORES if hasattr(self.estimator_, name)]
        scores, sizes = self._means(known[0] if known else "predict", X)
        if scores.ndim == 1:
            return np.asarray(self.classes_)[(scores > TIE * sizes).astype(int)]
        # The rounding of each row by itself: an answer must not depend on the others of its batch.
        rounding = TIE * sizes.max(axis=1, keepdims=True)
        best = scores >= scores.max(axis=1, keepdims=True) - rounding
        return np.asarray(self.classes_)[best.argmax(axis=1)]

    @available_if(_can("predict_proba"))  # type: ignore[untyped-decorator]
    def predict_proba(self, X: Any) -> Array:
        """Return the mean probabilities over the orbit of each row."""
        return self._mean("predict_proba", X)

    @available_if(_can("decision_function"))  # type: ignore[untyped-decorator]
    def decision_function(self, X: Any) -> Array:
        """Return the mean scores over the orbit of each row, for estimators without probabilities."""
        return self._mean("decision_function", X)

    def score(self, X: Any, y: Any, sample_weight: Any = None) -> float:
        """Return the accuracy of a classifier or the coefficient of determination of a regressor."""
        from sklearn.metrics import accuracy_score, r2_score

        measure = accuracy_score if is_classifier(self._inner()) else r2_score
        return float(measure(y, self.predict(X), sample_weight=sample_weight))
