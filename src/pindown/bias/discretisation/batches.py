r"""Gradient descent with batches of any size, with the scale of the step written down.

.. math:: w \leftarrow w - \eta\sum_{i\in B}\nabla\ell_i(w) \quad\text{(sum)}, \qquad
          w \leftarrow w - \frac{\eta}{\lvert B\rvert}\sum_{i\in B}\nabla\ell_i(w) \quad\text{(mean)}.

The two are one method with :math:`\eta_{mean} = \lvert B\rvert\,\eta_{sum}`. With sums, one step size
for all batch sizes is a step that grows with the batch.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any, Literal

import numpy as np
from numpy.typing import ArrayLike

from pindown.affine import Array
from pindown.bias.least_squares.checks import count, number, vector


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
        gradients: From weights (p,) and sample indices (b,) to the gradients of those samples (b, p).
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
    n = count("n_samples", n_samples, 1)
    batch, n_steps = count("batch", batch, 1), count("n_steps", n_steps, 0)
    if batch > n:
        raise ValueError(f"batch must be at most the number of samples {n}; got {batch}.")
    if reduction not in ("mean", "sum"):
        raise ValueError(f"reduction must be 'mean' or 'sum'; got {reduction!r}.")
    begin = np.asarray(start, dtype=np.float64)
    w = vector("start", begin, begin.size).copy()
    mean_step = number("step", step, 0.0, np.inf, closed=False) * (batch if reduction == "sum" else 1)
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
