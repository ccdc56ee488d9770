r"""What modified SGD on a gate promises: moments of the data, one step of its error, and how many steps.

With :math:`a = 1[y > \theta]`, the indicator that a sample is used,

.. math:: \lambda = \lambda_{\min} E[a x x^\top], \qquad c_1 = E[a \lVert x \rVert^4], \qquad
          \kappa = \lambda_{\max} E[a \lVert x \rVert^2 x x^\top] \le c_1.

All of them can be computed from data. On a finite sample from which one draws with replacement they are
exact.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import Literal

import numpy as np

from pindown.affine import Array
from pindown.learn.gates.tuning import NEAR_FLOOR
from pindown.validation import positive

# An eigenvalue below this share of the largest is rounding of zero: the used inputs lie in a subspace.
_RANK_TOLERANCE = 1e-12
# Relative slack in "already there" and "contraction of zero": a few roundings of one quotient.
_ROUNDING = 1e-14


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
        moments: Moments of the same data, with the threshold ``noise_bound``.
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


@dataclass(frozen=True)
class ErrorRecursion:
    r"""One step of the worst case for the mean squared distance to the gate's weights.

    Using only labels above :math:`\theta`, with :math:`X_t = E \lVert w_t - w_* \rVert^2` and a step
    :math:`\eta`,

    .. math:: X_{t+1} \le (1 + \eta^2 \kappa) X_t + h(X_t) + \eta^2 \theta^2 m_2, \qquad
              h(s) = \max_{q \ge \sqrt{\lambda s}} \big(-2 \eta q^2 + 2 \eta \theta \sqrt{p}\, q\big),

    where :math:`m_2 = E[a \lVert x \rVert^2]` and :math:`p = E[a (1 - \eta \lVert x \rVert^2)^2]`. The
    corruption may depend on the input. For :math:`\theta = 0` this is the recursion of Theorem 3.3.1.
    The right side is concave and increasing in :math:`X_t`, so that Jensen's inequality carries it
    through expectations, and beyond its fixed point :math:`s_*` it lies below its tangent there:
    :math:`X_t - s_*` shrinks by the slope at every step.

    Attributes:
        step: :math:`\eta`.
        eigenvalue: :math:`\lambda`.
        growth: :math:`\kappa` or anything above.
        cross: :math:`p`.
        second_moment: :math:`m_2`.
        noise_bound: :math:`\theta`.
    """

    step: float
    eigenvalue: float
    growth: float
    cross: float
    second_moment: float
    noise_bound: float

    @classmethod
    def of(
        cls, moments: GateMoments, step: float, eigenvalue: float, growth: float, noise_bound: float
    ) -> ErrorRecursion:
        """Return the recursion for given moments, with the eigenvalue and growth in use."""
        cross = moments.share - 2 * step * moments.second_moment + step**2 * moments.fourth_moment
        return cls(step, eigenvalue, growth, max(cross, 0.0), moments.second_moment, noise_bound)

    @property
    def contraction(self) -> float:
        r"""The factor :math:`\rho = 1 - 2 \eta \lambda + \eta^2 \kappa` of the noiseless recursion."""
        return max(0.0, 1 - self.step * (2 * self.eigenvalue - self.step * self.growth))

    def __call__(self, squared_error: float) -> float:
        """Return the bound one step later."""
        eta, theta = self.step, self.noise_bound
        pull = theta * math.sqrt(self.cross)
        q = max(math.sqrt(self.eigenvalue * squared_error), pull / 2)
        grown = (1 + eta**2 * self.growth) * squared_error
        return max(0.0, grown - 2 * eta * q * (q - pull) + (eta * theta) ** 2 * self.second_moment)

    @property
    def floor(self) -> float:
        r"""The squared error :math:`s_*` at which the worst case stays."""
        if self.noise_bound == 0:
            return 0.0
        decay = self.step * (2 * self.eigenvalue - self.step * self.growth)
        if decay <= 0:
            return math.inf
        pull = self.step * self.noise_bound * math.sqrt(self.cross * self.eigenvalue)
        fed = (self.step * self.noise_bound) ** 2 * self.second_moment
        return ((pull + math.sqrt(pull**2 + decay * fed)) / decay) ** 2

    @property
    def rate(self) -> float:
        """The slope of the worst case at its floor, the steepest beyond it: the excess shrinks by it."""
        if self.floor in {0.0, math.inf}:
            return self.contraction
        pull = self.step * self.noise_bound * math.sqrt(self.cross * self.eigenvalue / self.floor)
        return min(1.0, self.contraction + pull)

    def after(self, squared_error: float, n_steps: int) -> float:
        """Return a bound after some steps: the excess over the floor, shrunk by the rate each time."""
        if math.isinf(squared_error):
            return squared_error
        return self.floor + self.rate**n_steps * max(0.0, squared_error - self.floor)

    def steps_to(self, squared_error: float, target: float) -> float:
        """Return after how many steps the bound is at the target, or within a hundredth of the floor."""
        wanted = max(target, (1 + NEAR_FLOOR) * self.floor)
        if squared_error <= wanted:
            return 0.0
        if not 0 < self.rate < 1:
            return 1.0 if self.rate == 0 else math.inf
        return math.log((squared_error - self.floor) / (wanted - self.floor)) / -math.log(self.rate)


@dataclass(frozen=True)
class RecursionSolution:
    r"""A step size and the time at which the recursion is below its target.

    Attributes:
        step: :math:`\eta`.
        contraction: :math:`\alpha = 1 - \eta b + \eta^2 c_1`, below one but for rounding.
        time: The real T with :math:`X_T` equal to the target in the worst case.
        n_steps: T rounded up; :math:`X_{n} \le` target.
        limit: Where the worst case settles, below the target.
        rule: Which formula gave the step: ``"published"`` or ``"general"``.
    """

    step: float
    contraction: float
    time: float
    n_steps: int
    limit: float
    rule: Literal["published", "general"]

    def __str__(self) -> str:
        return (
            f"step {self.step:.6g}: each step keeps {self.contraction:.6g} of the excess, the target "
            f"is met at t = {self.n_steps} (exact; {self.rule} step)"
        )


def solve_recursion(
    decay: float, growth: float, *, start: float, target: float, noise: float = 0.0
) -> RecursionSolution:
    r"""Return the step and the time T with :math:`X_T \le \epsilon^2`, for a contraction with noise.

    .. math:: X_{t+1} \le (1 - \eta b + \eta^2 c_1) X_t + \eta^2 c_2, \qquad X_1 = C

    Without noise, :math:`\eta = b / (2 c_1)` and :math:`T = 1 + \log(C/\epsilon^2) / \log(1/\alpha)`.
    With noise :math:`0 < c_2 < c_1` and :math:`b^2/c_1 < (\epsilon + 1/\epsilon)^2`,

    .. math:: \eta = \frac{b}{c_1} \frac{\epsilon^2}{1 + \epsilon^2}, \qquad
              T = 1 + \log\frac{\epsilon^2 (c_1 - c_2)}{C c_1 - c_2 \epsilon^2} \Big/ \log\alpha.

    Where these conditions fail, :math:`\eta = \frac12 b \epsilon^2 / (c_2 + c_1 \epsilon^2)` is used,
    half of the step at which the limit would be the target itself.

    Args:
        decay: :math:`b > 0`.
        growth: :math:`c_1 \ge b^2/4`; below that no sequence of positive numbers fits.
        start: :math:`C \ge 0`.
        target: :math:`\epsilon^2 > 0`.
        noise: :math:`c_2 \ge 0`.

    Returns:
        The solution, which prints itself.

    Raises:
        ValueError: If a number is out of range.

    Example:
        Halved at each step, 8 is at 1 after three steps, the fourth number:

        >>> solve_recursion(1.0, 0.5, start=8.0, target=1.0).n_steps
        4

    Mukherjee 2020, Lemma 3.E.1, with the condition that its proof needs.
    """
    b, c1, c2 = positive("decay", decay), positive("growth", growth), positive("noise", noise, zero=True)
    C, e2 = positive("start", start, zero=True), positive("target", target)
    if c1 * (1 + _ROUNDING) < b * b / 4:
        raise ValueError(f"growth must be at least decay^2/4 = {b * b / 4:.6g}; got {growth!r}.")
    rule: Literal["published", "general"] = "published"
    if c2 == 0:
        step = b / (2 * c1)
    elif c2 < c1 and b * b / c1 < e2 + 2 + 1 / e2:
        step = b / c1 * e2 / (1 + e2)
    else:
        step, rule = b * e2 / (c2 + c1 * e2) / 2, "general"
    lost = step * (b - step * c1)  # one minus the contraction, which may round to one
    if lost == 0:
        raise ValueError(
            f"decay^2/growth underflows; got {decay!r} and {growth!r}: rescale the sequence."
        )
    lost = lost if lost < 1 - _ROUNDING else 1.0
    limit = step * c2 / (b - step * c1)
    time = _time(C, e2, limit, lost)
    return RecursionSolution(
        step, 1 - lost, time, max(1, math.ceil(time - _ROUNDING * time)), limit, rule
    )


def _time(C: float, e2: float, limit: float, lost: float) -> float:
    """Return T with ``limit + (1 - lost)**(T - 1) * (C - limit) == e2``, or 1 if the start is below."""
    if e2 >= C:
        return 1.0
    if lost == 1:
        return 2.0
    return 1 + math.log((C - limit) / (e2 - limit)) / -math.log1p(-lost)
