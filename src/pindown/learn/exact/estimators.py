r"""Estimators that return the best small network there is, with the proof, or an interval for its loss.

.. math:: \min_{a_u, b_u, s_u \in \{-1, 1\}, c}\; \sum_j \ell\Big(c + \sum_{u=1}^w s_u\,
          \mathrm{relu}(\langle a_u, x_j\rangle + b_u),\; y_j\Big) + \alpha \sum_u \lVert a_u \rVert^2.
"""

from __future__ import annotations

import warnings
from typing import TYPE_CHECKING, Any

import numpy as np
import numpy.typing as npt
from sklearn.base import BaseEstimator, ClassifierMixin, RegressorMixin
from sklearn.utils import check_random_state
from sklearn.utils.multiclass import check_classification_targets
from sklearn.utils.validation import check_is_fitted, validate_data

from pindown.affine import Array
from pindown.compiling import COMPILE_SECONDS, time_limit
from pindown.deadline import Deadline, checked_budget
from pindown.extras import require
from pindown.learn._inputs import checked_weights
from pindown.learn.exact._problem import Problem, Units, merged
from pindown.learn.exact._search import Search, compile_loops, run
from pindown.progress import progress_bar
from pindown.validation import choice, integer, positive

if TYPE_CHECKING:
    from matplotlib.axes import Axes


ARITHMETIC = "complete search in float64 with margins, no directed rounding"


class _ExactRelu(BaseEstimator):  # type: ignore[misc]
    """What both estimators share: the search, its certificate and its history."""

    _losses: tuple[str, ...] = ()

    def _search(self, X: Any, y: Any, sample_weight: Any) -> None:
        self._check_parameters()
        mass = checked_weights(sample_weight, X)
        X, y, mass = merged(X, y, mass)
        units = Units.of(y, mass, self.loss)
        ridge = float(self.ridge) / units.ridge
        y, mass = y / units.target, mass / units.mass
        problem = Problem.of(X, y, mass, self.loss, ridge, bool(self.output_bias))
        seed = int(check_random_state(self.random_state).randint(2**31 - 1))
        search = Search(problem, self.width, Deadline.after(self.budget), self.n_jobs, seed)
        if self.budget > COMPILE_SECONDS["pindown.learn.exact._compiled"]:
            compile_loops(search)
        try:
            with progress_bar(verbose=self.verbose) as search.progress, time_limit(search.deadline):
                run(search)
        except KeyboardInterrupt:
            warnings.warn(
                "interrupted: the best network so far is kept, with the bound proved so far",
                stacklevel=3,
            )
        if not np.isfinite(search.upper * units.loss):
            raise ValueError(
                "the loss of these numbers exceeds the largest float; divide y by its scale"
            )
        self.network_ = units.network(search.network)
        self.best_loss_ = search.upper * units.loss
        self.lower_bound_ = min(search.lower, search.upper) * units.loss
        self.gap_ = self.best_loss_ - self.lower_bound_
        self.optimal_ = search.solved
        self._status = _status(search)
        self.n_tuples_ = search.n_tuples
        self.n_programs_ = search.n_programs
        self.history_ = np.array(search.history).reshape(-1, 3) * [1.0, units.loss, units.loss]

    def _check_parameters(self) -> None:
        integer("width", self.width)
        choice("loss", self.loss, self._losses)
        positive("ridge", self.ridge, zero=True)
        checked_budget(self.budget, zero=True)

    def _outputs(self, X: Any) -> Array:
        check_is_fitted(self)
        return self.network_(validate_data(self, X, dtype=np.float64, reset=False))[:, 0]

    def plot_gap(self, ax: Axes | None = None) -> Axes:
        """Draw the proved interval for the least loss over time."""
        check_is_fitted(self)
        require("matplotlib")
        import matplotlib.pyplot as plt

        if ax is None:
            _, ax = plt.subplots(figsize=(6, 3.5))
        seconds, lower, upper = self.history_.T
        ax.step(seconds, upper, where="post", label="best network")
        ax.step(seconds, lower, where="post", label="proved lower bound")
        ax.fill_between(seconds, lower, upper, step="post", alpha=0.15)
        ax.set(xlabel="seconds", ylabel="loss", ylim=(0, None))
        ax.legend(loc="best")
        return ax

    def summary(self) -> str:
        """Say in one line what was found and what is known about it."""
        check_is_fitted(self)
        loss = f"loss {self.best_loss_:.6g}"
        if self._status == "fitted":
            return f"{loss}: every sample is fitted up to rounding; no network does better"
        if self._status == "complete":
            return f"{loss}, the least of all networks of width {self.width} ({ARITHMETIC})"
        advice = (
            "float64 cannot close the gap, nor can more budget"
            if self._status == "exhausted"
            else "give it more budget to close the gap"
        )
        return (
            f"{loss}; no network of width {self.width} has less than {self.lower_bound_:.6g} "
            f"({ARITHMETIC}); {advice}"
        )


def _status(search: Search) -> str:
    if search.fitted:
        return "fitted"
    if search.complete:
        return "complete"
    return "exhausted" if search.exhausted else "open"


class ExactReluRegressor(RegressorMixin, _ExactRelu):  # type: ignore[misc]
    """The one-hidden-layer ReLU network of least loss, with a certificate.

    Args:
        width: Hidden units.
        loss: ``"squared"`` or ``"absolute"``; losses are summed over samples.
        ridge: Factor of the squared norms of the slopes, with output weights of size one.
        output_bias: Whether the output has a bias.
        budget: Seconds; when they are over, ``best_loss_`` and ``lower_bound_`` are what is known.
        n_jobs: Workers, -1 for all cores; None: as an enclosing ``pindown.parallel.workers`` says, else
            one. What is found does not depend on it, unless time runs out.
        random_state: Seed of the search for a good start; it does not change what is proved.
        verbose: 0 for silence; else a progress bar after two seconds, on a terminal.

    Attributes:
        network_: The best network, a :class:`pindown.ReluNetwork`.
        best_loss_: Its loss, penalty included, by a forward pass.
        lower_bound_: No network of this width has a smaller loss, by a search in float64 with margins.
        gap_: The difference of the two.
        optimal_: Whether the bounds meet (to 1e-8 of the loss as a rule, to 1e-5 where it is tiny), or
            every sample is fitted up to the rounding error of evaluating the network there. Not a proof
            in directed arithmetic: see below.
        n_tuples_: Tuples of dichotomies that were bounded; for squared loss, products of cones.
        n_programs_: Convex programs that were solved besides.
        history_: Rows of seconds, lower bound, best loss.

    >>> import numpy as np
    >>> X = np.array([[-2.0], [-1.0], [0.0], [1.0], [2.0]])
    >>> model = ExactReluRegressor(width=2).fit(X, np.abs(X[:, 0]))
    >>> model.optimal_, round(model.best_loss_, 12)
    (True, 0.0)
    >>> model.predict([[-3.0], [0.5]]).round(6).tolist()
    [3.0, 0.5]

    The bound is computed in float64 and allows for its rounding, not by directed arithmetic. It does not
    cover units that tell points apart that are closer than 1e-8 of the samples' spread, nor weights
    above 1e8 in coordinates that make the samples round; for squared loss, weights ``phi`` in these
    coordinates could be below the bound by ``1e-13 sum(sample_weight) ||phi||^2``.

    Mukherjee 2020, Theorem 2.4.1 (objective corrected).
    """

    _losses = ("squared", "absolute")

    def __init__(
        self,
        width: int = 2,
        *,
        loss: str = "squared",
        ridge: float = 0.0,
        output_bias: bool = False,
        budget: float = 60.0,
        n_jobs: int | None = None,
        random_state: Any = 0,
        verbose: int = 1,
    ) -> None:
        self.width = width
        self.loss = loss
        self.ridge = ridge
        self.output_bias = output_bias
        self.budget = budget
        self.n_jobs = n_jobs
        self.random_state = random_state
        self.verbose = verbose

    def __sklearn_tags__(self) -> Any:
        tags = super().__sklearn_tags__()
        tags.regressor_tags.poor_score = self.width == 1 and not self.output_bias  # has one sign
        return tags

    def fit(self, X: Any, y: Any, sample_weight: Any = None) -> ExactReluRegressor:
        """Find the network of least loss."""
        X, y = validate_data(self, X, y, dtype=np.float64, y_numeric=True)
        self._search(X, np.asarray(y, dtype=np.float64), sample_weight)
        return self

    def predict(self, X: Any) -> Array:
        """Return the network's outputs."""
        return self._outputs(X)


class ExactReluClassifier(ClassifierMixin, _ExactRelu):  # type: ignore[misc]
    """The one-hidden-layer ReLU network of least loss for two classes, with a certificate.

    Args and attributes are those of :class:`ExactReluRegressor`, with ``loss`` one of ``"hinge"`` and
    ``"logistic"`` and an output bias by default. A logistic loss of zero is approached, never attained,
    when the classes can be separated: it counts as optimal when no sample's loss exceeds the rounding of
    log 2. A small ``ridge`` makes the answer unique.

    >>> import numpy as np
    >>> X = np.array([[-2.0], [-1.0], [0.0], [1.0], [2.0]])
    >>> model = ExactReluClassifier(width=2).fit(X, ["out", "in", "in", "in", "out"])
    >>> model.optimal_, round(model.best_loss_, 9), model.predict([[0.3], [5.0]]).tolist()
    (True, 0.0, ['in', 'out'])

    Mukherjee 2020, Theorem 2.4.1 (objective corrected).
    """

    _losses = ("hinge", "logistic")

    def __init__(
        self,
        width: int = 2,
        *,
        loss: str = "hinge",
        ridge: float = 0.0,
        output_bias: bool = True,
        budget: float = 60.0,
        n_jobs: int | None = None,
        random_state: Any = 0,
        verbose: int = 1,
    ) -> None:
        self.width = width
        self.loss = loss
        self.ridge = ridge
        self.output_bias = output_bias
        self.budget = budget
        self.n_jobs = n_jobs
        self.random_state = random_state
        self.verbose = verbose

    def __sklearn_tags__(self) -> Any:
        tags = super().__sklearn_tags__()
        tags.classifier_tags.multi_class = False
        return tags

    def fit(self, X: Any, y: Any, sample_weight: Any = None) -> ExactReluClassifier:
        """Find the network of least loss; the second class, in sorted order, is the positive one."""
        X, y = validate_data(self, X, y, dtype=np.float64)
        check_classification_targets(y)
        self.classes_, codes = np.unique(y, return_inverse=True)
        if len(self.classes_) != 2:
            found = "one class" if len(self.classes_) == 1 else f"{len(self.classes_)} classes"
            raise ValueError(
                f"Only binary classification is supported: two classes are needed, y has {found}. "
                "The classifier needs samples of two classes."
            )
        self._search(X, 2.0 * codes - 1.0, sample_weight)
        return self

    def decision_function(self, X: Any) -> Array:
        """Return the network's outputs, positive for the second class."""
        return self._outputs(X)

    def predict(self, X: Any) -> npt.NDArray[Any]:
        """Return the class of each sample."""
        positive = self._outputs(X) > 0
        return self.classes_[positive.astype(int)]
