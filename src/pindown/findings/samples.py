"""Rows of data with what the network should say of them, and what one pass of them shows.

Targets, which are labels or values, are read once and checked.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass
from functools import cached_property
from typing import Any, Literal

import numpy as np
from numpy.typing import NDArray

from pindown.affine import Array, is_finite, stored_entries
from pindown.deadline import Deadline, Stopwatch
from pindown.findings.asked_model import Function
from pindown.findings.question_budget import NotApplicable
from pindown.findings.tuning import (
    FIRST_ROWS,
    MAX_ROWS_PER_CHUNK,
    MODEL_PRODUCTS_PER_CHUNK,
    MULTIPLY_ADDS_PER_CHUNK,
    SECONDS_PER_LOOK,
    UNLIKE_QUANTILES,
    UNLIKE_UNITS,
)
from pindown.io.evaluated import Evaluated
from pindown.model.graph import Model
from pindown.model.operations.relu import Relu
from pindown.network import ReluNetwork, row_chunks

Task = Literal["classes", "binary", "regression"]


@dataclass(frozen=True, eq=False)
class Sample:
    """Inputs (n, d), with targets if there are any."""

    name: str
    X: Array
    targets: Targets | None

    def __len__(self) -> int:
        return len(self.X)

    @cached_property
    def mean(self) -> Array:
        """The mean of every input."""
        with np.errstate(over="ignore"):
            return np.asarray(self.X.mean(axis=0))

    @cached_property
    def spread(self) -> Array:
        """The standard deviation of every input, 0 exactly for those that are constant."""
        squares = np.zeros(self.X.shape[1])
        with np.errstate(over="ignore", invalid="ignore"):
            for part in row_chunks(len(self), self.X.itemsize * self.X.shape[1]):
                away = self.X[part] - self.mean
                squares += np.einsum("ij,ij->j", away, away)
        return np.where((self.X[0] == self.X).all(axis=0), 0.0, np.sqrt(squares / len(self)))


@dataclass(frozen=True, eq=False)
class Observed:
    """What one pass of a sample through the network showed.

    Attributes:
        rows: Which rows were seen, ascending; all, unless the time ran out.
        outputs: The network's outputs at these rows.
        lowest: Per layer of ReLUs, the smallest value that entered each; none if only values are known.
        highest: Per layer of ReLUs, the largest.
        n_given: How many rows there were.
    """

    rows: NDArray[np.intp]
    outputs: Array
    lowest: tuple[Array, ...]
    highest: tuple[Array, ...]
    n_given: int

    @property
    def n(self) -> int:
        """How many rows were seen."""
        return len(self.rows)

    @property
    def noise(self) -> dict[str, float]:
        """What more time may change of a number of all rows: nothing, if all were seen."""
        return {"": 0.0} if self.n == self.n_given else {}

    @property
    def seen(self) -> str:
        """How many rows were seen, in words."""
        if self.n == self.n_given:
            return f"{self.n:,} row{'s' if self.n > 1 else ''}"
        return f"{self.n:,} of {self.n_given:,} rows (time ran out)"


def one_pass(model: Function, X: Array, rng: np.random.Generator, until: Deadline) -> Observed:
    """Send rows through in random order, so that those seen before time runs out are a fair sample.

    The first few tell the price of a row: if a chunk would take long, few go at once.
    """
    order = rng.permutation(len(X))
    outputs = np.empty((len(X), model.out_features))
    look, chunk = _look_inside(model), chunk_rows(model)
    done, step = 0, min(FIRST_ROWS, chunk)
    ranges: list[tuple[Array, Array]] = []
    while done < len(X) and (done == 0 or not until.passed):
        rows = np.sort(order[done : done + step])
        watch = Stopwatch()
        with np.errstate(all="ignore"):
            outputs[rows], inside = look(X[rows])
        ranges = _widened(ranges, inside)
        if not is_finite(outputs[rows]):
            raise NotApplicable("the network overflows float64 on this data")
        done += len(rows)
        # Two sizes and none between: rounding may depend on how many rows go at once.
        quick = chunk * watch.seconds <= SECONDS_PER_LOOK * len(rows)
        step = chunk if quick else min(FIRST_ROWS, chunk)
    seen = np.sort(order[:done])
    lowest, highest = zip(*ranges, strict=True) if ranges else ((), ())
    return Observed(seen, outputs[seen], lowest, highest, len(X))


def paid_slices(n: int, size: int, seconds: float, until: Deadline) -> Iterator[slice]:
    """Yield parts of n rows until the time is over: the first row alone tells the price of a row.

    Args:
        n: How many rows there are.
        size: How many to take at once where these take less than ``seconds``; else one by one. Two sizes
            and none between, for rounding may depend on how many rows go at once.
        seconds: As above.
        until: When to end; the first row is paid whatever it costs.

    >>> list(paid_slices(7, 5, 60.0, Deadline.after(60.0)))
    [slice(0, 1, None), slice(1, 6, None), slice(6, 7, None)]
    """
    done, step = 0, 1
    while done < n and (not done or not until.passed):
        part, watch = slice(done, min(done + step, n)), Stopwatch()
        yield part
        done, seen = part.stop, part.stop - part.start
        step = size if size * watch.seconds <= seconds * seen else 1


def _look_inside(model: Function) -> Callable[[Array], tuple[Array, list[Array]]]:
    """Return a function from rows to outputs, and to what enters the ReLUs of every layer."""
    if isinstance(model, ReluNetwork):
        return lambda rows: _of_layers(model, rows)
    if isinstance(model, Model):
        return lambda rows: _of_nodes(model, rows)
    return lambda rows: (_finite_or_nan(model, rows), [])


def _of_layers(net: ReluNetwork, a: Array) -> tuple[Array, list[Array]]:
    inside = []
    for layer in net.layers[:-1]:
        z = layer(a)
        inside.append(np.stack([z.min(axis=0), z.max(axis=0)]))
        a = np.maximum(z, 0.0, out=z)
    return net.layers[-1](a), inside


def _of_nodes(model: Model, rows: Array) -> tuple[Array, list[Array]]:
    watched = {node.inputs[0] for node in model.nodes if isinstance(node.operation, Relu)}
    inside: list[Array] = []
    made: Any = rows
    for i, made in enumerate(model.walk(rows)):
        if i in watched:
            z = made.reshape(len(rows), -1)
            inside.append(np.stack([z.min(axis=0), z.max(axis=0)]))
    return made.reshape(len(rows), -1), inside


def _finite_or_nan(model: Function, rows: Array) -> Array:
    try:
        return model(rows)
    except ValueError:
        return np.full((len(rows), model.out_features), np.nan)


def _widened(ranges: list[tuple[Array, Array]], inside: list[Array]) -> list[tuple[Array, Array]]:
    if not ranges:
        return [(low, high) for low, high in inside]
    return [
        (np.minimum(low, new[0]), np.maximum(high, new[1]))
        for (low, high), new in zip(ranges, inside, strict=True)
    ]


def chunk_rows(model: Function) -> int:
    """Return how many rows to evaluate at most between two looks at the clock."""
    if isinstance(model, Evaluated):
        return MAX_ROWS_PER_CHUNK
    if isinstance(model, Model):
        fits = next(model.chunks(MAX_ROWS_PER_CHUNK)).stop
        return max(1, min(fits, MODEL_PRODUCTS_PER_CHUNK // max(1, model.multiply_adds)))
    per_row = sum(stored_entries(layer.weight) for layer in model.layers)
    return max(1, min(MAX_ROWS_PER_CHUNK, MULTIPLY_ADDS_PER_CHUNK // max(1, per_row)))


@dataclass(frozen=True, eq=False)
class Targets:
    """Checked targets.

    Attributes:
        task: ``"classes"``: the class is the largest of k >= 2 outputs; ``"binary"``: it is the sign
            of one output; ``"regression"``: the outputs are compared with values.
        values: Class numbers (n,), 0 or 1 for binary, or values (n, k).
    """

    task: Task
    values: NDArray[Any]

    @property
    def is_classification(self) -> bool:
        """Whether the targets are classes."""
        return self.task != "regression"

    def take(self, rows: NDArray[np.intp]) -> Targets:
        """Return the targets of some rows."""
        return Targets(self.task, self.values[rows])


def predicted_classes(outputs: Array) -> NDArray[np.intp]:
    """Return the class of each row of outputs: the first largest, or the sign of a single one."""
    if outputs.shape[1] == 1:
        return (outputs[:, 0] > 0).astype(np.intp)
    return np.argmax(outputs, axis=1)


def confidences(outputs: Array, temperature: float = 1.0) -> Array:
    r"""Return the probability of the class that is chosen: of a softmax, or of a sigmoid of one output.

    .. math:: \max_k \frac{e^{f_k / T}}{\sum_j e^{f_j / T}}

    >>> confidences(np.array([[0.0, 0.0], [0.0, np.log(3.0)]])).round(2)
    array([0.5 , 0.75])
    """
    with np.errstate(over="ignore"):
        if outputs.shape[1] == 1:
            return np.asarray(1.0 / (1.0 + np.exp(-np.abs(outputs[:, 0]) / temperature)))
        below = outputs - outputs.max(axis=1, keepdims=True)
        return np.asarray(1.0 / np.exp(below / temperature).sum(axis=1))


def typical_range(X: Array) -> float:
    """Return how far an input that varies goes from its smallest to its largest value, in the median.

    >>> typical_range(np.array([[0.0, 5.0], [2.0, 5.0]]))
    2.0
    """
    with np.errstate(over="ignore"):
        sides = X.max(axis=0) - X.min(axis=0)
    varying = sides[sides > 0]
    return float(np.median(varying)) if len(varying) else 1.0


def ranges_of_a_table(X: Array) -> Array | None:
    """Return how far every input goes, if these are of unlike units, so that none is typical; else None.

    >>> ranges_of_a_table(np.array([[0.0, 0.0, 5.0], [1.0, 2.0, 500.0]]))
    array([  1.,   2., 495.])
    """
    with np.errstate(over="ignore"):
        sides = np.asarray(X.max(axis=0) - X.min(axis=0))
    varying = sides[sides > 0]
    if not len(varying):
        return None
    few, many = np.quantile(varying, UNLIKE_QUANTILES)
    return sides if many > UNLIKE_UNITS * few else None


def median_error(values: Array) -> float:
    """Return half the distance between the order statistics one standard error from the median.

    >>> round(median_error(np.linspace(0.0, 100.0, 400)), 9)
    2.5
    """
    n = len(values)
    low, high = np.quantile(values, np.clip([0.5 - 0.5 / n**0.5, 0.5 + 0.5 / n**0.5], 0.0, 1.0))
    return float(high - low) / 2


def margins(outputs: Array, targets: Targets) -> Array:
    r"""Return by how much the right class wins: :math:`f_y - \max_{j \ne y} f_j`, or :math:`\pm f`.

    >>> margins(np.array([[3.0, 1.0, 2.5]]), Targets("classes", np.array([0])))
    array([0.5])
    """
    if targets.task == "binary":
        return np.where(targets.values == 1, outputs[:, 0], -outputs[:, 0])
    rows = np.arange(len(outputs))
    others = outputs.copy()
    others[rows, targets.values] = -np.inf
    with np.errstate(over="ignore"):
        return outputs[rows, targets.values] - others.max(axis=1)


def read_targets(y: Any, n: int, k: int, name: str = "y") -> Targets:
    """Check labels or values against n rows and k outputs.

    Args:
        y: Integers 0..k-1 or one-hot rows for k >= 2 outputs; {0, 1} or {-1, 1} for one output;
            anything else numeric of shape (n,) or (n, k) is regression.
        n: Number of inputs.
        k: Number of outputs of the network.
        name: What to call y in errors.

    Raises:
        ValueError: If y fits none of these.
    """
    raw = np.asarray(y)
    if raw.dtype.kind not in "biuf":
        raise ValueError(
            f"{name} must be numbers (classes as integers 0 to {max(k - 1, 1)}); got dtype {raw.dtype}."
        )
    if raw.ndim == 0 or len(raw) != n:
        given = "a single number" if raw.ndim == 0 else f"{len(raw)} rows"
        raise ValueError(f"{name} must have one row per input; got {given} for {n} inputs.")
    values = raw.astype(np.float64)
    if not np.isfinite(values).all():
        bad = int(np.count_nonzero(~np.isfinite(values)))
        raise ValueError(f"{name} must be finite; {bad} of {values.size} entries are NaN or infinite.")
    if values.ndim == 2 and values.shape[1] == 1:
        values = values[:, 0]
    if k == 1:
        return _one_output(values, name)
    return _several_outputs(values, k, name)


def _one_output(values: Array, name: str) -> Targets:
    if values.ndim != 1:
        raise ValueError(
            f"{name} must have shape (n,) for a network with one output; got {values.shape}."
        )
    present = set(np.unique(values).tolist())
    if present <= {0.0, 1.0} or present <= {-1.0, 1.0}:
        return Targets("binary", (values > 0).astype(np.intp))
    return Targets("regression", values[:, None])


def _several_outputs(values: Array, k: int, name: str) -> Targets:
    if values.ndim == 2:
        if values.shape[1] != k:
            raise ValueError(
                f"{name} must have shape (n,) or (n, {k}) for {k} outputs; got {values.shape}."
            )
        one_hot = np.isin(values, (0.0, 1.0)).all() and (values.sum(axis=1) == 1.0).all()
        if one_hot:
            return Targets("classes", values.argmax(axis=1))
        return Targets("regression", values)
    if values.ndim != 1:
        raise ValueError(f"{name} must have shape (n,) or (n, {k}); got {values.shape}.")
    if not np.array_equal(values, np.round(values)):
        raise ValueError(
            f"{name} holds fractions, so it is no class label, and a network with {k} outputs needs "
            f"shape (n, {k}) for regression; got {values.shape}."
        )
    if values.min() < 0 or values.max() >= k:
        wrong = values.min() if values.min() < 0 else values.max()
        raise ValueError(f"{name} must hold classes 0 to {k - 1} for {k} outputs; got {wrong:g}.")
    return Targets("classes", values.astype(np.intp))
