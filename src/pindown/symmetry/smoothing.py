r"""Make any model invariant, or equivariant, by averaging it over a group.

.. math:: S_Gf(x) = \frac1{|G|} \sum_g \rho(g)^{-1} f(gx), \qquad \rho = 1 \text{ for invariance.}

:math:`S_G` is a projection: it leaves invariant functions alone, and doing it twice changes nothing. If
the data are as likely to be moved as not and the truth is invariant, it never hurts:
:math:`E|f - f_*|^2 - E|S_Gf - f_*|^2 = E\,\mathrm{Var}_g f(gx)`.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray
from sklearn.base import BaseEstimator, MetaEstimatorMixin, clone, is_classifier, is_regressor
from sklearn.linear_model import Ridge
from sklearn.utils import check_random_state, get_tags
from sklearn.utils.metaestimators import available_if
from sklearn.utils.validation import check_is_fitted, validate_data

from pindown.affine import Array
from pindown.evidence import Kind
from pindown.symmetry.groups import Group, cyclic
from pindown.validation import integer

# The order of a sum over the orbit changes its last digits, and must not decide between equal classes.
TIE = 1e-12
_SCORES = ("predict_proba", "decision_function")


@dataclass(frozen=True, eq=False)
class GroupAverage:
    """A function averaged over a group, or over some of its elements.

    Attributes:
        model: Maps samples ``(n, ...)`` to outputs ``(n, ...)``.
        group: The group with its action on samples.
        output_rep: The group with its action on outputs; None for invariance.
        elements: Indices of the elements that are averaged over.

    >>> from pindown.symmetry import cyclic
    >>> average = smoothed(lambda X: X[:, 0], cyclic(3))
    >>> print(average)
    average over all 3 elements of C3: invariant (exact)
    >>> average([[1.0, 2.0, 6.0], [6.0, 1.0, 2.0]]).tolist()
    [3.0, 3.0]

    Lecture course, section on invariant function classes.
    """

    model: Callable[[Array], Any] = field(repr=False)
    group: Group
    output_rep: Group | None
    elements: tuple[int, ...]

    @property
    def kind(self) -> Kind:
        """``"exact"`` if all elements are averaged over and the action is exact, else ``"estimate"``."""
        return kind_of_average(self.group, self.elements)

    def __call__(self, X: ArrayLike) -> Array:
        """Return the averaged outputs."""
        samples = np.asarray(X, dtype=float)
        total: Any = 0.0
        for g in self.elements:
            # Turned pictures have negative strides, which torch refuses.
            moved = np.ascontiguousarray(self.group.act(g, samples))
            outputs = _array(self.model(moved))
            if self.output_rep is not None:
                outputs = self.output_rep.act(int(self.group.inverses[g]), outputs)
            total = total + outputs
        return np.asarray(total) / len(self.elements)

    def __str__(self) -> str:
        what = "invariant" if self.output_rep is None else "equivariant"
        if self.kind == "exact":
            return f"average over all {self.group.order} elements of {self.group.name}: {what} (exact)"
        return (
            f"average over {len(self.elements)} of the {self.group.order} elements of "
            f"{self.group.name}: nearly {what} (estimate)"
        )


def smoothed(
    model: Any,
    group: Group,
    output_rep: Group | None = None,
    *,
    elements: Sequence[int] | None = None,
    n_elements: int | None = None,
    random_state: int = 0,
) -> Any:
    r"""Return a model averaged over a group: invariant, or equivariant if outputs move too.

    Args:
        model: A function of samples, or a torch module (which stays one, with gradients; its group must
            act by matrices). For scikit-learn see :class:`GroupSmoothed`.
        group: The group with its action on inputs.
        output_rep: The same group with its action on outputs; None to make the model invariant.
        elements: Indices of elements to average over, for a part of the group; None for all.
        n_elements: Average over so many elements drawn without replacement: then the symmetry holds
            only up to an error that falls with the square root of their number.
        random_state: Seed of the draw.

    Returns:
        A :class:`GroupAverage`, or a torch module.

    Raises:
        ValueError: If the groups differ or the elements are not of the group.
        TypeError: If the model cannot be called.

    Example:
        >>> from pindown.symmetry import dihedral
        >>> square = dihedral(4).permuting()
        >>> smoothed(np.sort, square, square)([[4.0, 1.0, 3.0, 2.0]]).round(9).tolist()
        [[2.5, 2.5, 2.5, 2.5]]

    Lecture course, section on invariant function classes: the smoothing operator.
    """
    if output_rep is not None and not np.array_equal(group.table, output_rep.table):
        raise ValueError(
            f"inputs and outputs must move by one group; got {group.name} and {output_rep.name}."
        )
    chosen = _chosen_elements(group, elements, n_elements, random_state)
    if hasattr(model, "forward") and hasattr(model, "register_buffer"):
        from pindown.symmetry.layers.linear import SmoothedModule

        return SmoothedModule(model, group, output_rep, chosen)
    if not callable(model):
        raise TypeError(
            f"model must be a function or a torch module; got {type(model).__name__}. Estimators go "
            f"into GroupSmoothed."
        )
    return GroupAverage(model, group, output_rep, chosen)


def orbit_variance(model: Callable[[Array], Any], group: Group, X: ArrayLike) -> Array:
    r"""Return :math:`\mathrm{Var}_g f(gx)` at each sample: what smoothing takes off the squared error.

    >>> from pindown.symmetry import cyclic
    >>> orbit_variance(lambda X: X[:, 0], cyclic(2), [[1.0, 3.0], [2.0, 2.0]]).tolist()
    [1.0, 0.0]

    Lecture course, section on invariant function classes; the identity is ours.
    """
    samples = np.asarray(X, dtype=float)
    moved = (np.ascontiguousarray(group.act(g, samples)) for g in range(group.order))
    outputs = np.stack([_array(model(images)) for images in moved])
    spread = outputs.var(axis=0)
    return spread.reshape(len(samples), -1).sum(axis=1)


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
        self.elements_ = _chosen_elements(self.group_, self.elements, self.n_elements, seed)
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


def kind_of_average(group: Group, elements: Sequence[int]) -> Kind:
    """Return ``"exact"`` for every element once, moved by an exact action, else ``"estimate"``.

    >>> from pindown.symmetry import cyclic
    >>> kind_of_average(cyclic(3), (0, 1, 2)), kind_of_average(cyclic(3), (0, 1))
    ('exact', 'estimate')
    """
    whole = sorted(elements) == list(range(group.order))
    return "exact" if whole and not group.approximate else "estimate"


def _chosen_elements(
    group: Group, elements: Sequence[int] | None, n_elements: int | None, random_state: Any
) -> tuple[int, ...]:
    """Return the indices to average over, or say what is wrong with them."""
    if elements is not None and n_elements is not None:
        raise ValueError("give elements or n_elements, not both.")
    if elements is not None:
        given = np.asarray(elements)
        whole = given.ndim == 1 and given.size and given.dtype.kind in "iu"
        inside = whole and given.min() >= 0 and given.max() < group.order
        if not inside or len(np.unique(given)) < len(given):
            raise ValueError(
                f"elements must be indices of {group.name}, 0 to {group.order - 1}, each once; got "
                f"{elements!r}."
            )
        return tuple(given.tolist())
    if n_elements is None:
        return tuple(range(group.order))
    if integer("n_elements", n_elements) >= group.order:
        return tuple(range(group.order))
    drawn = np.random.default_rng(random_state).choice(group.order, int(n_elements), replace=False)
    return tuple(sorted(drawn.tolist()))


def _array(outputs: Any) -> Array:
    return np.asarray(outputs.detach().cpu() if hasattr(outputs, "detach") else outputs, dtype=float)
