r"""Moments of the inputs that a gate answered to: the constants of the modified gradient method.

With :math:`a = 1[y > \theta]`, the indicator that a sample is used,

.. math:: \lambda = \lambda_{\min} E[a x x^\top], \qquad c_1 = E[a \lVert x \rVert^4], \qquad
          \kappa = \lambda_{\max} E[a \lVert x \rVert^2 x x^\top] \le c_1.

All of them can be computed from data. On a finite sample from which one draws with replacement they are
exact.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from pindown.affine import Array

# An eigenvalue below this share of the largest is rounding of zero: the used inputs lie in a subspace.
_RANK_TOLERANCE = 1e-12


@dataclass(frozen=True)
class GateMoments:
    r"""Moments of the inputs whose label is used.

    Attributes:
        smallest_eigenvalue: :math:`\lambda`; zero if the used inputs do not span the space.
        fourth_moment: :math:`c_1`.
        sharp_fourth_moment: :math:`\kappa`, which is all that the proof needs in place of :math:`c_1`.
        second_moment: :math:`E[a \lVert x \rVert^2]`.
        share: :math:`E[a]`.
        eigenvalue_error: Standard error of :math:`\lambda`, if the sample stands for a distribution.
        fourth_moment_error: Standard error of :math:`c_1`.
        n_samples: Size of the sample.
    """

    smallest_eigenvalue: float
    fourth_moment: float
    sharp_fourth_moment: float
    second_moment: float
    share: float
    eigenvalue_error: float
    fourth_moment_error: float
    n_samples: int

    def __str__(self) -> str:
        return (
            f"smallest eigenvalue {self.smallest_eigenvalue:.6g}, fourth moment "
            f"{self.fourth_moment:.6g} (sharp: {self.sharp_fourth_moment:.6g}), "
            f"{self.share:.3g} of {self.n_samples} samples are used"
        )


def gate_moments(X: Array, y: Array, *, threshold: float = 0.0) -> GateMoments:
    r"""Return the moments of the inputs with :math:`y > \theta`.

    Args:
        X: Inputs, (n, d).
        y: Labels, (n,).
        threshold: :math:`\theta`; with labels off by at most :math:`\theta`, a label above it belongs to
            an input on the linear side of the gate.

    Returns:
        The moments, exact for a uniform draw from these samples.

    Example:
        Of (1, 0), (0, 1), (-1, 0) and (0, -1) the gate with w = (1, 1) answers to two:

        >>> X = np.array([[1.0, 0], [0, 1], [-1, 0], [0, -1]])
        >>> moments = gate_moments(X, np.maximum(X.sum(axis=1), 0))
        >>> moments.smallest_eigenvalue, moments.fourth_moment, moments.sharp_fourth_moment
        (0.25, 0.5, 0.25)

    Mukherjee 2020, Theorem 3.3.1; the sharper constant is ours.
    """
    n = len(X)
    used = X[y > threshold]
    squares = np.einsum("ij,ij->i", used, used)
    covariance = used.T @ used / n
    values, vectors = np.linalg.eigh(covariance)
    smallest = float(values[0]) if values[0] > _RANK_TOLERANCE * max(values[-1], 0.0) else 0.0
    along = np.zeros(n)
    along[: len(used)] = (used @ vectors[:, 0]) ** 2
    fourth = np.zeros(n)
    fourth[: len(used)] = squares**2
    weighted = (used * squares[:, None]).T @ used / n
    return GateMoments(
        smallest_eigenvalue=smallest,
        fourth_moment=float(fourth.mean()),
        sharp_fourth_moment=float(np.linalg.eigvalsh(weighted)[-1]),
        second_moment=float(squares.sum() / n),
        share=len(used) / n,
        eigenvalue_error=float(along.std() / np.sqrt(n)),
        fourth_moment_error=float(fourth.std() / np.sqrt(n)),
        n_samples=n,
    )


def start_distance_bound(
    X: Array, y: Array, start: Array, moments: GateMoments, *, noise_bound: float = 0.0
) -> float:
    r"""Bound the distance from a start to the gate's weights, from the data alone.

    .. math:: \lVert w_1 - w_* \rVert \le
              \frac{1}{\lambda} \big\lVert E[a (y - \langle w_1, x \rangle) x] \big\rVert
              + \theta \sqrt{E[a] / \lambda},

    because :math:`E[a x x^\top] (w_* - w_1) = E[a (y - \xi - \langle w_1, x \rangle) x]` for labels off
    by :math:`|\xi| \le \theta`.

    Args:
        X: Inputs, (n, d).
        y: Labels, each within ``noise_bound`` of the gate's answer.
        start: :math:`w_1`.
        moments: Of the same data, with the threshold ``noise_bound``.
        noise_bound: :math:`\theta`.

    Returns:
        The bound; infinite if the used inputs do not span the space.

    Example:
        >>> X, y = np.array([[1.0, 0], [0, 1]]), np.array([3.0, 4.0])
        >>> start_distance_bound(X, y, np.zeros(2), gate_moments(X, y))
        5.0
    """
    lam = moments.smallest_eigenvalue
    if lam == 0:
        return float("inf")
    used = y > noise_bound
    pull = X[used].T @ (y[used] - X[used] @ start) / len(X)
    return float(np.linalg.norm(pull)) / lam + noise_bound * float(np.sqrt(moments.share / lam))
