r"""The weights of a ReLU gate from single samples, from any start, for almost any inputs.

.. math:: w_{t+1} = w_t + \eta\, 1[y_t > \theta]\, (y_t - \langle w_t, x_t \rangle)\, x_t
"""

from __future__ import annotations

import math
import warnings
from pathlib import Path
from typing import Any

import numpy as np
from sklearn.base import BaseEstimator, RegressorMixin
from sklearn.exceptions import ConvergenceWarning
from sklearn.utils import check_random_state
from sklearn.utils.validation import validate_data

from pindown.affine import Array
from pindown.compiling import compiler
from pindown.evidence import Assumption, Status
from pindown.learn.gates.gate import Gate, GateGuarantee, check_range, scaled_features
from pindown.learn.gates.modified_sgd_bounds import (
    ErrorRecursion,
    GateMoments,
    gate_moments,
    solve_recursion,
    start_distance_bound,
)
from pindown.learn.gates.tuning import MAX_HORIZON, MIN_CONFIDENT_SHARE, SGD_CHUNK
from pindown.progress import watched
from pindown.validation import choice, integer, positive, probability

_RESIDUAL_ROUNDING = 1e-9  # of the labels' size, when residuals are compared with what the bound allows
_ROUNDINGS_PER_STEP = 4  # of a product, a difference, a scaling and a sum; inputs are short


class ModifiedSGDRegressor(Gate, RegressorMixin, BaseEstimator):  # type: ignore[misc]
    r"""Recover the weights of a ReLU gate from labels that are off by at most a known number.

    Labels are :math:`y = \max(0, \langle w_*, x \rangle) + \xi` with :math:`|\xi| \le \theta`.

    Only samples with :math:`y > \theta` are used, and of those the *linear* residual: they lie on the
    linear side of the gate. With :math:`\lambda` and :math:`\kappa` of
    :func:`pindown.learn.gates.gate_moments`, the step :math:`\eta = \lambda/\kappa` gives :math:`E
    \lVert w_t - w_* \rVert^2 \le (1 - \lambda^2/\kappa)^{t-1} \lVert w_1 - w_* \rVert^2` for
    :math:`\theta = 0`, and a floor of about :math:`\theta^2/\lambda` in general. ``fit`` draws from the
    sample with replacement, so that these constants, the horizon and the promise are those of the sample
    itself; ``partial_fit`` reads a stream once.

    Args:
        eps: Wanted distance to :math:`w_*`.
        delta: Probability with which it may be missed.
        noise_bound: :math:`\theta`, the largest corruption of a label, in either direction and chosen
            with malice.
        norm_bound: A bound on :math:`\lVert w_1 - w_* \rVert`; None computes one from the labels.
        smallest_eigenvalue: :math:`\lambda` of the distribution, for ``partial_fit``; None estimates it.
        fourth_moment: :math:`c_1 \ge \kappa` of the distribution, for ``partial_fit``; None estimates
            it.
        variant: ``"sharp"`` steps with :math:`\kappa`; ``"as_printed"`` with :math:`c_1`, up to d times
            slower.
        start: :math:`w_1` (and the intercept last, if fitted); None starts at zero.
        fit_intercept: Whether the gate has an intercept, as the weight of an input that is always one.
        max_iter: Most steps of ``fit``.
        pilot_size: Samples of a stream after which its constants are no longer estimated anew.
        random_state: Seed of the draws.
        verbose: 0 for silence; else a progress bar after two seconds, on a terminal.

    Attributes:
        coef_: The weights.
        intercept_: The intercept.
        n_iter_: Steps taken, counting those whose sample is not used.
        horizon_: Steps after which ``eps`` is promised, or after which the corruption allows nothing
            better.
        moments_: The moments of the data, in units of the largest input norm ``scale_``.
        learning_rate_: :math:`\eta`, for inputs as given.
        contraction_: :math:`\rho`, the factor of the mean squared error per step.
        error_bound_: Distance to :math:`w_*` that is kept with probability ``1 - delta``.
        guarantee_: The same with its assumptions.
        network_: The gate as a :class:`pindown.ReluNetwork`.

    >>> X = np.random.default_rng(0).standard_normal((300, 3))
    >>> y = np.maximum(X @ [1.0, -2.0, 0.5], 0)
    >>> ModifiedSGDRegressor(eps=1e-3).fit(X, y).coef_.round(2)
    array([ 1. , -2. ,  0.5])

    Mukherjee 2020, Algorithm 2 and Theorem 3.3.1; corruption and the sharper constant are ours.
    """

    def __init__(
        self,
        *,
        eps: float = 0.05,
        delta: float = 0.1,
        noise_bound: float = 0.0,
        norm_bound: float | None = None,
        smallest_eigenvalue: float | None = None,
        fourth_moment: float | None = None,
        variant: str = "sharp",
        start: Any = None,
        fit_intercept: bool = False,
        max_iter: int = 1_000_000,
        pilot_size: int = 500,
        random_state: Any = 0,
        verbose: int = 1,
    ) -> None:
        self.eps = eps
        self.delta = delta
        self.noise_bound = noise_bound
        self.norm_bound = norm_bound
        self.smallest_eigenvalue = smallest_eigenvalue
        self.fourth_moment = fourth_moment
        self.variant = variant
        self.start = start
        self.fit_intercept = fit_intercept
        self.max_iter = max_iter
        self.pilot_size = pilot_size
        self.random_state = random_state
        self.verbose = verbose

    def fit(self, X: Any, y: Any) -> ModifiedSGDRegressor:
        """Draw samples with replacement until the horizon, or ``max_iter``."""
        X, y = validate_data(self, X, y, dtype=np.float64, y_numeric=True)
        y = np.asarray(y, dtype=np.float64)
        most = integer("max_iter", self.max_iter)
        check_range(X, y)
        self._pilot: tuple[Array, Array] | None = None
        Z = self._prepare(X, y, fresh=True, stream=False)
        worst = self._recursion
        self.horizon_ = self._horizon(worst, most)
        planned = min(self.horizon_, most)
        rng = np.random.default_rng(check_random_state(self.random_state).randint(2**31 - 1))
        try:
            for chunk in watched(
                range(math.ceil(planned / SGD_CHUNK)), "modified SGD", verbose=self.verbose
            ):
                rows = rng.integers(len(Z), size=min(SGD_CHUNK, planned - chunk * SGD_CHUNK))
                self._pass(Z, y, rows)
        except KeyboardInterrupt:
            warnings.warn("interrupted: the bound is for the steps taken so far", stacklevel=2)
        self._publish(Z, y, stream=False)
        if self.n_iter_ < self.horizon_ and worst.eigenvalue > 0:
            warnings.warn(
                f"{self.horizon_} steps are needed for eps={self.eps}, {self.n_iter_} were taken; the "
                f"error is at most {self.error_bound_:.3g} with probability {1 - self.delta:.3g}: "
                "raise max_iter or eps.",
                ConvergenceWarning,
                stacklevel=2,
            )
        return self

    def partial_fit(self, X: Any, y: Any) -> ModifiedSGDRegressor:
        """Read a batch once, in order; the first samples set the constants that were not given."""
        fresh = not hasattr(self, "_weights")
        X, y = validate_data(self, X, y, dtype=np.float64, y_numeric=True, reset=fresh)
        y = np.asarray(y, dtype=np.float64)
        check_range(X, y)
        if fresh:
            self._pilot = (X[:0], y[:0])
        if self._pilot is not None:
            seen = (np.vstack([self._pilot[0], X]), np.concatenate([self._pilot[1], y]))
            self._prepare(*seen, fresh=fresh, stream=True)
            self.horizon_ = self.n_iter_ + self._horizon(
                self._recursion, integer("max_iter", self.max_iter)
            )
            self._pilot = seen if len(seen[1]) < integer("pilot_size", self.pilot_size) else None
        Z = scaled_features(X, self.fit_intercept, self.scale_)
        self._pass(Z, y, np.arange(len(Z)))
        self._publish(Z, y, stream=True)
        return self

    def _prepare(self, X: Array, y: Array, *, fresh: bool, stream: bool) -> Array:
        """Set the constants, the step and, if fresh, the start; return inputs of norm at most one."""
        probability("delta", self.delta)
        theta = positive("noise_bound", self.noise_bound, zero=True)
        scale, squared = self._largest_norm(X), math.inf
        Z = scaled_features(X, self.fit_intercept, scale)
        if fresh:
            self._weights, self.n_iter_ = self._first_weights(Z.shape[1]) * scale, 0
        else:
            ratio = scale / self.scale_
            self._weights, squared = self._weights * ratio, self._squared_error() * ratio**2
        self.scale_, self._anchor = scale, self.n_iter_
        self.moments_ = gate_moments(Z, y, threshold=theta)
        eigenvalue, growth = self._constants(self.moments_, stream)
        # Without a promise, one: for inputs of norm at most one it moves no closer weights away.
        step = eigenvalue / growth if eigenvalue > 0 else 1.0
        self._recursion = ErrorRecursion.of(self.moments_, step, eigenvalue, growth, theta)
        if fresh and self.norm_bound is not None:
            squared = (positive("norm_bound", self.norm_bound, zero=True) * scale) ** 2
        elif math.isinf(squared):
            distance = start_distance_bound(Z, y, self._weights, self.moments_, noise_bound=theta)
            squared = distance**2
        self._squared_start = squared
        return Z

    def _squared_error(self) -> float:
        """Return the bound on the mean squared distance at this step, in scaled units."""
        if self._recursion.eigenvalue == 0 and self.n_iter_ > self._anchor:
            return math.inf
        return self._recursion.after(self._squared_start, self.n_iter_ - self._anchor)

    def _constants(self, moments: GateMoments, stream: bool) -> tuple[float, float]:
        sharp = choice("variant", self.variant, ("sharp", "as_printed")) == "sharp"
        growth = moments.sharp_fourth_moment if sharp else moments.fourth_moment
        eigenvalue = moments.smallest_eigenvalue
        if stream:  # a sample stands for the stream: take the safe side of both estimates
            eigenvalue = max(eigenvalue - moments.eigenvalue_error, MIN_CONFIDENT_SHARE * eigenvalue)
            growth += moments.fourth_moment_error
        for name in ("smallest_eigenvalue", "fourth_moment"):
            if getattr(self, name) is not None:
                positive(name, getattr(self, name))
        if stream and self.smallest_eigenvalue is not None:
            eigenvalue = self.smallest_eigenvalue / self.scale_**2
        if stream and self.fourth_moment is not None:
            growth = self.fourth_moment / self.scale_**4
        return eigenvalue, max(growth, eigenvalue**2)

    def _horizon(self, worst: ErrorRecursion, most: int) -> int:
        """Return how many steps are worth taking."""
        target = (positive("eps", self.eps) * self.scale_) ** 2 * self.delta
        if target == 0:
            raise ValueError(f"eps^2 delta underflows; got eps={self.eps!r} and delta={self.delta!r}.")
        if worst.eigenvalue == 0 or math.isinf(self._squared_start):
            return most if self.moments_.share > 0 else 0
        if worst.noise_bound > 0:
            return math.ceil(min(worst.steps_to(self._squared_start, target), MAX_HORIZON))
        found = solve_recursion(
            2 * worst.eigenvalue, worst.growth, start=self._squared_start, target=target
        )
        return found.n_steps - 1

    def _pass(self, Z: Array, y: Array, rows: Any) -> None:
        used = rows[y[rows] > self._recursion.noise_bound]
        least_mean_squares(Z, y, used, self._recursion.step, self._weights)
        self.n_iter_ += len(rows)

    def _publish(self, Z: Array, y: Array, *, stream: bool) -> None:
        worst = self._recursion
        self._set_weights(self._weights)
        self.learning_rate_ = worst.step / self.scale_**2
        self.contraction_ = worst.contraction
        proved = math.sqrt(self._squared_error() / self.delta)
        self.error_bound_ = (proved + self._rounding(y)) / self.scale_
        self.guarantee_ = self._guarantee(Z, y, stream)

    def _rounding(self, y: Array) -> float:
        """Return where float64 stops the steps: one rounding each, shrunk by all the steps after it."""
        if self.n_iter_ == self._anchor or not math.isfinite(self._squared_start):
            return 0.0
        size = max(float(np.linalg.norm(self._weights)), float(np.abs(y).max()))
        once = _ROUNDINGS_PER_STEP * (len(self._weights) + 1) * np.finfo(float).eps * size
        rate = self._recursion.rate
        kept = -math.expm1(math.log(rate) / 2) if 0 < rate < 1 else 1.0 - rate
        taken = self.n_iter_ - self._anchor  # no more than that many roundings have been made
        return once * (min(taken, 1 / kept) if kept > 0 else taken)

    def _guarantee(self, Z: Array, y: Array, stream: bool) -> GateGuarantee:
        theta, worst = self._recursion.noise_bound, self._recursion
        residual = np.abs(y - np.maximum(Z @ self._weights, 0))
        explained: Status = "assumed"
        if math.isfinite(self.error_bound_):
            allowed = theta + self.error_bound_ * self.scale_ * np.linalg.norm(Z, axis=1)
            slack = _RESIDUAL_ROUNDING * np.abs(y).max()
            if not np.all(residual <= allowed + slack):
                explained = "violated"
            elif not stream and np.all(residual <= theta + slack):
                explained = "checked"  # the fitted gate itself is one; else there may be none
        spans = (
            f"used inputs span the space (smallest eigenvalue {worst.eigenvalue * self.scale_**2:.3g})"
        )
        labels = f"labels within {theta:.3g} of a ReLU gate within {self.error_bound_:.3g} of coef_"
        return GateGuarantee(
            about="distance of coef_ to the gate's weights",
            value=self.error_bound_,
            delta=float(self.delta),
            assumptions=(
                Assumption(spans, "checked" if worst.eigenvalue > 0 else "violated"),
                Assumption(labels, explained),
                Assumption("samples are drawn independently", "assumed" if stream else "checked"),
            ),
            source="Mukherjee 2020, Theorem 3.3.1",
            estimated=stream and (self.smallest_eigenvalue is None or self.fourth_moment is None),
        )


@compiler(Path(__file__).parent)
def least_mean_squares(X: Array, y: Array, rows: Array, step: float, w: Array) -> None:
    """Move ``w`` along the linear residual of each given row, one after the other, in place."""
    for i in rows:
        x = X[i]
        pull = step * (y[i] - np.dot(x, w))
        for j in range(w.shape[0]):
            w[j] += pull * x[j]
