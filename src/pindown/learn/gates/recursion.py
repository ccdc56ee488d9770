r"""How many steps a contraction with noise takes, and the step size that gets it there.

.. math:: X_{t+1} \le (1 - \eta b + \eta^2 c_1) X_t + \eta^2 c_2, \qquad X_1 = C
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import Literal

from pindown.learn.gates.numbers import positive

# Relative slack in "already there" and "contraction of zero": a few roundings of one quotient.
_ROUNDING = 1e-14


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
    r"""Return the step and the time T with :math:`X_T \le \epsilon^2`.

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
