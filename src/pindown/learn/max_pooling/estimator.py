"""A classifier with max pooling over patches, trained as the theorem says."""

from __future__ import annotations

import warnings
from math import ceil, log2
from typing import Any

import numpy as np
import numpy.typing as npt
from sklearn.base import BaseEstimator, ClassifierMixin
from sklearn.utils import check_random_state
from sklearn.utils.multiclass import check_classification_targets
from sklearn.utils.validation import check_is_fitted, validate_data

from pindown.affine import Array
from pindown.guarantees.bounds import linear_margin_bound, max_pooling_bound
from pindown.learn.max_pooling._max_margin import max_margin_descent
from pindown.learn.max_pooling.layerwise import (
    LayerwiseSchedule,
    data_assumptions,
    independent_halves,
    layerwise_schedule,
    start_assumptions,
    summarised,
    unit_sets,
)
from pindown.learn.max_pooling.pooling import (
    class_directions,
    first_phase,
    initial_weights,
    joint_training,
    longest_patch,
    max_pool_network,
    pooled,
)
from pindown.learn.max_pooling.tuning import JOINT_UNITS, MAX_UNITS
from pindown.validation import choice, integer, positive, probability

# Patches of one length differ by rounding; points may be this much longer before a doubling is counted.
_ROOM = 1 + 1e-9
# The theorem is about at least this many patterns.
_MIN_PATTERNS = 3
_SCHEDULES = ("layerwise", "joint")


class MaxPoolClassifier(ClassifierMixin, BaseEstimator):  # type: ignore[misc]
    r"""Two classes told apart by which pattern a point holds, wherever it holds it.

    The model is :math:`N(x) = \sum_{i \le k} a_i \max_j \mathrm{relu}(w_i \cdot x[j])` over the patches
    :math:`x[j]`. With ``schedule="layerwise"`` the units are trained on half of the data, then the
    output weights on the other half, towards the largest margin, with the constants of the theorem.

    Args:
        n_patches: Patches in each row of a flat X; None for 1, or as X of three axes has.
        n_units: Units k; None for 8 d^3, d the patch size, at most 4096 (64 for joint training).
        schedule: ``"layerwise"`` as in the theorem, or ``"joint"``: both layers together by Adam.
        n_steps: Steps of the first phase.
        step: Its step size; None for the theorem's.
        radius: Norm of the units at the start; None for the theorem's.
        max_iter: Most steps of the second phase; epochs of joint training are at most a tenth.
        tol: The second phase ends when the margin is within this share of a proved upper bound.
        learning_rate: Learning rate of joint training.
        delta: Probability with which the error bound may fail, beside the lemmas.
        device: Where ``"joint"`` trains, as torch names it; the rest is done on the processor. Only
            ``"cpu"`` is tested.
        random_state: Seed of the start and of the halves.
        verbose: 0 for silence; else a progress bar after two seconds, on a terminal. An interruption
            keeps what was learnt so far, with a warning.

    Attributes:
        network_: The classifier's score as a :class:`pindown.ReluNetwork`, exactly.
        units_: W, (k, patch size), for patches divided by ``scale_``.
        output_weights_: a, (k,).
        scale_: Largest norm of a patch in the data of the first phase.
        schedule_: Constants used, with the theorem's conditions (layerwise only, else None).
        patterns_: Direction that most weight of each class goes to, a row for each class.
        pattern_shares_: The share of that class's weight that goes there.
        margin_: Least margin on the second half, divided by the norm of all units; can be negative.
        margin_upper_: No output weights have a larger one (layerwise only, else NaN).
        n_iter_: Steps of the second phase, or epochs.
        guarantee_: Which assumptions were met and the bound on the test error.
        classes_: The two classes; the second is the positive one.
        n_patches_: Patches of a point.

    >>> from pindown.datasets.synthetic import pattern_detection
    >>> X, y, patterns = pattern_detection(200, n_patterns=4)
    >>> model = MaxPoolClassifier().fit(X, y)
    >>> model.score(*pattern_detection(500, patterns=patterns, random_state=1)[:2])
    1.0
    >>> bool((model.patterns_[1] @ patterns[0]) > 0.99)  # the pattern of class 1 was found
    True

    Brutzkus and Globerson 2021, Theorem 5.1, with the pattern learning of its proof.
    """

    def __init__(
        self,
        n_patches: int | None = None,
        *,
        n_units: int | None = None,
        schedule: str = "layerwise",
        n_steps: int = 20,
        step: float | None = None,
        radius: float | None = None,
        max_iter: int = 2000,
        tol: float = 0.05,
        learning_rate: float = 0.01,
        delta: float = 0.05,
        device: str = "cpu",
        random_state: Any = 0,
        verbose: int = 1,
    ) -> None:
        self.n_patches = n_patches
        self.n_units = n_units
        self.schedule = schedule
        self.n_steps = n_steps
        self.step = step
        self.radius = radius
        self.max_iter = max_iter
        self.tol = tol
        self.learning_rate = learning_rate
        self.delta = delta
        self.device = device
        self.random_state = random_state
        self.verbose = verbose

    def __sklearn_tags__(self) -> Any:
        tags = super().__sklearn_tags__()
        tags.classifier_tags.multi_class = False
        tags.input_tags.three_d_array = True
        return tags

    def fit(self, X: Any, y: Any) -> MaxPoolClassifier:
        """Train on points of shape (samples, patches, size), or flat rows of ``n_patches`` patches."""
        self._check_parameters()
        rows, n_patches = _flat(X)
        rows, y = validate_data(self, rows, y, dtype=np.float64)
        check_classification_targets(y)
        self.classes_, codes = np.unique(y, return_inverse=True)
        if len(self.classes_) != 2:
            found = "one class" if len(self.classes_) == 1 else f"{len(self.classes_)} classes"
            raise ValueError(
                f"Only binary classification is supported: two classes are needed, y has {found}. "
                "The classifier needs samples of two classes."
            )
        self.n_patches_ = self._patches(n_patches)
        points = rows.reshape(len(rows), self.n_patches_, -1)
        rng = check_random_state(self.random_state)
        train = self._layerwise if self.schedule == "layerwise" else self._joint
        signs = np.where(codes == 1, 1.0, -1.0)
        self.schedule_: LayerwiseSchedule | None = None
        train(points, signs, np.random.default_rng(rng.randint(2**31 - 1)))
        self.patterns_, self.pattern_shares_ = class_directions(self.units_, self.output_weights_)
        self.network_ = max_pool_network(
            self.units_ / self.scale_, self.output_weights_, self.n_patches_
        )
        return self

    def decision_function(self, X: Any) -> Array:
        """Return the scores, positive for the second class."""
        check_is_fitted(self)
        rows, n_patches = _flat(X)
        if n_patches not in (None, self.n_patches_):
            raise ValueError(
                f"points have {n_patches} patches; fitted were points of {self.n_patches_}."
            )
        rows = validate_data(self, rows, dtype=np.float64, reset=False)
        points = rows.reshape(len(rows), self.n_patches_, -1) / self.scale_
        return pooled(points, self.units_) @ self.output_weights_

    def predict(self, X: Any) -> npt.NDArray[Any]:
        """Return the class of each point."""
        check_is_fitted(self)
        return self.classes_[(self.decision_function(X) > 0).astype(int)]

    def to_network(self) -> Any:
        """Return ``network_``, the score written with ReLUs."""
        check_is_fitted(self)
        return self.network_

    def _layerwise(self, X: Array, y: Array, rng: np.random.Generator) -> None:
        first, second, independent = independent_halves(y, rng)
        # What the units are made of must not depend on the second half, or its margin would prove less.
        self.scale_ = longest_patch(X[first])
        X = X / self.scale_
        known = data_assumptions(X[first], y[first])[1]
        d = X.shape[2] if known is None else len(known)
        k = min(8 * d**3, MAX_UNITS) if self.n_units is None else self.n_units
        schedule = self.schedule_ = layerwise_schedule(
            d, n_units=k, n_steps=self.n_steps, step=self.step, radius=self.radius
        )
        W, a = initial_weights(schedule, X.shape[2], rng)
        checks, patterns = data_assumptions(X, y)
        if patterns is not None:
            checks["the first half shows all patterns"] = len(patterns) == d
            checks |= start_assumptions(schedule, y[first], unit_sets(W, a, patterns))
        self.units_, finished = self._first_phase(X[first], y[first], W, a)
        Z = pooled(X[second], self.units_)
        reach = float(np.linalg.norm(self.units_))  # |z(x)| is at most this for patches of norm one
        if not np.isfinite(reach) or not np.isfinite(Z).all():
            raise ValueError("units overflowed in the first phase; give a smaller step or radius.")
        found = max_margin_descent(
            Z, y[second], max_iter=self.max_iter if finished else 1, tol=self.tol, verbose=self.verbose
        )
        self.output_weights_ = found.weights if found.weights.any() else a
        self.margin_, self.margin_upper_ = found.margin / reach, found.upper / reach
        self.n_iter_ = found.n_iter
        checks["halves are independent"] = independent
        if not (finished and not found.interrupted):
            checks["training was not interrupted"] = False
        bound, confidence = 1.0, 1.0 - self.delta
        if independent:
            # Longer points count as errors. How much longer they may be is a power of two, each with
            # its share of delta, so that looking at the second half for it costs little.
            doublings = max(0, ceil(log2(longest_patch(X[second]) / _ROOM)))
            share = self.delta / 2 ** (doublings + 2)
            room = _ROOM * reach * 2**doublings
            bound = linear_margin_bound(found.margin, room, len(second), share).value
        if patterns is not None and all(checks.values()) and d >= _MIN_PATTERNS:
            by_theorem = max_pooling_bound(d, len(second), self.delta / 2, n_first=len(first))
            if by_theorem.value < bound:
                bound = by_theorem.value
                confidence = 1.0 - self.delta / 2 - by_theorem.delta
        self.guarantee_ = summarised(checks, patterns, bound, max(confidence, 0.0))

    def _first_phase(self, X: Array, y: Array, W: Array, a: Array) -> tuple[Array, bool]:
        """Return the units and whether all steps were taken."""
        assert self.schedule_ is not None
        last = W

        def keep(t: int, units: Array, outputs: Array) -> None:
            nonlocal last
            last = units.copy()

        try:
            return first_phase(X, y, W, a, self.schedule_, keep, self.verbose), True
        except KeyboardInterrupt:
            warnings.warn("interrupted: the units so far are kept", stacklevel=4)
            return last, False

    def _joint(self, X: Array, y: Array, rng: np.random.Generator) -> None:
        from pindown.torch_modules import usable_device

        self.scale_ = longest_patch(X)
        X = X / self.scale_
        k = JOINT_UNITS if self.n_units is None else self.n_units
        epochs = max(1, self.max_iter // 10)
        seed, rate = int(rng.integers(2**31 - 1)), float(self.learning_rate)
        self.units_, self.output_weights_, self.n_iter_ = joint_training(
            X, y, k, n_epochs=epochs, learning_rate=rate, seed=seed, verbose=self.verbose,
            device=usable_device(self.device),
        )  # fmt: skip
        margins = y * (pooled(X, self.units_) @ self.output_weights_)
        lengths = np.linalg.norm(self.units_) * np.linalg.norm(self.output_weights_)
        self.margin_, self.margin_upper_ = float(margins.min() / lengths), float("nan")
        checks, patterns = data_assumptions(X, y)
        checks["layers trained one after the other"] = False
        self.guarantee_ = summarised(checks, patterns, 1.0, 1.0 - self.delta)

    def _patches(self, seen: int | None) -> int:
        wanted = self.n_patches
        if seen is not None:
            if wanted not in (None, seen):
                raise ValueError(
                    f"n_patches is {wanted}, but X has {seen} patches; leave n_patches out."
                )
            return seen
        n = 1 if wanted is None else wanted
        if self.n_features_in_ % n:
            raise ValueError(f"rows of {self.n_features_in_} numbers are not {n} patches of equal size.")
        return int(n)

    def _check_parameters(self) -> None:
        for name in ("n_patches", "n_units"):
            if getattr(self, name) is not None:
                integer(name, getattr(self, name))
        for name in ("n_steps", "max_iter"):
            integer(name, getattr(self, name))
        choice("schedule", self.schedule, _SCHEDULES)
        probability("tol", self.tol)
        probability("delta", self.delta)
        positive("learning_rate", self.learning_rate)


def _flat(X: Any) -> tuple[Any, int | None]:
    """Return X as rows, and its number of patches if it has an axis for them."""
    # Sparse matrices, frames and the like are validated as they are.
    dimensions = np.ndim(X) if isinstance(X, list | tuple) else getattr(X, "ndim", None)
    if dimensions != 3:
        return X, None
    X = np.asarray(X)
    return X.reshape(len(X), X.shape[1] * X.shape[2]), X.shape[1]
