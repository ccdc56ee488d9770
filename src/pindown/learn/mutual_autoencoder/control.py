r"""How hard to push: from measured information to the multiplier of its gradient.

The objective is :math:`\mathrm{ELBO} - C\,|\hat I - M|`, so the information gradient enters with
:math:`-C\,\mathrm{sign}(\hat I - M)`. A sign from a noisy estimate chatters. Two calmer forms, both
within the same limits :math:`\pm C`:

* ``"clip"``: :math:`C\,\mathrm{clip}((\hat I - M) / w, -1, 1)`, which leaves an offset of w times the
  share of C that the constraint needs;
* ``"integral"``: a proportional part plus the sum of past errors, which leaves none: the sum converges
  to the Lagrange multiplier of the constraint :math:`\hat I = M`.

Phuong 2021, (4.11) and Algorithm 4.1.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import Literal

Control = Literal["integral", "clip", "sign"]
_MEMORY = 0.9  # of the running mean of the error that the integral controller sees
_PROPORTIONAL = 4.0  # multiplier per nat of error
_INTEGRAL = 0.05  # multiplier per nat of error and step
_MOST = 0.05  # nats of error that the sum sees at a time: on a long way it would wind up and overshoot


@dataclass
class Dial:
    """Turns estimates of the information into multipliers, one per step.

    Attributes:
        target: M, in nats.
        penalty: C; 0 never pushes.
        control: One of ``"integral"``, ``"clip"``, ``"sign"``.
        width: w of ``"clip"``.

    Example:
        >>> dial = Dial(target=1.0, penalty=10.0, control="sign")
        >>> dial.push(0.4), dial.push(1.7)
        (-10.0, 10.0)
        >>> round(Dial(1.0, 10.0, "clip", width=0.5).push(1.1), 6)
        2.0
    """

    target: float
    penalty: float
    control: Control = "integral"
    width: float = 0.02
    total: float = 0.0
    mean: float | None = None

    def push(self, estimate: float) -> float:
        """Return the multiplier of the information gradient, to be subtracted: positive pushes down."""
        if self.penalty == 0.0:
            return 0.0
        # Information is never negative: below zero an estimate shows its own error only.
        error = max(estimate, 0.0) - self.target
        if self.control == "sign":
            return math.copysign(self.penalty, error) if error else 0.0
        if self.control == "clip":
            return self.penalty * min(max(error / self.width, -1.0), 1.0)
        self.mean = error if self.mean is None else _MEMORY * self.mean + (1.0 - _MEMORY) * error
        self.total = self._within(self.total + _INTEGRAL * min(max(self.mean, -_MOST), _MOST))
        return self._within(self.total + _PROPORTIONAL * self.mean)

    def _within(self, value: float) -> float:
        return min(max(value, -self.penalty), self.penalty)
