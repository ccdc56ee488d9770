r"""What a witness is worth: an input that is said to lie in an unsafe set, looked at in three ways.

- In float64: :math:`\max_i (C x + R f(x) - t)_i`, the *margin*, not above zero.
- For the real-number model: bounds of the outputs on the box that is x alone, rounded outwards, or where
  these do not tell and the model is small and piecewise linear, rational numbers. What is *proved* holds
  without rounding.
- In float32, as most runtimes compute: by onnxruntime where it is installed, else by NumPy with every
  tensor rounded. A violation by 1e-11 may be none there; then both margins are told.
"""

from __future__ import annotations

import gzip
import math
from collections.abc import Iterator
from dataclasses import dataclass
from fractions import Fraction
from importlib import import_module
from os import PathLike
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from pindown.affine import Array
from pindown.errors import ModelFileError, UnsupportedModelError
from pindown.io.any_model import file_bytes
from pindown.model.gradients import outputs
from pindown.model.graph import Model, interval_walk
from pindown.model.operations.operation import Interval, as_fractions, dot_up
from pindown.rounding import add_up
from pindown.text import card
from pindown.verification.properties import UnsafeSet
from pindown.verification.tuning import WITNESS_MAX_RATIONAL_WORK


@dataclass(frozen=True, eq=False, repr=False)
class Witness:
    """An input that violates a property, and how well that is known.

    Attributes:
        x: The input, (d,), exactly in the box.
        index: Which unsafe set it lies in.
        outputs: The model's outputs there in float64, (k,).
        margin: The largest row minus its limit in float64; not above 0 but for rounding.
        proof: How it is proved that the real-number model violates it: ``"intervals"`` or
            ``"rationals"``; empty if it is not.
        float32_outputs: The outputs in float32, (k,).
        float32_margin: The largest row minus its limit there.
        float32_violates: Whether it is a violation in float32, too.
        runtime: What computed that: ``"onnxruntime"`` or ``"NumPy"``.
        by: What found it, in words.
    """

    x: Array
    index: int
    outputs: Array
    margin: float
    proof: str
    float32_outputs: Array
    float32_margin: float
    float32_violates: bool
    runtime: str
    by: str = ""

    @property
    def proved(self) -> bool:
        """Whether the violation is proved for the real-number model."""
        return bool(self.proof)

    _repr_html_ = card

    def __repr__(self) -> str:
        known = f"proved by {self.proof}" if self.proof else "not proved"
        return (
            f"Witness({known}; margin {self.margin:.4g} in float64, {self.float32_margin:.4g} in "
            f"float32 by {self.runtime})"
        )


def examined(
    model: Model,
    unsafe: UnsafeSet,
    x: Array,
    *,
    index: int = 0,
    by: str = "",
    proof: str | None = None,
    runtime: Float32 | None = None,
) -> Witness:
    """Return what an input is worth as a witness of an unsafe set.

    Args:
        model: The model.
        unsafe: The set; of one with numbers between two float64, the inner set counts.
        x: The input, (d,).
        index: Which of several sets it is.
        by: What found the input.
        proof: How it was proved, if that is known already.
        runtime: What computes in float32, if there is one already.

    Example:
        x^2 <= 2 at 1, where it is 1 below:

        >>> from pindown.model.builder import Builder
        >>> from pindown.model.operations.products import Multiply
        >>> graph = Builder((1, 1))
        >>> square = graph.model(graph.add(Multiply(), graph.input, graph.input), input_shape=(1,))
        >>> low = UnsafeSet(np.zeros(1), np.ones(1), rows=np.eye(1), limits=np.array([2.0]))
        >>> found = examined(square, low, np.ones(1))
        >>> found.margin, found.float32_margin, found.proved
        (-1.0, -1.0, True)
    """
    inside, point = unsafe.inside, np.array(x, dtype=np.float64)
    made = outputs(model, point[None])[0]
    runtime = runtime or Float32(model)
    rounded, name = runtime(point)
    margin, _ = _margin(inside, point, made)
    float32_margin, violates = _margin(inside, point.astype(np.float32).astype(np.float64), rounded)
    proof = proved_violation(model, unsafe, point) if proof is None else proof
    for array in (point, made, rounded):
        array.flags.writeable = False
    return Witness(point, index, made, margin, proof, rounded, float32_margin, violates, name, by)


@np.errstate(all="ignore")
def _margin(unsafe: UnsafeSet, x: Array, made: Array) -> tuple[float, bool]:
    """Return the largest residual to rounding, infinite for NaN, and whether all are low enough."""
    residuals = unsafe.rows @ made - unsafe.limits
    if unsafe.input_rows is not None:
        residuals = residuals + unsafe.input_rows @ x
    residuals = np.where(np.isnan(residuals), np.inf, residuals)
    low = residuals <= 0.0 if unsafe.strict is None else _low_enough(unsafe.strict, residuals)
    return float(residuals.max(initial=-np.inf)), bool(low.all())


def _low_enough(strict: NDArray[np.bool_], residuals: Array) -> NDArray[np.bool_]:
    return np.asarray(np.where(strict, residuals < 0.0, residuals <= 0.0))


# ---------------------------------------------------------------------- proofs


def proved_violation(model: Model, unsafe: UnsafeSet, x: Array, *, rationals: bool = True) -> str:
    """Return how it is proved that an input lies in an unsafe set for the real-number model.

    Args:
        model: The model.
        unsafe: The set; of one with numbers between two float64, the inner set counts.
        x: The input, (d,).
        rationals: Whether to try rational numbers where intervals do not tell.

    Returns:
        ``"intervals"`` or ``"rationals"``; empty if it is not so, or cannot be told.

    Example:
        0.1 + 0.2 as float64 rounds it is above 0.3, and so is the real sum of the two float64:

        >>> from pindown.model.from_network import model_of_network
        >>> from pindown.network import ReluNetwork
        >>> model = model_of_network(ReluNetwork.from_layers([([[1.0, 1.0]], [0.0])]))
        >>> x, limit = np.array([0.1, 0.2]), np.array([0.3])
        >>> proved_violation(model, UnsafeSet(x, x, np.eye(1), limit), x)
        ''
        >>> proved_violation(model, UnsafeSet(x, x, -np.eye(1), -limit), x)
        'rationals'
    """
    inside = unsafe.inside
    if not (np.isfinite(x).all() and (x >= inside.lower).all() and (x <= inside.upper).all()):
        return ""
    if _by_intervals(model, inside, x):
        return "intervals"
    return "rationals" if rationals and _by_rationals(model, inside, x) else ""


def _by_intervals(model: Model, unsafe: UnsafeSet, x: Array) -> bool:
    if not len(unsafe.limits):
        return True
    point = Interval(x[None], x[None])
    with np.errstate(all="ignore"):
        *_, made = interval_walk(model, point)
        upper = dot_up(unsafe.rows[None], Interval(*(end.reshape(1, -1) for end in made)))
        if unsafe.input_rows is not None:
            upper = add_up(upper, dot_up(unsafe.input_rows[None], point))
        residuals = add_up(upper, -unsafe.limits)[0]
    strict = np.zeros(len(residuals), bool) if unsafe.strict is None else unsafe.strict
    return bool(_low_enough(strict, residuals).all())  # comparisons with NaN are false


def _by_rationals(model: Model, unsafe: UnsafeSet, x: Array) -> bool:
    """Return whether rational numbers show it; False where they would take long or do not exist."""
    if model.multiply_adds > WITNESS_MAX_RATIONAL_WORK or not np.isfinite(unsafe.limits).all():
        return False
    made = _exact_outputs(model, x)
    if made is None:
        return False
    for i, total in enumerate(_exact_rows(unsafe, x, made)):
        limit = Fraction(float(unsafe.limits[i]))
        if total > limit or (total == limit and unsafe.strict is not None and unsafe.strict[i]):
            return False
    return True


def _exact_outputs(model: Model, x: Array) -> list[Fraction] | None:
    """Return the outputs in rational numbers, None if an operation on the way has none."""
    last: Any = None
    try:
        for last in model.walk(as_fractions(x[None])):
            if not all(isinstance(value, (Fraction, int)) for value in last.ravel().tolist()):
                return None
    except (TypeError, ValueError, ArithmeticError, AttributeError):  # exp, roots, sums of floats
        return None
    return [Fraction(value) for value in last.ravel().tolist()]


def _exact_rows(unsafe: UnsafeSet, x: Array, made: list[Fraction]) -> Iterator[Fraction]:
    for i, row in enumerate(unsafe.rows):
        total = sum((Fraction(float(row[j])) * made[j] for j in np.flatnonzero(row)), Fraction(0))
        if unsafe.input_rows is not None:
            own = unsafe.input_rows[i]
            terms = (Fraction(float(own[j])) * Fraction(float(x[j])) for j in np.flatnonzero(own))
            total += sum(terms, Fraction(0))
        yield total


# ---------------------------------------------------------------------- float32


def in_float32(unsafe: UnsafeSet, x: Array) -> Array:
    """Return the nearest input that float32 can hold, in the box; x where the box has none.

    >>> third = UnsafeSet(np.zeros(1), np.full(1, 1 / 3), np.eye(1), np.ones(1))
    >>> float(in_float32(third, np.array([1 / 3]))[0])  # 0.33333334 would be outside
    0.3333333134651184
    """
    with np.errstate(all="ignore"):
        ends = [end.astype(np.float32) for end in (unsafe.lower, unsafe.upper)]
        low = np.where(ends[0] < unsafe.lower, np.nextafter(ends[0], np.float32(np.inf)), ends[0])
        high = np.where(ends[1] > unsafe.upper, np.nextafter(ends[1], np.float32(-np.inf)), ends[1])
        rounded = np.clip(x.astype(np.float32), low, high).astype(np.float64)
    inside = (rounded >= unsafe.lower) & (rounded <= unsafe.upper)
    return np.where(inside, rounded, x)


class Float32:
    """A model as float32 runtimes compute it: by onnxruntime if it is there, else by NumPy.

    Args:
        model: The model.
        path: The ONNX file that it was read from, if it is to be run itself; else the model is written
            in float32. A file that takes or makes more than one tensor is not run itself.

    >>> from pindown.model.from_network import model_of_network
    >>> from pindown.network import ReluNetwork
    >>> model = model_of_network(ReluNetwork.from_layers([([[1.0]], [-1])]))
    >>> float(model([1 + 1e-9])[0]) > 0, float(Float32(model)(np.array([1 + 1e-9]))[0][0])
    (True, 0.0)
    """

    def __init__(self, model: Model, path: str | PathLike[str] | None = None) -> None:
        self.model = model
        self._session = None if path is None else _session(_file(path), model)
        if self._session is None:
            self._session = _session(_written(model), model)

    def __call__(self, x: Array) -> tuple[Array, str]:
        """Return the outputs (k,) at one input (d,), and what computed them."""
        if self._session is not None:
            made = _ran(self._session, x, self.model)
            if made is not None:
                return made, "onnxruntime"
        return rounded_outputs(self.model, x[None])[0], "NumPy"


def rounded_outputs(model: Model, rows: Array) -> Array:
    """Evaluate rows (n, d) with every tensor rounded to float32, as most runtimes do.

    Sums inside an operation are those of float64; a runtime differs by about as much again.
    """
    with np.errstate(all="ignore"):
        parts = [
            model.evaluate(rows[part], lambda values: values.astype(np.float32).astype(np.float64))
            for part in model.chunks(len(rows))
        ]
    return np.concatenate(parts).reshape(len(rows), model.out_features)


def _file(path: str | PathLike[str]) -> bytes | None:
    file = Path(path)
    try:
        data = file.read_bytes()
        return gzip.decompress(data) if file.name.lower().endswith(".gz") else data
    except (OSError, EOFError):
        return None


def _written(model: Model) -> bytes | None:
    try:
        return file_bytes(model, "model.onnx", dtype="float32")
    except (ModelFileError, UnsupportedModelError):  # a weight beyond float32
        return None


def _session(data: bytes | None, model: Model) -> Any:
    """Return a session of onnxruntime with one thread, None if there is none for this model."""
    if data is None:
        return None
    try:
        onnxruntime = import_module("onnxruntime")
    except ImportError:
        return None
    options = onnxruntime.SessionOptions()
    options.intra_op_num_threads = options.inter_op_num_threads = 1
    options.log_severity_level = 4
    try:
        session = onnxruntime.InferenceSession(data, options, providers=["CPUExecutionProvider"])
    except Exception:  # whatever it does not like, NumPy can do
        return None
    single = len(session.get_inputs()) == 1 and len(session.get_outputs()) == 1
    known = session.get_inputs()[0].type in _TYPES
    return session if single and known else None


_TYPES = {"tensor(float)": np.float32, "tensor(double)": np.float64, "tensor(float16)": np.float16}


def _ran(session: Any, x: Array, model: Model) -> Array | None:
    """Return what a session makes of one input, (k,)."""
    given = session.get_inputs()[0]
    shape = [size if isinstance(size, int) else 1 for size in given.shape]
    if math.prod(shape) != x.size:
        shape = list(model.literal_shape)
    with np.errstate(all="ignore"):
        fed = x.astype(np.float32).astype(_TYPES[given.type]).reshape(shape)
    try:
        (made,) = session.run(None, {given.name: fed})
    except Exception:  # whatever it does not like, NumPy can do
        return None
    flat = np.asarray(made, dtype=np.float64).ravel()
    return flat if flat.size == model.out_features else None
