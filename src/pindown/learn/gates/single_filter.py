r"""A network with one filter, learned like a gate.

.. math:: f_w(x) = \frac1k \sum_{i=1}^k \sigma(\langle w, A_i x \rangle), \qquad
    w_{t+1} = w_t + \frac{s}{S} \sum_j (y_j - f_{w_t}(x_j))\, \bar x_j, \quad
    \bar x = \frac1k \sum_i A_i x
"""

from __future__ import annotations

import math
import warnings
from typing import Any

import numpy as np
from sklearn.base import BaseEstimator, RegressorMixin
from sklearn.exceptions import ConvergenceWarning
from sklearn.utils.validation import check_is_fitted, validate_data

from pindown.affine import Array
from pindown.circuits.blocks import single_filter_network, window_matrices
from pindown.evidence import Assumption
from pindown.learn.gates.gate import GateGuarantee, Link, check_range, is_unexplained, leaky_relu
from pindown.network import ReluNetwork
from pindown.progress import watched
from pindown.validation import integer, positive

# An eigenvalue below this share of the largest is rounding of zero.
_RANK_TOLERANCE = 1e-12
_ROUNDINGS_PER_STEP = 4  # of a residual, a mean over samples, a scaling and a sum
_ROUNDING = 1e-9  # of the labels' size, when residuals are compared with what the bound allows


class SingleFilterRegressor(RegressorMixin, BaseEstimator):  # type: ignore[misc]
    r"""Learn the one filter of a convolution with average pooling, with GLM-Tron's update.

    For one window this is :class:`GLMTron`, with its theorem. For several the source leaves training
    open. One case can be settled: if the sample contains :math:`-x` with every x, even parts of the
    activation cancel and, with :math:`M = \frac1S \sum_j \bar x_j \bar x_j^\top`,

    .. math:: w_{t+1} - w_* = \Big(I - s \frac{1 + \alpha}{2} M\Big) (w_t - w_*),

    so that the filter is found at a geometric rate, whatever the windows. Else the run is a heuristic
    and says so.

    Args:
        kernel_size: Length of the window; None takes all inputs, a single gate.
        stride: Distance between windows.
        matrices: :math:`A_1, \dots, A_k`, (k, r, n), in place of windows.
        leak: :math:`\alpha`, the slope for negative arguments.
        max_iter: Most steps.
        tol: Stop when steps have become shorter than this share of the filter.
        verbose: 0 for silence; else a progress bar after two seconds, on a terminal.

    Attributes:
        coef_: The filter.
        n_iter_: Steps taken.
        loss_curve_: Mean squared training error before the first and after every step.
        contraction_: Factor of the distance to the true filter per step, if the sample is symmetric.
        error_bound_: Distance to the true filter, if it is promised; else infinite.
        guarantee_: The same with its assumptions.
        network_: The network as a :class:`pindown.ReluNetwork`.

    >>> X = np.random.default_rng(0).standard_normal((60, 5))
    >>> X = np.vstack([X, -X])
    >>> y = single_filter_network([1.0, -2.0], window_matrices(5, 2))(X)[:, 0]
    >>> SingleFilterRegressor(kernel_size=2).fit(X, y).coef_.round(6)
    array([ 1., -2.])

    Mukherjee 2020, Definition 16; the case of symmetric samples is ours.
    """

    def __init__(
        self,
        *,
        kernel_size: int | None = None,
        stride: int = 1,
        matrices: Any = None,
        leak: float = 0.0,
        max_iter: int = 5_000,
        tol: float = 1e-10,
        verbose: int = 1,
    ) -> None:
        self.kernel_size = kernel_size
        self.stride = stride
        self.matrices = matrices
        self.leak = leak
        self.max_iter = max_iter
        self.tol = tol
        self.verbose = verbose

    def __sklearn_tags__(self) -> Any:
        tags = super().__sklearn_tags__()
        tags.regressor_tags.poor_score = True
        return tags

    def fit(self, X: Any, y: Any) -> SingleFilterRegressor:
        """Learn the filter."""
        link, most = leaky_relu(self.leak), integer("max_iter", self.max_iter)
        X, y = validate_data(self, X, y, dtype=np.float64, y_numeric=True)
        y = np.asarray(y, dtype=np.float64)
        check_range(X, y)
        self._matrices = self._windows(X.shape[1])
        patches = np.einsum("krn,jn->jkr", self._matrices, X)
        size = float(np.abs(patches).max()) or 1.0
        patches /= size
        mean = patches.mean(axis=1)
        values = np.linalg.eigvalsh(mean.T @ mean / len(X))
        if len(self._matrices) == 1:
            step = 1 / (link.lipschitz * float((mean**2).sum(axis=1).max() or 1.0))
        else:
            step = 2 / ((1 + self.leak) * float(values[-1])) if values[-1] > 0 else 1.0
        best, far = self._run(link, patches, mean, y, step, most)
        self.coef_ = best / size
        self._judge(X, y, values, step, size, far)
        return self

    def _windows(self, n: int) -> Array:
        if self.matrices is None:
            size = n if self.kernel_size is None else integer("kernel_size", self.kernel_size)
            return window_matrices(n, size, stride=integer("stride", self.stride))
        A = np.array(self.matrices, dtype=np.float64)
        if A.ndim != 3 or not A.size or A.shape[2] != n or not np.isfinite(A).all():
            raise ValueError(f"matrices must be finite, of shape (k, r, {n}); got shape {A.shape}.")
        return A

    def _run(
        self, link: Link, patches: Array, mean: Array, y: Array, step: float, most: int
    ) -> tuple[Array, bool]:
        """Return the best filter, and whether labels are no single gate's."""
        tol = positive("tol", self.tol, zero=True)
        w = best = np.zeros(patches.shape[2])
        losses: list[float] = []
        least, short = math.inf, False
        rows = patches.reshape(-1, patches.shape[2])
        residual, stopped = y, False
        try:
            for t in watched(range(most + 1), "one filter", verbose=self.verbose):
                residual = y - link(rows @ w).reshape(len(y), -1).mean(axis=1)
                losses.append(float(np.mean(residual**2)))
                if losses[-1] < least:
                    least, best = losses[-1], w
                if t == most or short or not math.isfinite(losses[-1]):
                    break
                move = step * (residual @ mean) / len(y)
                w = w + move
                short = float(np.linalg.norm(move)) <= tol * float(np.linalg.norm(w))
        except KeyboardInterrupt:
            stopped = True
            losses = losses or [float(np.mean(y**2))]  # of the filter zero, where the run starts
            warnings.warn("interrupted: the best filter so far is kept", stacklevel=3)
        if not short and not stopped:
            warnings.warn(
                f"steps were still longer than tol after {len(losses) - 1}; raise max_iter or tol.",
                ConvergenceWarning,
                stacklevel=3,
            )
        self.n_iter_, self.loss_curve_ = len(losses) - 1, np.array(losses)
        return best, is_unexplained(residual, residual @ mean / len(y), w, y, link.lipschitz)

    def _judge(self, X: Array, y: Array, values: Array, step: float, size: float, far: bool) -> None:
        symmetric = _is_symmetric(X)
        spans = bool(values[0] > _RANK_TOLERANCE * values[-1])
        half = step * (1 + self.leak) / 2
        settled = symmetric and spans
        self.contraction_ = float(np.abs(1 - half * values).max()) if settled else 1.0
        self.error_bound_ = math.inf
        if settled:
            # The first move from zero is half M w*, so its length bounds that of w*.
            mean = np.einsum("krn,jn->jr", self._matrices, X) / (len(self._matrices) * size)
            start = step * float(np.linalg.norm(y @ mean)) / len(y) / (half * float(values[0]))
            shrunk = start * self.contraction_ ** int(self.loss_curve_.argmin())
            pull = step * float(np.sqrt(np.mean(y**2) * np.mean((mean**2).sum(axis=1))))
            self.error_bound_ = (shrunk + self._rounding(start + pull)) / size
        if len(self._matrices) == 1 and not settled:
            self.guarantee_ = self._as_gate(far)
        else:
            self.guarantee_ = self._as_filter(symmetric, spans, self._explained(X, y))

    def _rounding(self, summed: float) -> float:
        """Return where float64 stops the steps: one rounding each, shrunk by all the steps after it."""
        terms = len(self._matrices) * len(self.coef_) + _ROUNDINGS_PER_STEP
        once = terms * np.finfo(float).eps * summed  # what one step adds up, at its largest
        kept = 1.0 - self.contraction_
        return once * (min(self.n_iter_, 1 / kept) if kept > 0 else self.n_iter_)

    def _explained(self, X: Array, y: Array) -> bool:
        """Whether labels are as close to the answers as the bound on the filter says."""
        if not math.isfinite(self.error_bound_):
            return True
        longest = np.linalg.norm(np.einsum("krn,jn->jkr", self._matrices, X), axis=2).max(axis=1)
        allowed = max(1.0, self.leak) * self.error_bound_ * longest
        return bool(np.all(np.abs(y - self.network_(X)[:, 0]) <= allowed + _ROUNDING * np.abs(y).max()))

    def _as_filter(self, symmetric: bool, spans: bool, explained: bool) -> GateGuarantee:
        return GateGuarantee(
            about="distance of coef_ to the true filter",
            value=self.error_bound_,
            delta=0.0,
            assumptions=(
                Assumption("the sample holds -x with every x", "checked" if symmetric else "violated"),
                Assumption("mean windows span the filter's space", "checked" if spans else "violated"),
                Assumption("labels come from such a network", "assumed" if explained else "violated"),
            ),
            source="Mukherjee 2020, Definition 16, symmetric samples",
        )

    def _as_gate(self, far: bool) -> GateGuarantee:
        return GateGuarantee(
            about="mean squared distance of the answers to the true ones, on the training inputs",
            value=float(self.loss_curve_.min()),
            delta=0.0,
            assumptions=(Assumption("labels come from such a gate", "violated" if far else "assumed"),),
            source="Mukherjee 2020, Theorem 3.5.2",
        )

    @property
    def network_(self) -> ReluNetwork:
        """The learned network."""
        if not hasattr(self, "coef_"):
            raise AttributeError("network_ exists after fit.")
        return single_filter_network(self.coef_, self._matrices, leak=self.leak)

    def predict(self, X: Any) -> Array:
        """Return the network's outputs."""
        check_is_fitted(self)
        X = validate_data(self, X, dtype=np.float64, reset=False)
        return self.network_(X)[:, 0]


def _is_symmetric(X: Array) -> bool:
    """Whether every row occurs as often as its negative."""
    row = np.dtype((np.void, X.dtype.itemsize * X.shape[1]))
    # Adding zero turns -0.0 into 0.0: rows are compared byte by byte.
    here, mirrored = (np.sort(np.ascontiguousarray(Y + 0.0).view(row).ravel()) for Y in (X, -X))
    return here.tobytes() == mirrored.tobytes()
