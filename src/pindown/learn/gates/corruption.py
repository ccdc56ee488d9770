r"""How close the modified stochastic gradient method gets when labels are corrupted by up to theta.

Using only labels above :math:`\theta`, with :math:`X_t = E \lVert w_t - w_* \rVert^2` and a step
:math:`\eta`,

.. math:: X_{t+1} \le (1 + \eta^2 \kappa) X_t + h(X_t) + \eta^2 \theta^2 m_2, \qquad
          h(s) = \max_{q \ge \sqrt{\lambda s}} \big(-2 \eta q^2 + 2 \eta \theta \sqrt{p}\, q\big),

where :math:`m_2 = E[a \lVert x \rVert^2]` and :math:`p = E[a (1 - \eta \lVert x \rVert^2)^2]`. The
corruption may depend on the input. For :math:`\theta = 0` this is the recursion of Theorem 3.3.1. The
right side is concave and increasing in :math:`X_t`, so that Jensen's inequality carries it through
expectations, and beyond its fixed point :math:`s_*` it lies below its tangent there: :math:`X_t - s_*`
shrinks by the slope at every step.
"""

from __future__ import annotations

import math
from dataclasses import dataclass

from pindown.learn.gates.moments import GateMoments

# Steps that take the worst case closer to its floor than this share are not worth taking.
_NEAR_FLOOR = 0.01


@dataclass(frozen=True)
class ErrorRecursion:
    r"""One step of the worst case for the mean squared distance to the gate's weights.

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
        wanted = max(target, (1 + _NEAR_FLOOR) * self.floor)
        if squared_error <= wanted:
            return 0.0
        if not 0 < self.rate < 1:
            return 1.0 if self.rate == 0 else math.inf
        return math.log((squared_error - self.floor) / (wanted - self.floor)) / -math.log(self.rate)
