r"""How far noisy gradient descent on a ReLU gate can stray from the weights that made the labels.

.. math:: w_{t+1} = w_t - \eta (g_t + \zeta^1_t) + \sqrt\eta\, \zeta^2_t, \qquad
          g_t = -\frac1S \sum_i 1[u_i \ge 0] (y_i - \mathrm{relu}(u_i)) x_i, \quad
          u_i = \langle w_t, x_i \rangle,

with :math:`\lVert x_i \rVert \le C`, :math:`\lVert \zeta^1 \rVert \le S_1` of mean zero, and
:math:`\zeta^2` independent of it and *centrally symmetric*: cut to length :math:`C_L` it must keep mean
zero.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass

import numpy as np

from pindown.affine import Array
from pindown.guarantees.bounds.martingales import supermartingale_bound
from pindown.learn.gates.tuning import CUT_CHOICES, SLACK_RANGE, SLACK_SEARCH_STEPS
from pindown.validation import choice, integer, positive, probability, share


@dataclass(frozen=True)
class Confinement:
    r"""A ball around the true weights that noisy gradient descent stays in.

    Attributes:
        radius: :math:`r_*`.
        failure: Bound on the probability to leave it within ``n_steps``; 1 or more says nothing.
        difference: k, the bound on one step of the supermartingale.
        slack: :math:`\lambda`, by how much its squared distance may exceed the drift.
        n_steps: :math:`i_{\max}`.
    """

    radius: float
    failure: float
    difference: float
    slack: float
    n_steps: int

    @property
    def vacuous(self) -> bool:
        """Whether nothing is promised."""
        return self.failure >= 1 or not math.isfinite(self.radius)

    def __str__(self) -> str:
        if self.vacuous:
            return f"no confinement: bound {self.failure:.3g} at radius {self.radius:.3g} (vacuous)"
        return (
            f"the first {self.n_steps} iterates stay within {self.radius:.6g} of the true weights "
            f"with probability {1 - self.failure:.6g} (probability)"
        )


def largest_step(largest_norm: float, n_steps: int) -> float:
    r"""Return :math:`1 / (C^2 \sqrt{2 i_{\max}})`, below which the radius is finite.

    Example:
        >>> largest_step(1.0, 50)
        0.1

    Mukherjee 2020, Theorem 3.4.1.
    """
    return 1 / (positive("largest_norm", largest_norm) ** 2 * math.sqrt(2 * integer("n_steps", n_steps)))


def confinement(
    slack: float,
    *,
    start_distance: float,
    largest_norm: float,
    step: float,
    n_steps: int,
    gradient_noise: float,
    second_moment: float,
    cut: float,
    tail: float,
    variant: str = "sharp",
) -> Confinement:
    r"""Bound the probability to leave a ball around :math:`w_*`, and the ball's radius.

    .. math::

        r_*^2 &= \frac{\lambda + \lVert w_0 - w_* \rVert^2 + i_{\max} (\eta v + 2 \eta^2 S_1^2)}
          {1 - 2 i_{\max} \eta^2 C^4}, \\
        P[\text{out}] &\le i_{\max} P[\lVert \zeta^2 \rVert > C_L]
          + \exp\Big(-\frac{\lambda^2}{2 i_{\max} k^2}\Big), \\
        k &= 2 \sqrt\eta C_L (r_* + \eta (C^2 r_* + S_1))
          + \eta \big(2 S_1 r_* + \max\{C_L^2 - v,\; v + 2 C^2 r_*^2 + 2 \eta (C^4 r_*^2 + S_1^2)\}\big).

    Args:
        slack: :math:`\lambda > 0`.
        start_distance: :math:`\lVert w_0 - w_* \rVert`, or a bound.
        largest_norm: C.
        step: :math:`\eta`, below :func:`largest_step`.
        n_steps: :math:`i_{\max}`.
        gradient_noise: :math:`S_1`.
        second_moment: :math:`v \ge E \lVert \zeta^2 \rVert^2`; the source takes the dimension n.
        cut: :math:`C_L`.
        tail: :math:`P[\lVert \zeta^2 \rVert > C_L]`.
        variant: ``"corrected"`` multiplies the exponential by :math:`i_{\max}` as the source does;
            ``"sharp"`` does not: the process is stopped when it leaves, so the last time alone decides.

    Returns:
        The ball, which prints itself.

    Raises:
        ValueError: If a number is out of range.

    Example:
        Without noise the start is all that counts, nearly:

        >>> calm = dict(start_distance=1.0, largest_norm=1.0, step=1e-4, n_steps=100, gradient_noise=0.0)
        >>> ball = confinement(0.1, **calm, second_moment=0.0, cut=0.0, tail=0.0)
        >>> round(ball.radius, 3), ball.failure < 1e-9
        (1.049, True)

    Mukherjee 2020, Theorem 3.4.1, with the square of k in the exponent; v for n, and no union bound, are
    ours.
    """
    lam, D = positive("slack", slack), positive("start_distance", start_distance, zero=True)
    C = largest_norm
    T, eta, S1 = integer("n_steps", n_steps), positive("step", step), gradient_noise
    v, cl = positive("second_moment", second_moment, zero=True), positive("cut", cut, zero=True)
    positive("gradient_noise", gradient_noise, zero=True)
    if eta >= largest_step(C, T):
        raise ValueError(f"step must be below {largest_step(C, T):.6g} for {T} steps; got {step!r}.")
    share("tail", tail)
    choice("variant", variant, ("corrected", "sharp"))
    squared = (lam + D**2 + T * (eta * v + 2 * eta**2 * S1**2)) / (1 - 2 * T * eta**2 * C**4)
    r = math.sqrt(squared)
    down = v + 2 * C**2 * squared + 2 * eta * (C**4 * squared + S1**2)
    k = 2 * math.sqrt(eta) * cl * (r + eta * (C**2 * r + S1))
    k += eta * (2 * S1 * r + max(cl**2 - v, down))
    rises = supermartingale_bound(lam, [k * math.sqrt(T)]).value
    return Confinement(r, T * tail + (T * rises if variant == "corrected" else rises), k, lam, T)


def gaussian_tail(cut: float, deviations: Array) -> float:
    r"""Bound :math:`P[\lVert \zeta \rVert > C_L]` by :math:`4 \exp(-C_L^2 / (8 \sum_i \sigma_i^2))`.

    Args:
        cut: :math:`C_L`.
        deviations: Standard deviations :math:`\sigma_i` of the independent coordinates.

    Example:
        >>> gaussian_tail(8.0, np.array([1.0])) < 0.002
        True

    Mukherjee 2020, section 3.4 (after Ledoux and Talagrand 2013, equation 3.5).
    """
    total = float(np.sum(np.square(deviations)))
    return min(1.0, 4 * math.exp(-(cut**2) / (8 * total))) if total > 0 else 0.0


def best_radius(
    failure: float,
    *,
    start_distance: float,
    largest_norm: float,
    step: float,
    n_steps: int,
    gradient_noise: float,
    deviation: float,
    dimension: int,
) -> Confinement:
    r"""Return the smallest ball that isotropic Gaussian noise leaves with at most a given probability.

    The cut :math:`C_L` and the slack :math:`\lambda` are searched; the tail of the noise is that of a
    chi distribution.

    Args:
        failure: Allowed probability.
        start_distance: :math:`\lVert w_0 - w_* \rVert`, or a bound.
        largest_norm: C.
        step: :math:`\eta`, below :func:`largest_step`.
        n_steps: :math:`i_{\max}`.
        gradient_noise: :math:`S_1`.
        deviation: :math:`\sigma` of every coordinate of :math:`\zeta^2`.
        dimension: n.

    Returns:
        The ball; its radius is infinite if no slack in the range searched is enough.

    Example:
        >>> ball = best_radius(0.01, start_distance=1.0, largest_norm=1.0, step=1e-5, n_steps=1000,
        ...     gradient_noise=0.1, deviation=0.02, dimension=5)
        >>> ball.failure <= 0.01, ball.radius < 1.05
        (True, True)

    Mukherjee 2020, Theorem 3.4.1, corrected.
    """
    from scipy.stats import chi

    p, sigma = probability("failure", failure), positive("deviation", deviation, zero=True)
    best = Confinement(math.inf, 1.0, math.inf, math.inf, n_steps)
    # How much of the allowed probability the noise's tail takes; with no noise it takes none.
    shares = np.geomspace(1e-3, 0.9, CUT_CHOICES) if sigma > 0 else [0.0]
    for taken in shares:
        tail = p * float(taken) / n_steps
        cut = sigma * float(chi.isf(tail, dimension)) if sigma > 0 else 0.0

        def ball(slack: float, cut: float = cut, tail: float = tail) -> Confinement:
            return confinement(
                slack,
                start_distance=start_distance,
                largest_norm=largest_norm,
                step=step,
                n_steps=n_steps,
                gradient_noise=gradient_noise,
                second_moment=dimension * sigma**2,
                cut=cut,
                tail=tail,
            )

        found = _least_slack(ball, p, max(1.0, start_distance**2))
        if found is not None and found.radius < best.radius:
            best = found
    return best


def _least_slack(
    ball: Callable[[float], Confinement], failure: float, unit: float
) -> Confinement | None:
    """Return the ball of least slack that keeps the failure, by bisection in the logarithm."""
    low, high = (math.log(unit * s) for s in SLACK_RANGE)
    # Slack over k grows with the slack while it is small and levels off; find the first that is enough.
    grid = np.linspace(low, high, SLACK_SEARCH_STEPS)
    enough = next((i for i, s in enumerate(grid) if ball(math.exp(s)).failure <= failure), None)
    if enough is None:
        return None
    if enough == 0:
        return ball(math.exp(low))
    low, high = float(grid[enough - 1]), float(grid[enough])
    for _ in range(SLACK_SEARCH_STEPS // 2):
        middle = (low + high) / 2
        low, high = (low, middle) if ball(math.exp(middle)).failure <= failure else (middle, high)
    return ball(math.exp(high))
