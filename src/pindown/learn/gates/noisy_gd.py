"""Gradient descent on one ReLU gate, with or without noise, and a ball that it stays in."""

from __future__ import annotations

import math
import warnings
from typing import Any

import numpy as np
from sklearn.base import BaseEstimator, RegressorMixin
from sklearn.utils import check_random_state
from sklearn.utils.validation import validate_data

from pindown.affine import Array
from pindown.evidence import Assumption, Status
from pindown.learn.gates.gate import Gate, GateGuarantee, check_range, scaled_features
from pindown.learn.gates.modified_sgd_bounds import gate_moments, start_distance_bound
from pindown.learn.gates.noisy_gd_confinement import Confinement, best_radius, largest_step
from pindown.progress import watched
from pindown.validation import integer, positive, probability

# A training error below this share of the labels' mean square is rounding: the labels are a gate's.
_REALIZED = 1e-16
_NEAR = 1e-3  # relative: weights that realise the labels to rounding may still be off by so much
_ROUNDING = 1e-9  # relative, in the comparison of two computed numbers


def gate_gradient(w: Array, X: Array, y: Array) -> Array:
    r"""Return the subgradient of half the mean squared error of a ReLU gate, counting zero as active.

    .. math:: g = -\frac1S \sum_i 1[u_i \ge 0] (y_i - \mathrm{relu}(u_i)) x_i, \qquad
              u_i = \langle w, x_i \rangle

    For labels :math:`y_i = \mathrm{relu} \langle w_*, x_i \rangle` it never points away from the true
    weights: :math:`\langle w - w_*, g \rangle \ge \frac1S \sum_i 1[\langle w, x_i \rangle \ge 0] (y_i -
    \mathrm{relu} \langle w, x_i \rangle)^2`.

    Args:
        w: Weights, (n,).
        X: Inputs, (S, n).
        y: Labels, (S,).

    Example:
        >>> gate_gradient(np.zeros(2), np.array([[1.0, 0.0], [0.0, 1.0]]), np.array([2.0, 0.0]))
        array([-1., -0.])

    Mukherjee 2020, Algorithm 3 and Lemma 3.4.2.
    """
    u = X @ w
    residual = np.where(u >= 0, y - u, 0.0)
    return -(residual @ X) / len(X)


class NoisyGDRegressor(Gate, RegressorMixin, BaseEstimator):  # type: ignore[misc]
    r"""Fit a ReLU gate by gradient descent, with noise in the gradient and in the weights.

    .. math:: w_{t+1} = w_t - \eta (g_t + \zeta^1_t) + \sqrt\eta\, \zeta^2_t

    For labels that come from a gate :math:`w_*`, whatever the inputs, all iterates stay in a ball around
    :math:`w_*` with a probability that :func:`pindown.learn.gates.best_radius` computes. Without noise
    the distance to :math:`w_*` never grows, if :math:`\eta \le 2 / \max_i \lVert x_i \rVert^2`. The
    weights of least training error on the way are returned.

    Args:
        learning_rate: :math:`\eta`; None takes :math:`1/C^2` without noise, else a step small enough for
            a promise.
        gradient_noise: :math:`S_1`, length of :math:`\zeta^1`, which has a random direction.
        weight_noise: Standard deviation of each coordinate of :math:`\zeta^2`.
        n_iter: Steps :math:`i_{\max}`.
        failure: Probability with which the ball may be left.
        norm_bound: Bound on :math:`\lVert w_0 - w_* \rVert`; None computes one from the labels.
        start: :math:`w_0` (and the intercept last, if fitted); None starts at zero.
        fit_intercept: Whether the gate has an intercept, as the weight of an input that is always one.
        random_state: Seed of the noise.
        verbose: 0 for silence; else a progress bar after two seconds, on a terminal.

    Attributes:
        coef_: The weights.
        intercept_: The intercept.
        n_iter_: Steps taken.
        best_iter_: The step after which the returned weights stood.
        learning_rate_: :math:`\eta`.
        loss_curve_: Mean squared training error before the first and after every step.
        confinement_: The ball, a :class:`pindown.learn.gates.Confinement`.
        guarantee_: The same with its assumptions.
        network_: The gate as a :class:`pindown.ReluNetwork`.

    >>> X = np.random.default_rng(0).standard_normal((200, 3))
    >>> y = np.maximum(X @ [1.0, -2.0, 0.5], 0)
    >>> NoisyGDRegressor().fit(X, y).coef_.round(3)
    array([ 1. , -2. ,  0.5])

    Mukherjee 2020, Algorithm 3 and Theorem 3.4.1 (corrected).
    """

    def __init__(
        self,
        *,
        learning_rate: float | None = None,
        gradient_noise: float = 0.0,
        weight_noise: float = 0.0,
        n_iter: int = 1000,
        failure: float = 0.05,
        norm_bound: float | None = None,
        start: Any = None,
        fit_intercept: bool = False,
        random_state: Any = 0,
        verbose: int = 1,
    ) -> None:
        self.learning_rate = learning_rate
        self.gradient_noise = gradient_noise
        self.weight_noise = weight_noise
        self.n_iter = n_iter
        self.failure = failure
        self.norm_bound = norm_bound
        self.start = start
        self.fit_intercept = fit_intercept
        self.random_state = random_state
        self.verbose = verbose

    def fit(self, X: Any, y: Any) -> NoisyGDRegressor:
        """Descend."""
        integer("n_iter", self.n_iter)
        probability("failure", self.failure)
        noises = [
            positive(name, getattr(self, name), zero=True) for name in ("gradient_noise", "weight_noise")
        ]
        X, y = validate_data(self, X, y, dtype=np.float64, y_numeric=True)
        y = np.asarray(y, dtype=np.float64)
        check_range(X, y)
        self.scale_ = self._largest_norm(X)
        Z = scaled_features(X, self.fit_intercept, self.scale_)
        first = self._first_weights(Z.shape[1]) * self.scale_
        eta = self._step(calm=not any(noises))
        self.learning_rate_ = eta / self.scale_**2
        last = self._descend(Z, y, first, eta)
        self._judge(Z, y, first, last, eta)
        return self

    def _step(self, *, calm: bool) -> float:
        """Return the step in units of one over the largest squared norm."""
        if self.learning_rate is not None:
            return positive("learning_rate", self.learning_rate) * self.scale_**2
        if calm:
            return 1.0
        # With this, the exponent of the bound tends to twice what is needed as the ball grows.
        return 1 / (4 * math.sqrt(self.n_iter * max(1.0, math.log(1 / self.failure))))

    def _descend(self, Z: Array, y: Array, first: Array, eta: float) -> Array:
        """Take the steps, keep the best weights, and return the last ones."""
        rng = np.random.default_rng(check_random_state(self.random_state).randint(2**31 - 1))
        w, best, least, self.best_iter_ = first.copy(), first.copy(), math.inf, 0
        losses: list[float] = []
        try:
            for t in watched(range(self.n_iter + 1), "gradient descent", verbose=self.verbose):
                u = Z @ w
                losses.append(float(np.mean((y - np.maximum(u, 0)) ** 2)))
                if losses[-1] < least:
                    least, best, self.best_iter_ = losses[-1], w, t
                if t < self.n_iter:
                    w = w - eta * gate_gradient(w, Z, y) + self._noise(rng, len(w), eta)
        except KeyboardInterrupt:
            warnings.warn("interrupted: the best weights so far are kept", stacklevel=3)
        self.n_iter_ = max(0, len(losses) - 1)
        self.loss_curve_ = np.array(losses)
        self._set_weights(best)
        return w

    def _noise(self, rng: np.random.Generator, n: int, eta: float) -> Array:
        """Return both noises in units of the scaled weights: w is multiplied by the scale."""
        total = np.zeros(n)
        if self.gradient_noise > 0:
            direction = rng.standard_normal(n)
            total -= eta * self.gradient_noise / self.scale_ * direction / np.linalg.norm(direction)
        if self.weight_noise > 0:
            total += math.sqrt(eta) * self.weight_noise * rng.standard_normal(n)
        return total

    def _judge(self, Z: Array, y: Array, first: Array, last: Array, eta: float) -> None:
        calm = self.gradient_noise == 0 and self.weight_noise == 0
        distance = self._distance(Z, y, first)
        small = eta <= 2 if calm else eta < largest_step(1.0, self.n_iter)
        if not math.isfinite(distance) or not small:
            ball = Confinement(math.inf, 1.0, math.inf, math.inf, self.n_iter)
        elif calm:
            ball = Confinement(distance, 0.0, 0.0, 0.0, self.n_iter)
        else:
            ball = best_radius(
                self.failure,
                start_distance=distance,
                largest_norm=1.0,
                step=eta,
                n_steps=self.n_iter,
                gradient_noise=self.gradient_noise / self.scale_,
                deviation=self.weight_noise,
                dimension=Z.shape[1],
            )
        R = self.scale_
        self.confinement_ = Confinement(
            ball.radius / R, ball.failure, ball.difference / R**2, ball.slack / R**2, self.n_iter
        )
        limit = (2 if calm else largest_step(1.0, self.n_iter)) / R**2
        labels: Status = "assumed"
        if self.loss_curve_.min() <= _REALIZED * float(np.mean(y**2)):
            labels = "checked"
        elif _contradicted(last, Z, y, ball.radius):
            labels = "violated"
        known: Status = "checked" if math.isfinite(distance) else "violated"
        if self.norm_bound is not None:
            known = (
                "violated"
                if self._is_refuted(first, self.norm_bound, labels == "checked")
                else "assumed"
            )
        self.guarantee_ = GateGuarantee(
            about=f"distance of the first {self.n_iter} iterates to the gate's weights",
            value=self.confinement_.radius,
            delta=self.confinement_.failure if not calm else 0.0,
            assumptions=(
                Assumption("labels come from a ReLU gate", labels),
                Assumption(f"learning rate below {limit:.3g}", "checked" if small else "violated"),
                Assumption("a bound on the start distance is known", known),
            ),
            source="Mukherjee 2020, Lemma 3.4.2" if calm else "Mukherjee 2020, Theorem 3.4.1",
        )

    def _is_refuted(self, first: Array, bound: float, realized: bool) -> bool:
        """Whether the only gate seen that gives the labels is farther from the start than was said."""
        weights = np.append(self.coef_, self.intercept_)[: len(first)]
        far = float(np.linalg.norm(weights - first / self.scale_)) > (1 + _NEAR) * bound
        return realized and far

    def _distance(self, Z: Array, y: Array, first: Array) -> float:
        if self.norm_bound is not None:
            return positive("norm_bound", self.norm_bound, zero=True) * self.scale_
        return start_distance_bound(Z, y, first, gate_moments(Z, y))


def _contradicted(w: Array, X: Array, y: Array, radius: float) -> bool:
    """Whether no gate within a radius of the weights can have given these labels.

    A gate gives no negative label, and by Lemma 3.4.2 the gradient's length times the distance to the
    gate is at least the mean squared error over the active inputs.
    """
    if y.min() < 0:
        return True
    u = X @ w
    active = float(np.mean(np.where(u >= 0, (y - u) ** 2, 0)))
    if not active > _REALIZED * float(np.mean(y**2)) or math.isinf(radius):
        return False
    return active > (1 + _ROUNDING) * float(np.linalg.norm(gate_gradient(w, X, y))) * radius
