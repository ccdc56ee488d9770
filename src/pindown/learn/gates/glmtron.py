r"""GLM-Tron: a gate with a known link, fitted to all samples at once, robust to corrupted labels."""

from __future__ import annotations

import math
import warnings
from typing import Any

import numpy as np
from sklearn.base import BaseEstimator, RegressorMixin
from sklearn.exceptions import ConvergenceWarning
from sklearn.utils.validation import check_array, validate_data

from pindown.affine import Array
from pindown.evidence import Assumption, Status
from pindown.learn._inputs import checked_weights
from pindown.learn.gates.gate import (
    Gate,
    GateGuarantee,
    Link,
    as_link,
    check_range,
    is_unexplained,
    scaled_features,
)
from pindown.learn.gates.glmtron_horizons import (
    benign_risk,
    glmtron_excess,
    glmtron_gain,
    glmtron_horizon,
)
from pindown.learn.gates.tuning import GLMTRON_DEFAULT_STEPS, GLMTRON_PATIENCE
from pindown.progress import watched
from pindown.validation import integer, positive


class GLMTron(Gate, RegressorMixin, BaseEstimator):  # type: ignore[misc]
    r"""Fit :math:`\sigma(\langle w, x \rangle)` for a known non-decreasing Lipschitz link.

    A step goes along :math:`\frac{1}{S} \sum_i (y_i - \sigma(\langle w, x_i \rangle)) x_i`, the gradient
    of the squared loss *without* the link's derivative, starting at zero, with inputs divided by the
    largest norm R. If labels are within :math:`\theta` of a gate with :math:`R \lVert w_* \rVert \le W`,
    some iterate in the first :math:`\lceil W^2/\epsilon \rceil` steps has an effective risk of at most
    :func:`glmtron_excess`. The iterate with the least training error (or validation error) is returned.

    Args:
        link: ``"relu"``, ``"leaky_relu"``, ``"identity"``, ``"sigmoid"``, ``"tanh"``, ``"softplus"``, or
            a callable.
        leak: Slope of ``"leaky_relu"`` for negative arguments.
        lipschitz: Lipschitz constant of a callable link; None is 1.
        step: s, below 2 / lipschitz; ``1 / lipschitz`` is the fastest promise.
        eps: :math:`\epsilon`, which sets the horizon.
        norm_bound: Bound on :math:`\lVert w_* \rVert` (with the intercept), for inputs as given.
        noise_bound: :math:`\theta`, the largest corruption of a label.
        max_iter: Steps; None takes the horizon if ``norm_bound`` is given, else 10,000.
        tol: Stop when steps have become shorter than this share of the weights.
        fit_intercept: Whether the gate has an intercept, as the weight of an input that is always one.
        verbose: 0 for silence; else a progress bar after two seconds, on a terminal.

    Attributes:
        coef_: The weights.
        intercept_: The intercept.
        n_iter_: Steps taken.
        best_iter_: The step after which the returned weights stood.
        horizon_: :math:`\lceil W^2/\epsilon \rceil`, or None without ``norm_bound``.
        loss_curve_: Mean squared training error before the first and after every step.
        adversarial_bound_: Effective risk of the *best* iterate, by the theorem with :math:`\epsilon =
            W^2/` steps.
        excess_bound_: Effective risk of the *returned* weights: the smaller of what the theorem and what
            the training error prove.
        benign_bound_: Mean squared training error to expect, for noise of variance up to
            :math:`\theta^2`.
        guarantee_: ``excess_bound_`` with its assumptions.
        network_: The gate as a :class:`pindown.ReluNetwork`, for piecewise-linear links.

    >>> X = np.random.default_rng(0).standard_normal((200, 3))
    >>> y = np.maximum(X @ [1.0, -2.0, 0.5], 0)
    >>> GLMTron().fit(X, y).coef_.round(3)
    array([ 1. , -2. ,  0.5])

    Mukherjee 2020, Algorithm 4 and Theorems 3.5.2 and 3.5.3 (horizon corrected); after Kakade et al.
    2011.
    """

    start = None

    def __init__(
        self,
        link: Any = "relu",
        *,
        leak: float = 0.1,
        lipschitz: float | None = None,
        step: float = 1.0,
        eps: float = 1e-3,
        norm_bound: float | None = None,
        noise_bound: float = 0.0,
        max_iter: int | None = None,
        tol: float = 1e-10,
        fit_intercept: bool = False,
        verbose: int = 1,
    ) -> None:
        self.link = link
        self.leak = leak
        self.lipschitz = lipschitz
        self.step = step
        self.eps = eps
        self.norm_bound = norm_bound
        self.noise_bound = noise_bound
        self.max_iter = max_iter
        self.tol = tol
        self.fit_intercept = fit_intercept
        self.verbose = verbose

    def __sklearn_tags__(self) -> Any:
        tags = super().__sklearn_tags__()
        tags.regressor_tags.poor_score = self.link != "identity"
        return tags

    def _link(self) -> Link:
        return as_link(self.link, leak=self.leak, lipschitz=self.lipschitz)

    def fit(self, X: Any, y: Any, sample_weight: Any = None, *, validation: Any = None) -> GLMTron:
        """Run GLM-Tron.

        Args:
            X: Inputs, (n, d).
            y: Labels, (n,).
            sample_weight: Weights of the samples, (n,), in the mean over samples.
            validation: A pair of inputs and labels on which to choose the iterate, in place of the
                training data.
        """
        link = self._link()
        glmtron_gain(link.lipschitz, self.step)
        X, y = validate_data(self, X, y, dtype=np.float64, y_numeric=True)
        y = np.asarray(y, dtype=np.float64)
        check_range(X, y)
        mass = checked_weights(sample_weight, X)
        if not mass.any():
            raise ValueError("all sample weights are zero; give at least one sample a positive weight")
        kept = mass > 0
        X, y, mass = X[kept], y[kept], mass[kept] / mass.sum()
        self.scale_ = self._largest_norm(X)
        Z = scaled_features(X, self.fit_intercept, self.scale_)
        held = None if validation is None else self._validation(validation)
        last = self._run(link, Z, y, mass, held)
        self._judge(link, chosen_on_training=held is None)
        contradicted = self._contradicted(link, Z, y, mass, last)
        self.guarantee_ = self._guarantee(link, Z, last, contradicted)
        return self

    def _validation(self, validation: Any) -> tuple[Array, Array]:
        if not isinstance(validation, tuple | list) or len(validation) != 2:
            raise ValueError("validation must be a pair of inputs and labels.")
        X = check_array(validation[0], dtype=np.float64)
        y = np.asarray(validation[1], dtype=np.float64).ravel()
        if X.shape != (len(y), self.n_features_in_) or not np.isfinite(y).all():
            raise ValueError(
                f"validation must hold finite (n, {self.n_features_in_}) inputs and n labels; "
                f"got {X.shape} and {len(y)}."
            )
        return scaled_features(X, self.fit_intercept, self.scale_), y

    def _steps(self) -> int:
        """Set the horizon, and return how many steps to take."""
        eps = positive("eps", self.eps)
        self.horizon_ = None
        if self.norm_bound is not None:
            norm = positive("norm_bound", self.norm_bound, zero=True) * self.scale_
            self.horizon_ = glmtron_horizon(norm, eps)
        if self.max_iter is not None:
            return integer("max_iter", self.max_iter)
        return GLMTRON_DEFAULT_STEPS if self.horizon_ is None else max(1, self.horizon_)

    def _run(
        self, link: Link, Z: Array, y: Array, mass: Array, held: tuple[Array, Array] | None
    ) -> Array:
        """Take the steps, keep the best weights, and return the last ones."""
        steps, tol = self._steps(), positive("tol", self.tol, zero=True)
        w = best = np.zeros(Z.shape[1])
        losses: list[float] = []
        least, self.best_iter_, short = math.inf, 0, False
        try:
            for t in watched(range(steps + 1), "GLM-Tron", verbose=self.verbose):
                residual = y - link(Z @ w)
                losses.append(float(mass @ residual**2))
                judged = losses[-1]
                if held is not None:
                    judged = float(np.mean((held[1] - link(held[0] @ w)) ** 2))
                if judged < least:
                    least, best, self.best_iter_ = judged, w, t
                if t == steps or short or t - self.best_iter_ > GLMTRON_PATIENCE:
                    break
                move = self.step * ((mass * residual) @ Z)
                w = w + move
                short = float(np.linalg.norm(move)) <= tol * float(np.linalg.norm(w))
        except KeyboardInterrupt:
            warnings.warn("interrupted: the best weights so far are kept", stacklevel=3)
        if not losses or not math.isfinite(least):
            raise ValueError("the link gave no finite answers; it must be finite on the whole line.")
        self.n_iter_ = len(losses) - 1
        self.loss_curve_ = np.array(losses)
        self._set_weights(best)
        if not short and self.n_iter_ == steps and self.norm_bound is None and self.max_iter is None:
            warnings.warn(
                f"steps were still longer than tol after {steps}; pass norm_bound for a horizon, "
                "or max_iter.",
                ConvergenceWarning,
                stacklevel=4,
            )
        return w

    def _judge(self, link: Link, *, chosen_on_training: bool) -> None:
        """Compute what is promised for this run."""
        theta = positive("noise_bound", self.noise_bound, zero=True)
        seen = (math.sqrt(self.loss_curve_[self.best_iter_]) + theta) ** 2  # by the triangle inequality
        self.adversarial_bound_ = math.inf
        if self.norm_bound is not None:
            W = float(self.norm_bound) * self.scale_
            self.adversarial_bound_ = glmtron_excess(
                W**2 / max(self.n_iter_, 1),
                noise_bound=theta,
                norm=W,
                lipschitz=link.lipschitz,
                step=self.step,
            )
        # Least training error is not least effective risk: noise of length theta twice in between.
        chosen = (
            (math.sqrt(self.adversarial_bound_) + 2 * theta) ** 2 if chosen_on_training else math.inf
        )
        self.excess_bound_ = min(seen, chosen)
        # The best iterate's training error bounds that of the least one, so not of one chosen otherwise.
        risk = min(self.adversarial_bound_, self.excess_bound_) if chosen_on_training else seen
        self.benign_bound_ = benign_risk(risk, theta**2)

    def _contradicted(self, link: Link, Z: Array, y: Array, mass: Array, w: Array) -> bool:
        """Whether no gate as assumed can have given these labels; w are the last weights of the run."""
        theta = float(self.noise_bound)
        if float(self.loss_curve_.min()) > (math.sqrt(self.adversarial_bound_) + theta) ** 2:
            return True
        if theta > 0:
            return False
        residual, root = y - link(Z @ w), np.sqrt(mass * len(y))  # weights go into the mean of squares
        return is_unexplained(root * residual, (mass * residual) @ Z, w, root * y, link.lipschitz)

    def _guarantee(self, link: Link, Z: Array, last: Array, contradicted: bool) -> GateGuarantee:
        weights = np.append(self.coef_, self.intercept_)[: Z.shape[1]] * self.scale_
        steep = link.is_steeper_than_declared(np.concatenate([Z @ weights, Z @ last]))
        shape: Status = "violated" if steep else "assumed" if link.name == "callable" else "checked"
        labels = f"labels within {self.noise_bound:.3g} of such a gate"
        if self.norm_bound is not None:
            labels += f" with weights of norm at most {self.norm_bound:.3g}"
        return GateGuarantee(
            about="mean squared distance of the answers to the clean ones, on the training inputs",
            value=self.excess_bound_,
            delta=0.0,
            assumptions=(
                Assumption(f"link non-decreasing, Lipschitz with {link.lipschitz:.3g}", shape),
                Assumption(labels, "violated" if contradicted else "assumed"),
            ),
            source="Mukherjee 2020, Theorem 3.5.2",
        )
