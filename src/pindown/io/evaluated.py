"""Models of which only values are known: any function of arrays, any session of onnxruntime.

Nothing is read of what they are made of, so nothing about them can be proved; what needs only values can
still be asked.
"""

from __future__ import annotations

import hashlib
import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from importlib import import_module
from os import PathLike
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import ArrayLike

from pindown.affine import Array, is_finite
from pindown.errors import ModelFileError, UnsupportedModelError
from pindown.io.files import read_bytes, read_gzip
from pindown.network import as_rows, row_chunks

_MIN_PROBABILITY = 1e-300  # what a probability of zero is taken for
_BYTES_PER_ENTRY = 64  # of an input on its way through something unknown


@dataclass(frozen=True, eq=False, repr=False)
class Evaluated:
    """A function from rows to outputs, and nothing else.

    Attributes:
        function: Takes ``(n, *input_shape)`` and returns one output for each, of any shape.
        input_shape: The shape of one input.
        out_features: Numbers in one output.
        notes: What had to be assumed, in plain words.
        fingerprint: Fingerprint of the file it came from; empty if it came from none.

    >>> model = evaluated(lambda X: X.sum(axis=1, keepdims=True), (3,))
    >>> model([[1.0, 2.0, 3.0]])
    array([[6.]])
    """

    function: Callable[[Array], Any]
    input_shape: tuple[int, ...]
    out_features: int
    notes: tuple[str, ...] = ()
    fingerprint: str = ""

    @property
    def in_features(self) -> int:
        """Numbers in one input."""
        return math.prod(self.input_shape)

    def __call__(self, X: ArrayLike) -> Array:
        """Evaluate: (n, d) or ``(n, *input_shape)`` -> (n, k), one input -> (k,).

        Raises:
            ValueError: If what comes out has another shape, or is not finite.
        """
        rows, single = as_rows(X, self.in_features, self.input_shape)
        out = np.empty((len(rows), self.out_features))
        for part in row_chunks(len(rows), _BYTES_PER_ENTRY * self.in_features):
            out[part] = _values(self.function, rows[part], self.input_shape, self.out_features)
        if not is_finite(out):
            bad = int(np.flatnonzero(~np.isfinite(out).all(axis=1))[0])
            raise ValueError(f"the model's output at input {bad} is not finite.")
        return out[0] if single else out

    def scores(self, X: ArrayLike) -> Evaluated:
        r"""Return it with scores instead of probabilities, if that is what it gives on these rows.

        Outputs that are not negative and sum to one are taken as probabilities :math:`p_k`, and a single
        one within [0, 1] as that of the second class; scores are :math:`\log p_k`, or the logit.
        """
        made = self(X)
        if not (made.min() >= 0.0 and made.max() <= 1.0):
            return self
        if self.out_features == 1:
            note = "its output lies in [0, 1] and is taken for the probability of the second class"
            return replace(self, function=_then(self, _logit), notes=(*self.notes, note))
        if not np.allclose(made.sum(axis=1), 1.0, atol=1e-3):
            return self
        note = "its outputs are probabilities; their logarithms are taken for scores"
        return replace(self, function=_then(self, _log), notes=(*self.notes, note))

    def __repr__(self) -> str:
        return f"Evaluated({self.input_shape} -> {self.out_features})"


def evaluated(function: Callable[[Array], Any], input_shape: Sequence[int]) -> Evaluated:
    """Return a function of arrays as a model of which only values are known.

    Args:
        function: Takes ``(n, *input_shape)`` in float64 and returns (n, ...).
        input_shape: The shape of one input.

    Raises:
        ValueError: If it does not take such inputs, or gives no numbers, one output for each.
    """
    shape = tuple(int(n) for n in input_shape)
    probe = _values(function, np.zeros((2, math.prod(shape))), shape, None)
    return Evaluated(function, shape, probe.shape[1])


def evaluated_session(session: Any) -> Evaluated:
    """Return a session of onnxruntime with one input and at least one output, of which the first counts.

    Raises:
        UnsupportedModelError: If it has several inputs, or the input's shape or type is not known.
    """
    inputs = session.get_inputs()
    if len(inputs) != 1:
        raise UnsupportedModelError(
            f"models with one input are evaluated; this one has {len(inputs)}: "
            f"{', '.join(entry.name for entry in inputs[:5])}."
        )
    entry, output = inputs[0], session.get_outputs()[0]
    dtype = {"tensor(float)": np.float32, "tensor(double)": np.float64, "tensor(float16)": np.float16}
    if entry.type not in dtype:
        raise UnsupportedModelError(f"inputs of floats are evaluated; this model takes {entry.type}.")
    shape, batch = tuple(entry.shape[1:]), entry.shape[0] if entry.shape else None
    if not entry.shape or not all(isinstance(n, int) and n > 0 for n in shape):
        raise UnsupportedModelError(
            f"its input must have a batch axis and a known shape behind it; got {tuple(entry.shape)}."
        )

    def run(X: Array) -> Array:
        rows = X.astype(dtype[entry.type])
        step = batch if isinstance(batch, int) and batch > 0 else len(rows)
        made = []
        for start in range(0, len(rows), step):
            part = rows[start : start + step]
            filled = np.concatenate([part, np.zeros((step - len(part), *shape), part.dtype)])
            made.append(np.asarray(session.run([output.name], {entry.name: filled})[0])[: len(part)])
        return np.concatenate(made)

    several = len(session.get_outputs()) > 1
    notes: tuple[str, ...] = ("evaluated by onnxruntime, in its own precision; nothing else was read",)
    notes += (f"of its outputs the first, {output.name}, is looked at",) if several else ()
    found = evaluated(run, shape)
    return Evaluated(run, found.input_shape, found.out_features, notes)


def load_evaluated(path: str | PathLike[str]) -> Evaluated:
    """Return an ONNX file as onnxruntime evaluates it, whatever its operations are.

    The file is given to onnxruntime as it is; no library that it may name is loaded.

    Raises:
        ModelFileError: If the file is missing or onnxruntime refuses it.
        UnsupportedModelError: If it does not take one input of a known shape.
        ImportError: If onnxruntime is not installed.
    """
    file = Path(path)
    if not file.name.endswith((".onnx", ".onnx.gz")):
        raise ModelFileError(
            f"{file}: onnxruntime evaluates .onnx files; the ending is {file.suffix!r}."
        )
    try:
        data = read_gzip(file) if file.suffix == ".gz" else read_bytes(file)
    except ModelFileError as error:
        raise ModelFileError(f"{file}: {error}") from None
    try:
        runtime: Any = import_module("onnxruntime")
    except ImportError:
        raise ImportError(
            "evaluating a model that is not read needs onnxruntime: pip install onnxruntime."
        ) from None
    options = runtime.SessionOptions()
    options.log_severity_level = 4
    try:
        session = runtime.InferenceSession(data, options, providers=["CPUExecutionProvider"])
        made = evaluated_session(session)
    except (UnsupportedModelError, ValueError) as error:
        raise UnsupportedModelError(f"{file}: {error}") from None
    except Exception as error:  # the runtime's own classes share no name
        raise ModelFileError(f"{file}: onnxruntime refuses it: {str(error).splitlines()[0]}") from None
    fingerprint = hashlib.sha256(data).hexdigest()
    return Evaluated(made.function, made.input_shape, made.out_features, made.notes, fingerprint)


def is_session(value: Any) -> bool:
    """Return whether it is a session of onnxruntime."""
    return type(value).__module__.partition(".")[0] == "onnxruntime" and hasattr(value, "get_inputs")


def _then(model: Evaluated, change: Callable[[Array], Array]) -> Callable[[Array], Array]:
    return lambda X: change(_values(model.function, X, model.input_shape, model.out_features))


def _log(p: Array) -> Array:
    return np.log(np.maximum(p, _MIN_PROBABILITY))


def _logit(p: Array) -> Array:
    return _log(p) - _log(1.0 - p)


def _values(
    function: Callable[[Array], Any], rows: Array, shape: tuple[int, ...], k: int | None
) -> Array:
    try:
        with np.errstate(all="ignore"):
            made = function(rows.reshape(len(rows), *shape).copy())
        made = np.asarray(made.detach().cpu() if hasattr(made, "detach") else made)
    except Exception as error:
        words = f"{type(error).__name__}: {error}".splitlines()[0]
        raise ValueError(f"the model failed on inputs of shape {(len(rows), *shape)}: {words}") from None
    if made.dtype.kind not in "biuf" or made.shape[:1] != (len(rows),):
        raise ValueError(
            f"the model must give numbers, one output for each of {len(rows)} inputs; got shape "
            f"{made.shape} of {made.dtype}."
        )
    values = made.astype(np.float64).reshape(len(rows), -1)
    if k is not None and values.shape[1] != k:
        raise ValueError(f"the model gave {values.shape[1]} outputs for an input; before it gave {k}.")
    return values
