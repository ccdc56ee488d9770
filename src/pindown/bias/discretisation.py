r"""How closely gradient descent follows two flows, measured as powers of the step.

After one step the flow of the loss is :math:`O(\epsilon^2)` away and the flow of the modified loss
:math:`O(\epsilon^3)`; at a fixed time both lose one power. The powers are slopes of the logarithm of the
error over the logarithm of the step.

Descent in batches of any size has a step whose scale is a convention,

.. math:: w \leftarrow w - \eta\sum_{i\in B}\nabla\ell_i(w) \quad\text{(sum)}, \qquad
          w \leftarrow w - \frac{\eta}{\lvert B\rvert}\sum_{i\in B}\nabla\ell_i(w) \quad\text{(mean)}.

The two are one method with :math:`\eta_{mean} = \lvert B\rvert\,\eta_{sum}`. With sums, one step size
for all batch sizes is a step that grows with the batch.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from itertools import permutations
from typing import Any, Literal

import numpy as np
import torch
from numpy.typing import ArrayLike

from pindown.affine import Array
from pindown.bias.flow import gradient_flow
from pindown.bias.implicit_regularisation import Loss, array_gradient, sgd_modified_loss
from pindown.bias.tuning import MAX_PERMUTED_BATCHES, REFERENCE_SUBSTEPS
from pindown.evidence import Kind
from pindown.validation import choice, integer, number, positive, vector


@dataclass(frozen=True)
class DiscretisationOrders:
    """Distances of gradient descent from two flows, and how they fall with the step.

    Attributes:
        steps: Step sizes.
        local_plain: Distance from the flow of the loss after one step.
        local_modified: The same for the flow of the modified loss.
        global_plain: Distance from the flow of the loss at a fixed time; empty for minibatches.
        global_modified: The same for the modified loss.
        kind: ``"estimate"``: slopes of measured errors.
    """

    steps: Array
    local_plain: Array = field(repr=False)
    local_modified: Array = field(repr=False)
    global_plain: Array = field(repr=False)
    global_modified: Array = field(repr=False)
    kind: Kind = "estimate"

    @property
    def local_orders(self) -> tuple[float, float]:
        """Powers of the step after one step: 2 for the loss and 3 for the modified one, by theory."""
        return convergence_order(self.steps, self.local_plain), convergence_order(
            self.steps, self.local_modified
        )

    @property
    def global_orders(self) -> tuple[float, float]:
        """Powers of the step at a fixed time: 1 and 2, by theory; NaN where not measured."""
        return convergence_order(self.steps, self.global_plain), convergence_order(
            self.steps, self.global_modified
        )

    def __str__(self) -> str:
        (a, b), (c, d) = self.local_orders, self.global_orders
        late = "" if math.isnan(c) else f"; at a fixed time {c:.2f} and {d:.2f}"
        return f"orders in the step: plain flow {a:.2f}, modified flow {b:.2f} after one step{late}"


def convergence_order(steps: ArrayLike, errors: ArrayLike) -> float:
    """Return the slope of log error over log step; NaN without errors, infinite if all are zero.

    >>> round(convergence_order([0.1, 0.01], [5e-2, 5e-4]), 6)
    2.0
    """
    h, e = np.asarray(steps, dtype=np.float64), np.asarray(errors, dtype=np.float64)
    if e.size == 0:
        return float("nan")
    if not e.any():
        return float("inf")
    kept = e > 0
    return float(np.polyfit(np.log(h[kept]), np.log(e[kept]), 1)[0]) if kept.sum() > 1 else float("nan")


def discretisation_orders(
    loss: Loss, start: ArrayLike, steps: Sequence[float], *, time: float = 1.0, strength: float = 1.0
) -> DiscretisationOrders:
    """Measure how closely gradient descent follows the flow of a loss and of its modified loss.

    Args:
        loss: Smooth function from a vector of weights to a number, in torch operations.
        start: Initial weights (p,).
        steps: At least two step sizes, small against one over the largest curvature.
        time: The fixed time; each step size is used as often as fits into it.
        strength: Multiple of the penalty in the modified loss; only 1 gives the higher order.

    Returns:
        A :class:`DiscretisationOrders`.

    Raises:
        ValueError: If there are fewer than two steps, one is not in (0, time], or descent diverges.

    Example:
        >>> found = discretisation_orders(lambda w: torch.cosh(w).sum(), [1.0], [0.02, 0.01, 0.005])
        >>> [round(p) for p in (*found.local_orders, *found.global_orders)]
        [2, 3, 1, 2]

    Lecture course, slides on implicit gradient regularisation.
    """
    begin = _start(start)
    sizes = _sizes(steps, time)
    plain = array_gradient(loss)
    rows = []
    for h in sizes:
        modified = array_gradient(loss, step=float(strength * h))
        n = max(1, round(time / h))
        once, often = _descend(plain, begin, h, 1), _descend(plain, begin, h, n)
        rows.append(
            [
                float(np.linalg.norm(reached - _flow(gradient, begin, h * k, h)))
                for reached, k in ((once, 1), (often, n))
                for gradient in (plain, modified)
            ]
        )
    local, local_modified, late, late_modified = _within_floats(rows, sizes)
    return DiscretisationOrders(np.array(sizes), local, local_modified, late, late_modified)


def sgd_orders(losses: Sequence[Loss], start: ArrayLike, steps: Sequence[float]) -> DiscretisationOrders:
    """Measure how closely the mean over all orders of one epoch of minibatches follows both flows.

    Args:
        losses: At most seven minibatch losses; every order of them is run.
        start: Initial weights (p,).
        steps: At least two step sizes.

    Returns:
        A :class:`DiscretisationOrders` whose step is one epoch; the modified loss that of minibatches.

    Raises:
        ValueError: If there are too many minibatches to run all orders.

    Smith et al. 2021, section 2; lecture course, slides on implicit gradient regularisation.
    """
    begin, sizes = _start(start), _sizes(steps, np.inf)
    if not 1 <= len(losses) <= MAX_PERMUTED_BATCHES:
        raise ValueError(
            f"between 1 and {MAX_PERMUTED_BATCHES} minibatch losses are needed; got {len(losses)}."
        )
    gradients = [array_gradient(part) for part in losses]
    m = len(losses)

    def whole(w: torch.Tensor) -> torch.Tensor:
        return torch.stack([part(w).reshape(()) for part in losses]).mean()

    plain, rows = array_gradient(whole), []
    for h in sizes:
        ends = [_epoch([gradients[k] for k in turn], begin, h) for turn in permutations(range(m))]
        mean = np.mean(ends, axis=0)
        modified = array_gradient(sgd_modified_loss(losses, h))
        rows.append([float(np.linalg.norm(mean - _flow(g, begin, m * h, h))) for g in (plain, modified)])
    local, local_modified = _within_floats(rows, sizes)
    nothing = np.zeros(0)
    return DiscretisationOrders(np.array(sizes), local, local_modified, nothing, nothing)


def _descend(gradient: Callable[[Array], Array], w: Array, step: float, n: int) -> Array:
    with np.errstate(over="ignore", invalid="ignore"):
        for _ in range(n):
            w = w - step * gradient(w)
    return w


def _epoch(gradients: Sequence[Callable[[Array], Array]], w: Array, step: float) -> Array:
    for gradient in gradients:
        w = w - step * gradient(w)
    return w


def _flow(gradient: Callable[[Array], Array], w: Array, time: float, step: float) -> Array:
    finest = step / REFERENCE_SUBSTEPS if time <= step else step
    return gradient_flow(gradient, w, time=time, method="ivp", step=finest, record=1).end


def _within_floats(rows: list[list[float]], sizes: Sequence[float]) -> Array:
    errors = np.array(rows)
    if not np.isfinite(errors).all():
        raise ValueError(f"descent leaves float range: every step must be below {max(sizes):g}.")
    return errors.T


def _start(start: ArrayLike) -> Array:
    found = np.asarray(start, dtype=np.float64)
    return vector("start", found, found.size)


def _sizes(steps: Sequence[float], time: float) -> list[float]:
    sizes = [number("every step", h, 0.0, time, above=True) for h in steps]
    if len(set(sizes)) < 2:
        raise ValueError(f"a slope needs at least two different steps; got {list(steps)}.")
    return sizes


@dataclass(frozen=True)
class BatchPath:
    """Weights along a run of batch descent.

    Attributes:
        points: Weights (n_steps + 1, p), the start first.
        step: Step size per mean gradient of a batch.
        batch: Samples in a batch.
        finite: Whether all weights are finite.
    """

    points: Array = field(repr=False)
    step: float
    batch: int
    finite: bool

    @property
    def end(self) -> Array:
        """The last weights."""
        return np.asarray(self.points[-1])

    def __str__(self) -> str:
        fate = "" if self.finite else ", left float range"
        return f"{len(self.points) - 1} steps of {self.step:.4g} with batches of {self.batch}{fate}"


def batch_descent(
    gradients: Callable[[Array, Any], Array],
    n_samples: int,
    start: ArrayLike,
    *,
    step: float,
    batch: int,
    n_steps: int,
    reduction: Literal["mean", "sum"] = "mean",
    random_state: int | np.random.Generator = 0,
) -> BatchPath:
    """Descend along gradients of random batches, drawn anew for every step without replacement.

    Args:
        gradients: Function from weights (p,) and sample indices (b,) to the gradients of those samples
            (b, p).
        n_samples: Number of samples.
        start: Initial weights (p,).
        step: Step size, for the reduction named.
        batch: Samples in a batch, 1 to ``n_samples``.
        n_steps: Steps.
        reduction: ``"mean"`` or ``"sum"`` of the gradients in a batch.
        random_state: Seed or generator of the batches.

    Returns:
        A :class:`BatchPath`.

    Raises:
        ValueError: If the batch is larger than the data, or an option is another one.

    Example:
        >>> pull = lambda w, chosen: np.repeat(w[None], len(chosen), axis=0)
        >>> batch_descent(pull, 4, [8.0], step=0.5, batch=4, n_steps=2).end.tolist()
        [2.0]

    Lecture course, slides on stochastic and batch gradient descent.
    """
    n = integer("n_samples", n_samples)
    batch, n_steps = integer("batch", batch, most=n), integer("n_steps", n_steps, least=0)
    choice("reduction", reduction, ("mean", "sum"))
    begin = np.asarray(start, dtype=np.float64)
    w = vector("start", begin, begin.size).copy()
    mean_step = positive("step", step) * (batch if reduction == "sum" else 1)
    rng = np.random.default_rng(random_state)
    everyone, points = np.arange(n), [w]
    with np.errstate(over="ignore", invalid="ignore"):
        for _ in range(n_steps):
            chosen = everyone if batch == n else _draw(rng, n, batch)
            w = w - mean_step * np.asarray(gradients(w, chosen)).mean(axis=0)
            points.append(w)
    path = np.array(points)
    return BatchPath(path, mean_step, batch, bool(np.isfinite(path).all()))


def _draw(rng: np.random.Generator, n: int, batch: int) -> Array:
    if batch == 1:
        return np.array([rng.integers(n)])
    return np.asarray(rng.choice(n, size=batch, replace=False))
