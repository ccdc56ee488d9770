"""What the network should have said: labels or values, read once and checked."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, Literal

import numpy as np
from numpy.typing import NDArray

from pindown.affine import Array

Task = Literal["classes", "binary", "regression"]


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
