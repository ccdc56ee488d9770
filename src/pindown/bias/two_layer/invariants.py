r"""What gradient flow never changes, or never undoes, on orthogonally separable data.

* Balance: :math:`a_j(t) = \operatorname{sign}(a_j(0))\lVert w_j(t)\rVert` from a balanced start.
* Sign: no output weight changes its sign.
* Activity: a neuron with :math:`a_j > 0` that is active on a positive sample stays active on it, and
  one with :math:`a_j < 0` on a negative sample.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray

from pindown.bias.margins.signed import labelled
from pindown.bias.two_layer.model import Neurons


@dataclass(frozen=True)
class Violation:
    """One invariant that a step broke.

    Attributes:
        step: Number of the step.
        invariant: ``"balance"``, ``"sign"`` or ``"activity"``.
        neurons: Indices of the neurons concerned.
        size: Largest imbalance, or number of sign changes or of lost activities.
    """

    step: int
    invariant: str
    neurons: NDArray[np.int64] = field(repr=False)
    size: float

    def __str__(self) -> str:
        return (
            f"step {self.step}: {self.invariant} broken by {len(self.neurons)} neurons ({self.size:.3g})"
        )


class InvariantMonitor:
    """Watch a two-layer network while it is trained.

    Call :meth:`step` after every step of any training loop; violations are collected, or raised.

    Args:
        model: Neurons, a :class:`ReluNetwork`, or a torch module: read anew at every step. None if the
            network is passed to :meth:`step`.
        X: Samples (n, d).
        y: Labels of two classes.
        balance: Allowed imbalance; infinite for starts that are not balanced.
        strict: Raise at the first violation.

    Example:
        >>> X, y = [[1.0, 0.0], [-1.0, 0.0]], [1, -1]
        >>> watch = InvariantMonitor(None, X, y)
        >>> for w in (1.0, 2.0, -2.0):
        ...     watch.step(Neurons(np.array([[w, 0.0]]), np.array([abs(w)])))
        >>> [str(violation) for violation in watch.violations]
        ['step 2: activity broken by 1 neurons (1)']

    Phuong 2021, Lemmas 3.3, B.4 and B.5.
    """

    def __init__(
        self, model: Any, X: ArrayLike, y: ArrayLike, *, balance: float = 1e-4, strict: bool = False
    ) -> None:
        self.model, self.balance, self.strict = model, balance, strict
        self._points, self._labels = labelled(X, y)
        self._signs: Any = None
        self._active: Any = None
        self.steps = 0
        self.violations: list[Violation] = []

    def step(self, network: Any = None) -> None:
        """Compare the network with what it was at the last call."""
        neurons = Neurons.of(self.model if network is None else network)
        signs = np.sign(neurons.a)
        own = signs[:, None] * self._labels > 0
        active = (neurons.W @ self._points.T > 0) & own
        apart = np.abs(np.abs(neurons.a) - np.linalg.norm(neurons.W, axis=1))
        self._report("balance", apart > self.balance, float(apart.max()))
        if self._active is not None:
            if active.shape != self._active.shape:
                raise ValueError(f"the network changed from {len(self._signs)} to {len(signs)} neurons")
            turned = signs != self._signs
            self._report("sign", turned, float(turned.sum()))
            lost = self._active & ~active & ~turned[:, None]
            self._report("activity", lost.any(axis=1), float(lost.sum()))
        self._signs, self._active = signs, active
        self.steps += 1

    def _report(self, invariant: str, broken: NDArray[np.bool_], size: float) -> None:
        if broken.any():
            violation = Violation(self.steps, invariant, np.flatnonzero(broken), size)
            self.violations.append(violation)
            if self.strict:
                raise ArithmeticError(str(violation))
