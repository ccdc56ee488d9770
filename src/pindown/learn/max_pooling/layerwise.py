"""Layer-wise training: what the theorem asks of width, steps and radius, and a half for each layer."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
import numpy.typing as npt

from pindown.affine import Array
from pindown.learn.max_pooling.tuning import RADIUS_ROOM
from pindown.validation import integer, positive


@dataclass(frozen=True)
class LayerwiseSchedule:
    r"""Constants of the two phases of gradient descent.

    Attributes:
        n_patterns: Number d of patterns.
        n_units: Number k of hidden units.
        n_steps: Steps :math:`T_1` of the first phase.
        step: Its step size :math:`\eta_1`.
        radius: Norm r of every unit at the start.
        output_step: Step size :math:`\eta_2` of the second phase.
    """

    n_patterns: int
    n_units: int
    n_steps: int
    step: float
    radius: float
    output_step: float

    def conditions(self) -> dict[str, bool]:
        r"""Return the theorem's conditions and whether each holds.

        :math:`d \ge 3`, :math:`k \ge 8 d^3`, :math:`k \eta_1 (T_1 + 1) \le 1/2`, :math:`r < \eta_1 / 9`,
        :math:`r \le \eta_1 T_1 / 80` and :math:`\eta_2 < 8 k`.
        """
        d, k, T, eta = self.n_patterns, self.n_units, self.n_steps, self.step
        return {
            "three patterns or more": d >= 3,
            "width at least 8 d^3": k >= 8 * d**3,
            "outputs at most 1/2 in the first phase": k * eta * (T + 1) <= 0.5,
            "radius below step / 9": self.radius < eta / 9,
            "radius at most step * steps / 80": self.radius <= eta * T / 80,
            "output step below 8 k": self.output_step < 8 * k,
        }

    def __str__(self) -> str:
        failed = [name for name, holds in self.conditions().items() if not holds]
        met = "all conditions of the theorem met" if not failed else "not met: " + ", ".join(failed)
        return (
            f"{self.n_units} units from radius {self.radius:.3g}, {self.n_steps} steps of "
            f"{self.step:.3g}, then output steps of {self.output_step:.3g}; {met}"
        )


def layerwise_schedule(
    n_patterns: int,
    *,
    n_units: int | None = None,
    n_steps: int = 20,
    step: float | None = None,
    radius: float | None = None,
) -> LayerwiseSchedule:
    r"""Fill in what is not given so that the theorem's conditions hold.

    .. math:: k = 8 d^3, \quad \eta_1 = \frac{1}{2 k (T_1 + 1)}, \quad
              r = 0.9 \min\Big(\frac{\eta_1}{9}, \frac{\eta_1 T_1}{80}\Big), \quad \eta_2 = 4 k.

    Args:
        n_patterns: Number d of patterns.
        n_units: Units k; with fewer than :math:`8 d^3` the theorem is silent.
        n_steps: Steps :math:`T_1` of the first phase.
        step: Step size :math:`\eta_1`.
        radius: Norm r of the units at the start.

    Returns:
        The schedule, which says what of the theorem it meets.

    Raises:
        ValueError: If a number is not positive.

    Example:
        >>> print(layerwise_schedule(3, n_steps=9))
        216 units from radius 2.31e-05, 9 steps of 0.000231, then output steps of 864; all conditions of
        the theorem met

    Brutzkus and Globerson 2021, Theorem 5.1 with the supplement, sections B, C and E.
    """
    for name, value in (("n_patterns", n_patterns), ("n_steps", n_steps)):
        integer(name, value)
    k = 8 * int(n_patterns) ** 3 if n_units is None else n_units
    integer("n_units", k)
    for name, number in (("step", step), ("radius", radius)):
        if number is not None:
            positive(name, number)
    eta = 1.0 / (2 * k * (n_steps + 1)) if step is None else step
    r = RADIUS_ROOM * eta * min(1 / 9, n_steps / 80) if radius is None else radius
    return LayerwiseSchedule(int(n_patterns), int(k), int(n_steps), float(eta), float(r), 4.0 * k)


def independent_halves(
    y: Array, rng: np.random.Generator
) -> tuple[npt.NDArray[Any], npt.NDArray[Any], bool]:
    """Return two random halves and whether they are independent: chosen without a look at the labels.

    A half without one of the classes is no use; then each class is split by itself, and a class of one
    point is in both halves.
    """
    order = rng.permutation(len(y))
    halves = order[: len(y) // 2], order[len(y) // 2 :]
    independent = all(len(np.unique(y[half])) == 2 for half in halves)
    if not independent:
        classes = [order[y[order] == side] for side in (1.0, -1.0)]
        halves = (
            np.concatenate([mine[: max(1, len(mine) // 2)] for mine in classes]),
            np.concatenate([mine[len(mine) // 2 :] for mine in classes]),
        )
    return np.sort(halves[0]), np.sort(halves[1]), independent
