"""The four methods in NumPy, as written down: for functions, for proofs, and to check the fast ones."""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any, Protocol

import numpy as np
from numpy.typing import ArrayLike

from pindown.affine import Array
from pindown.optim.problems import Problem
from pindown.validation import integer


class Rule(Protocol):
    """How a method moves."""

    def start(self, x: Array) -> dict[str, Array]:
        """Return the state before the first step."""
        ...

    def move(self, state: dict[str, Array], g: Array, t: int) -> Array:
        """Update the state with the gradient of step t = 1, 2, ... and return the change of x."""
        ...


@dataclass(frozen=True)
class NAGRule:
    """Nesterov's accelerated gradient; see :class:`pindown.optim.NAG`."""

    lr: float
    momentum: float = 0.9

    def start(self, x: Array) -> dict[str, Array]:
        """Return a velocity of zero."""
        return {"v": np.zeros_like(x)}

    def move(self, state: dict[str, Array], g: Array, t: int) -> Array:
        """Return the change of x."""
        state["v"] = self.momentum * state["v"] + g
        return -self.lr * (g + self.momentum * state["v"])


@dataclass(frozen=True)
class HeavyBallRule:
    """Gradient descent with classical momentum; see :class:`pindown.optim.HeavyBall`."""

    lr: float
    momentum: float = 0.9

    def start(self, x: Array) -> dict[str, Array]:
        """Return a velocity of zero."""
        return {"v": np.zeros_like(x)}

    def move(self, state: dict[str, Array], g: Array, t: int) -> Array:
        """Return the change of x."""
        state["v"] = self.momentum * state["v"] - self.lr * g
        return state["v"]


@dataclass(frozen=True)
class RMSPropRule:
    r"""RMSProp with the shift inside; see :class:`pindown.optim.RMSProp`.

    Attributes:
        lr: The step size.
        decay: :math:`\beta_2`.
        shift: :math:`\xi`.
        diminishing: Whether step t is ``lr`` divided by the root of t.
    """

    lr: float
    decay: float = 0.9
    shift: float = 1e-10
    diminishing: bool = False

    def start(self, x: Array) -> dict[str, Array]:
        """Return an average of zero."""
        return {"v": np.zeros_like(x)}

    def move(self, state: dict[str, Array], g: Array, t: int) -> Array:
        """Return the change of x: zero where no gradient was seen and there is no shift."""
        v = state["v"] = self.decay * state["v"] + (1 - self.decay) * (g**2 + self.shift)
        lr = self.lr / math.sqrt(t) if self.diminishing else self.lr
        return -lr * np.divide(g, np.sqrt(v), out=np.zeros_like(g), where=v > 0)


@dataclass(frozen=True)
class AdamRule:
    """ADAM with the shift outside; see :class:`pindown.optim.Adam` for the schedules."""

    lr: float
    betas: tuple[float, float] = (0.9, 0.999)
    shift: float = 1e-8
    schedule: str = "bias_corrected"

    def start(self, x: Array) -> dict[str, Array]:
        """Return averages of zero."""
        return {"m": np.zeros_like(x), "v": np.zeros_like(x)}

    def move(self, state: dict[str, Array], g: Array, t: int) -> Array:
        """Return the change of x."""
        b1, b2 = self.betas
        m = state["m"] = b1 * state["m"] + (1 - b1) * g
        v = state["v"] = b2 * state["v"] + (1 - b2) * g**2
        direction = m / (np.sqrt(v) + self.shift)
        return -self.lr * self._factor(g, direction, t) * direction

    def _factor(self, g: Array, direction: Array, t: int) -> float:
        b1, b2 = self.betas
        if self.schedule == "bias_corrected":
            return math.sqrt(1 - b2**t) / (1 - b1**t)
        if self.schedule == "theorem":
            return float(g @ g) / (1 - b1**t) ** 2
        if self.schedule == "optimal":
            square = float(direction @ direction)
            return max(0.0, float(g @ direction)) / square if square > 0 else 0.0
        if self.schedule == "constant":
            return 1.0
        raise ValueError(
            f"schedule must be one of bias_corrected, constant, theorem, optimal; got {self.schedule!r}."
        )


@dataclass(frozen=True)
class Trace:
    """What happened: entry t - 1 of each array is about iterate t.

    Attributes:
        values: f at each iterate.
        gradient_norms: Norm of the gradient of f at each iterate.
        point: The last iterate.
        state: State of the method after the last step.
    """

    values: Array
    gradient_norms: Array
    point: Array
    state: dict[str, Array] = field(repr=False)

    def first_below(self, epsilon: float) -> int | None:
        """Return the first t = 1, 2, ... at which the gradient's norm is at most epsilon, or None."""
        hits = np.flatnonzero(self.gradient_norms <= epsilon)
        return int(hits[0]) + 1 if len(hits) else None

    def __str__(self) -> str:
        return (
            f"{len(self.values)} iterates: f from {self.values[0]:.4g} to {self.values[-1]:.4g}, "
            f"smallest gradient norm {self.gradient_norms.min():.4g}"
        )


def minimize(
    problem: Problem,
    start: ArrayLike,
    rule: Rule,
    *,
    steps: int,
    stop_below: float = 0.0,
    oracle: Callable[[Array, np.random.Generator], Array] | None = None,
    seed: int = 0,
) -> Trace:
    """Run a method on a function from a point and record every iterate.

    Args:
        problem: What to minimise.
        start: The first iterate, of ``problem.dimension`` numbers.
        rule: One of :class:`NAGRule`, :class:`HeavyBallRule`, :class:`RMSPropRule`, :class:`AdamRule`.
        steps: How many steps at most.
        stop_below: Stop at the first iterate whose gradient is at most this long.
        oracle: Returns the gradient that the method sees, from a point and a random generator; the true
            one by default. :func:`one_term` makes the usual one for a mean of functions.
        seed: Seed of the generator.

    Raises:
        ValueError: If the start does not fit, or the iterates leave the finite numbers.

    Example:
        Half a square, with steps that halve the point: 4, 2, 1.

        >>> from pindown.optim import Constants
        >>> f = Problem("half a square", 1, lambda x: float(x @ x) / 2, lambda x: x, Constants(1.0, 4.0))
        >>> print(minimize(f, [4.0], NAGRule(0.5, momentum=0.0), steps=2))
        3 iterates: f from 8 to 0.5, smallest gradient norm 1

    Mukherjee 2020, Algorithms 5, 6 and 7.
    """
    x = np.array(start, dtype=float).ravel()
    if x.shape != (problem.dimension,) or not np.all(np.isfinite(x)):
        raise ValueError(f"start must be {problem.dimension} finite numbers; got {start!r}.")
    integer("steps", steps, least=0)
    rng = np.random.default_rng(seed)
    state, values, norms = rule.start(x), [], []
    for t in range(1, steps + 2):
        g = problem.gradient(x)
        values.append(problem.value(x))
        norms.append(math.sqrt(float(g @ g)))
        if not math.isfinite(norms[-1]):
            raise ValueError(f"the gradient at iterate {t} is not finite: the step size is too large.")
        if norms[-1] <= stop_below or t > steps:
            break
        seen = g if oracle is None else oracle(x, rng)
        x = x + rule.move(state, seen, t)
    return Trace(np.array(values), np.array(norms), x, state)


def one_term(problem: Problem) -> Callable[[Array, np.random.Generator], Array]:
    """Return the oracle that answers with the gradient of one term, drawn uniformly."""
    if problem.terms is None:
        raise ValueError(f"{problem.name} is not a mean of functions; use finite_sum.")
    terms: Any = problem.terms

    def oracle(x: Array, rng: np.random.Generator) -> Array:
        rows = terms(x)
        return rows[rng.integers(len(rows))]

    return oracle
