r"""Double descent: test error of least squares against the number of features.

Few features: a good fit. As many as samples: the one interpolant has a huge norm, and the test error
peaks. Many more: the interpolant of least norm is small again.

For Gaussian features the expected error is a formula at every size (p features of D used, n samples,
:math:`\tau^2` the squared norm of the unused true weights plus the variance of the noise):

.. math:: R = \begin{cases}
          \tau^2\Big(1 + \dfrac{p}{n - p - 1}\Big) & p \le n - 2,\\[1ex]
          \lVert\beta_p\rVert^2\Big(1 - \dfrac np\Big) + \tau^2\Big(1 + \dfrac{n}{p - n - 1}\Big)
          & p \ge n + 2, \end{cases}

and infinite between.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Literal

import numpy as np
from numpy.typing import ArrayLike

from pindown.affine import Array
from pindown.bias.tuning import RIDGE_GRID
from pindown.evidence import Kind
from pindown.validation import choice, integer, integers, labelled, positive, refuse, table, vector


@dataclass(frozen=True)
class DoubleDescent:
    """Errors and norms over the number of features.

    Attributes:
        widths: Numbers of features.
        test_error: Median mean squared error on the test set, over draws of the features.
        train_error: The same on the training set.
        norm: Median norm of the weights.
        n_samples: Training samples.
        repeats: Draws of the features.
        kind: ``"estimate"``: medians over draws.
    """

    widths: Array
    test_error: Array = field(repr=False)
    train_error: Array = field(repr=False)
    norm: Array = field(repr=False)
    n_samples: int
    repeats: int
    kind: Kind = "estimate"

    @property
    def peak(self) -> int:
        """Number of features at which the test error is largest."""
        return int(self.widths[int(np.argmax(self.test_error))])

    def __str__(self) -> str:
        return (
            f"test error peaks at {self.peak} features ({self.test_error.max():.3g}) for "
            f"{self.n_samples} samples, {self.test_error[-1]:.3g} at {int(self.widths[-1])}"
        )


def double_descent_curve(
    X: ArrayLike,
    y: ArrayLike,
    X_test: ArrayLike,
    y_test: ArrayLike,
    widths: Sequence[int],
    *,
    features: Literal["relu", "fourier"] = "relu",
    ridge: float | Literal["tuned"] = 0.0,
    repeats: int = 20,
    random_state: int = 0,
) -> DoubleDescent:
    r"""Measure least squares on random features over their number.

    Features are :math:`\max(0, \langle u, x\rangle)/\sqrt D` or
    :math:`\sqrt2\cos(\langle u, x\rangle + b)/\sqrt D` with Gaussian u of variance one over the number
    of inputs for the first and one for the second.

    Args:
        X: Training inputs (n, d).
        y: Targets (n,).
        X_test: Test inputs.
        y_test: Test targets.
        widths: Numbers of features D.
        features: ``"relu"`` or ``"fourier"``.
        ridge: Penalty on the squared norm; zero takes the interpolant of least norm, ``"tuned"`` chooses
            for every draw by leave-one-out.
        repeats: Draws of the features.
        random_state: Seed of the features.

    Returns:
        A :class:`DoubleDescent`.

    Raises:
        ValueError: If values are not finite, shapes differ, or an option is another one.

    >>> X = np.random.default_rng(0).standard_normal((20, 3))
    >>> found = double_descent_curve(X, X[:, 0] ** 2, X, X[:, 0] ** 2, [5, 40], repeats=2)
    >>> (found.train_error < 1e-9).tolist()
    [False, True]

    Lecture course, slides on double descent.
    """
    X, y = labelled(X, y)
    X_test, y_test = labelled(X_test, y_test)
    if X_test.shape[1] != X.shape[1]:
        raise ValueError(f"both inputs need one width; got {X.shape[1]} and {X_test.shape[1]}.")
    choice("features", features, ("relu", "fourier"))
    sizes = integers("widths", widths)
    if not sizes:
        refuse("widths", "at least one number of features", widths)
    repeats = integer("repeats", repeats)
    integer("random_state", random_state, least=0)
    if ridge == "tuned" and len(X) < 2:
        raise ValueError("ridge='tuned' leaves one sample out, so at least two are needed; got 1.")
    if ridge != "tuned":
        ridge = positive("ridge", ridge, zero=True)
    found = np.empty((len(sizes), repeats, 3))
    for i, width in enumerate(sizes):
        for r in range(repeats):
            rng = np.random.default_rng([random_state, r, width])
            train, test = _features(X, X_test, width, features, rng)
            w = _fit(train, y, ridge)
            found[i, r] = (
                np.mean((test @ w - y_test) ** 2),
                np.mean((train @ w - y) ** 2),
                np.linalg.norm(w),
            )
    test_error, train_error, norm = np.median(found, axis=1).T
    return DoubleDescent(np.array(sizes, float), test_error, train_error, norm, len(X), repeats)


def gaussian_risk(n: int, weights: ArrayLike, used: int, noise: float) -> float:
    """Return the expected squared test error of least squares on some of the Gaussian features.

    Args:
        n: Training samples.
        weights: True weights (D,) of independent standard Gaussian features.
        used: How many of the features, the first ones, are used; the minimiser of least norm is taken.
        noise: Standard deviation of the noise on targets.

    Returns:
        The expectation over the training set and a test point, noise included; infinite next to n.

    Example:
        Without features the error is that of predicting zero; with all of them and much data, the noise.

        >>> gaussian_risk(10, [3.0, 4.0], 0, 0.0), gaussian_risk(10**9, [3.0, 4.0], 2, 1.0)
        (25.0, 1.000000002)

    Belkin, Hsu and Xu 2020, Theorem 1; lecture course, slides on double descent.
    """
    n = integer("n", n)
    beta = np.asarray(weights, dtype=np.float64)
    beta = vector("weights", beta, beta.size)
    used = integer("used", used, least=0, most=beta.size)
    seen = float(beta[:used] @ beta[:used])
    other = float(beta[used:] @ beta[used:]) + positive("noise", noise, zero=True) ** 2
    missed = seen * max(0.0, 1 - n / used) if used else 0.0
    if other == 0.0 or used == 0:
        return missed + other  # nothing is fitted, or no noise to amplify: also next to n
    if n - 1 <= used <= n + 1:
        return float("inf")
    inflation = used / (n - used - 1) if used < n else n / (used - n - 1)
    return missed + other * (1 + inflation)


def _features(
    X: Array, X_test: Array, width: int, kind: str, rng: np.random.Generator
) -> tuple[Array, Array]:
    X, X_test = table(X), table(X_test)
    directions = rng.standard_normal((X.shape[1], width))
    if kind == "relu":
        directions /= np.sqrt(X.shape[1])
        root = np.sqrt(width)
        return np.maximum(X @ directions, 0) / root, np.maximum(X_test @ directions, 0) / root
    shift = rng.uniform(0, 2 * np.pi, width)
    scale = np.sqrt(2 / width)
    return scale * np.cos(X @ directions + shift), scale * np.cos(X_test @ directions + shift)


def _fit(features: Array, y: Array, ridge: float | str) -> Array:
    if ridge == 0.0:
        return np.asarray(np.linalg.lstsq(features, y, rcond=None)[0])
    if ridge != "tuned":
        rows = np.sqrt(float(ridge)) * np.eye(features.shape[1])
        stacked, target = np.vstack([features, rows]), np.concatenate([y, np.zeros(features.shape[1])])
        return np.asarray(np.linalg.lstsq(stacked, target, rcond=None)[0])
    from sklearn.linear_model import RidgeCV

    scale = float(np.mean(features**2))
    if scale == 0.0:  # no feature is on for any sample
        return np.zeros(features.shape[1])
    return np.asarray(RidgeCV(alphas=RIDGE_GRID * scale, fit_intercept=False).fit(features, y).coef_)
