"""The one value everything reads: a feed-forward ReLU network in float64."""

from __future__ import annotations

import hashlib
import math
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from itertools import cycle, pairwise
from numbers import Real
from os import PathLike
from typing import TYPE_CHECKING, Any

import numpy as np
import scipy.sparse as sp
from numpy.typing import ArrayLike, NDArray

from pindown.affine import Affine, Array, Matrix, is_finite
from pindown.text import card

if TYPE_CHECKING:
    from pindown.rational import RationalNetwork

# Rows evaluated at once: enough to keep BLAS busy, few enough that the activations of one
# layer stay in cache (measured fastest at 784-256x4-10), and never more than the memory cap.
_CHUNK_ROWS = 1024
_CHUNK_BYTES = 256 * 2**20
_SHOWN_WIDTHS = 16


@dataclass(frozen=True, eq=False, repr=False)
class ReluNetwork:
    r"""A network :math:`f = A_L \circ \rho \circ A_{L-1} \circ \dots \circ \rho \circ A_1`.

    Each :math:`A_l(a) = W_l a + b_l` is affine, :math:`\rho(z) = \max(0, z)` acts on every
    coordinate, and the last layer has no ReLU. The value is immutable and holds float64 numbers.

    Attributes:
        layers: The affine maps; each unpacks as ``W, b`` with ``W`` of shape (out, in), dense or
            ``scipy.sparse.csr_array``.
        input_shape: Shape of one input before flattening, for instance ``(3, 32, 32)``.
        output_activation: What followed the last affine map in the model file (``"softmax"``,
            ``"log_softmax"``, ``"sigmoid"``) or None. ``net(X)`` does not apply it.
        notes: What the reader had to assume or did to the model, in plain words.

    Example:
        The absolute value, as ``relu(x) + relu(-x)``:

        >>> net = ReluNetwork.from_layers([([[1.0], [-1.0]], [0, 0]), ([[1.0, 1.0]], [0])])
        >>> net(np.array([[-3.0], [2.0]]))
        array([[3.],
               [2.]])
        >>> net
        ReluNetwork(1 -> 2 -> 1, 7 parameters)

    Mukherjee 2020, Definition 1; Phuong 2021, section 1.2.
    """

    layers: tuple[Affine, ...]
    input_shape: tuple[int, ...] = ()
    output_activation: str | None = None
    notes: tuple[str, ...] = ()

    def __post_init__(self) -> None:
        object.__setattr__(self, "layers", tuple(self.layers))
        if not self.layers:
            raise ValueError("a network needs at least one affine layer; got none.")
        if not all(isinstance(layer, Affine) for layer in self.layers):
            raise TypeError("layers must be Affine maps; ReluNetwork.from_layers takes pairs of arrays.")
        for i, (first, second) in enumerate(pairwise(self.layers), 1):
            if first.out_features != second.in_features:
                raise ValueError(
                    f"layer shapes must chain: layer {i} gives {first.out_features} values, "
                    f"layer {i + 1} takes {second.in_features}."
                )
        if not self.input_shape:
            object.__setattr__(self, "input_shape", (self.in_features,))
        if min(self.input_shape) < 1:
            raise ValueError(f"the lengths in input_shape must be positive; got {self.input_shape}.")
        if math.prod(self.input_shape) != self.in_features:
            raise ValueError(
                f"input_shape {self.input_shape} holds {math.prod(self.input_shape)} values; "
                f"the first layer takes {self.in_features}."
            )

    # ------------------------------------------------------------------ making one

    @classmethod
    def from_layers(
        cls,
        layers: Iterable[tuple[ArrayLike | Matrix, ArrayLike]],
        *,
        input_shape: Sequence[int] = (),
        output_activation: str | None = None,
        notes: Sequence[str] = (),
    ) -> ReluNetwork:
        """Build from ``[(W1, b1), ..., (WL, bL)]``, ``W`` of shape (out, in)."""
        affine = []
        for i, pair in enumerate(layers, 1):
            try:
                weight, bias = pair
                affine.append(Affine.of(weight, bias))
            except (TypeError, ValueError) as error:
                raise type(error)(f"layer {i}: {error}") from None
        shape = tuple(int(n) for n in input_shape)
        return cls(tuple(affine), shape, output_activation, tuple(notes))

    @classmethod
    def from_torch(cls, module: Any, input_shape: Sequence[int] | None = None) -> ReluNetwork:
        """Read a torch module (in evaluation mode) by tracing it."""
        from pindown.io._torch.module import network_from_module

        return network_from_module(module, input_shape)

    @classmethod
    def from_sklearn(cls, estimator: Any) -> ReluNetwork:
        """Read a fitted scikit-learn ``MLPClassifier`` or ``MLPRegressor``."""
        from pindown.io._sklearn import network_from_estimator

        return network_from_estimator(estimator)

    # ------------------------------------------------------------------ what it is

    @property
    def in_features(self) -> int:
        """Input dimension :math:`d_0`."""
        return self.layers[0].in_features

    @property
    def out_features(self) -> int:
        """Output dimension :math:`d_L`."""
        return self.layers[-1].out_features

    @property
    def widths(self) -> tuple[int, ...]:
        r"""All widths :math:`(d_0, d_1, \dots, d_L)`, input and output included."""
        return (self.in_features, *(layer.out_features for layer in self.layers))

    @property
    def hidden_widths(self) -> tuple[int, ...]:
        """Widths of the ReLU layers."""
        return self.widths[1:-1]

    @property
    def depth(self) -> int:
        """Number :math:`L` of affine maps; there are L - 1 ReLU layers."""
        return len(self.layers)

    @property
    def size(self) -> int:
        """Total number of ReLUs."""
        return sum(self.hidden_widths)

    @property
    def n_parameters(self) -> int:
        """Weights and biases stored (for a sparse layer, its non-zero weights)."""
        return sum(layer.n_parameters for layer in self.layers)

    @cached_property
    def fingerprint(self) -> str:
        """SHA-256 of all numbers: equal exactly when all layers are equal number for number."""
        digest = hashlib.sha256()
        for weight, bias in self.layers:
            W = sp.csr_array(weight)  # the same numbers, however they are stored
            indices = (W.indices.astype(np.int64), W.indptr.astype(np.int64))
            digest.update(repr(W.shape).encode())
            for part in (W.data, *indices, bias + 0.0):  # minus zero is the number zero
                digest.update(part.tobytes())
        return digest.hexdigest()

    def __eq__(self, other: object) -> bool:
        if not isinstance(other, ReluNetwork) or self.widths != other.widths:
            return False
        # Networks mostly differ in the first layer already: no need to read all of both.
        return all(map(_same_numbers, self.layers, other.layers))

    def __hash__(self) -> int:
        return hash(self.fingerprint)

    _repr_html_ = card

    def __repr__(self) -> str:
        widths = [str(width) for width in self.widths]
        if len(widths) > _SHOWN_WIDTHS:
            half = _SHOWN_WIDTHS // 2
            left_out = len(widths) - 2 * half
            widths[half:-half] = [f"... {left_out:,} more ..."]
        return f"ReluNetwork({' -> '.join(widths)}, {self.n_parameters:,} parameters)"

    # ------------------------------------------------------------------ evaluating it

    def __call__(self, X: ArrayLike) -> Array:
        """Evaluate: (n, d) -> (n, k), (d,) -> (k,); inputs of ``input_shape`` are flattened.

        Memory beyond the result is bounded: rows go through in chunks.
        """
        rows, single = self.as_rows(X)
        out = np.empty((len(rows), self.out_features))
        # Two buffers in turn: one for each layer would grow with the depth.
        space = min(rows_at_once(self._row_bytes), len(rows)) * max(self.hidden_widths, default=0)
        buffers = [np.empty(space), np.empty(space)]
        with np.errstate(over="ignore", invalid="ignore"):  # _require_no_overflow speaks instead
            for part in self.chunks(len(rows)):
                a = rows[part]
                for layer, buffer in zip(self.layers[:-1], cycle(buffers), strict=False):
                    shape = len(a), layer.out_features
                    a = layer(a, out=buffer[: math.prod(shape)].reshape(shape))
                    np.maximum(a, 0.0, out=a)
                self.layers[-1](a, out=out[part])
        _require_no_overflow(out)
        return out[0] if single else out

    def trace(self, X: ArrayLike) -> list[Array]:
        r"""Return the outputs :math:`z_1, \dots, z_L` of all affine maps, each (n, d_l)."""
        a, _ = self.as_rows(X)
        values = []
        with np.errstate(over="ignore", invalid="ignore"):
            for layer in self.layers:
                values.append(layer(a))
                a = np.maximum(values[-1], 0.0)
        _require_no_overflow(values[-1])
        return values

    def preactivations(self, X: ArrayLike) -> Array:
        """Return what enters every ReLU: (n, d) -> (n, size), layers side by side, (d,) -> (size,)."""
        rows, single = self.as_rows(X)
        z = np.concatenate([np.empty((len(rows), 0)), *self.trace(rows)[:-1]], axis=1)
        return z[0] if single else z

    def pattern(self, X: ArrayLike) -> NDArray[np.bool_]:
        """Return which ReLUs are on (preactivation >= 0): (n, d) -> (n, size), (d,) -> (size,)."""
        return self.preactivations(X) >= 0.0

    def by_layer(self, units: NDArray[Any]) -> list[NDArray[Any]]:
        """Split the last axis of ``pattern`` or ``preactivations`` into hidden layers."""
        return np.split(units, np.cumsum(self.hidden_widths)[:-1], axis=-1) if self.size else []

    def local_affine(self, x: ArrayLike) -> tuple[Array, Array]:
        r"""Return :math:`(A, c)` with :math:`f(x') = A x' + c` for all x' that share x's pattern.

        Args:
            x: One input (d,) or a batch (n, d).

        Returns:
            ``A`` (k, d) and ``c`` (k,), with a leading n for a batch.

        >>> net = ReluNetwork.from_layers([([[1.0], [-1.0]], [0, 0]), ([[1.0, 1.0]], [0])])
        >>> A, c = net.local_affine([-3.0])
        >>> A.item(), c.item()
        (-1.0, 0.0)

        Phuong 2021, Lemma A.7, with the offset (A.15) corrected; see docs/errata.md.
        """
        rows, single = self.as_rows(x)
        return self.affine_of_pattern(self.pattern(rows[0] if single else rows))

    def affine_of_pattern(self, pattern: NDArray[np.bool_]) -> tuple[Array, Array]:
        """Return ``(A, c)`` for given on/off states: (size,) -> (k, d), (k,); batches likewise."""
        states = np.atleast_2d(pattern)
        if states.shape[1] != self.size:
            raise ValueError(f"a pattern has {self.size} entries; got {states.shape[1]}.")
        n, k = len(states), self.out_features
        masks = self.by_layer(states)
        # From the output side: k rows per input instead of d columns, and k is the small one.
        A = np.repeat(np.eye(k)[None], n, axis=0)
        c = np.zeros((n, k))
        for layer, mask in zip(reversed(self.layers), [*reversed(masks), None], strict=True):
            c += A @ layer.bias
            A = layer.pull_back(A.reshape(n * k, layer.out_features)).reshape(n, k, layer.in_features)
            if mask is not None:
                A *= mask[:, None, :]
        return (A[0], c[0]) if np.ndim(pattern) == 1 else (A, c)

    def chunks(self, n: int) -> Iterator[slice]:
        """Yield slices that cover ``range(n)`` and keep one slice's activations in bounded memory."""
        return row_chunks(n, self._row_bytes)

    @property
    def _row_bytes(self) -> int:
        return 16 * max(self.widths)  # what enters a layer and what comes out

    def as_rows(self, X: ArrayLike) -> tuple[Array, bool]:
        """Return X as float64 rows (n, d), and whether it was one input.

        Raises:
            ValueError: If the shape does not fit or an entry is not finite.
            TypeError: If the entries are not real numbers.
        """
        return as_rows(X, self.in_features, self.input_shape)

    # ------------------------------------------------------------------ parts and sums

    def __getitem__(self, span: slice) -> ReluNetwork:
        """Return consecutive layers as a network: ``net[:l]`` computes :math:`z_l`."""
        if not isinstance(span, slice) or span.step not in (None, 1):
            raise TypeError("a network is cut by slices such as net[:2]; one layer is net.layers[i].")
        start, stop, _ = span.indices(self.depth)
        return ReluNetwork(
            self.layers[start:stop],
            input_shape=self.input_shape if start == 0 else (),
            output_activation=self.output_activation if stop == self.depth else None,
        )

    def __matmul__(self, inner: object) -> ReluNetwork:
        """Return the composition ``x -> self(inner(x))``."""
        if not isinstance(inner, ReluNetwork):
            return NotImplemented
        from pindown.calculus import compose

        return compose(self, inner)

    def __add__(self, other: object) -> ReluNetwork:
        """Return ``x -> self(x) + other(x)``."""
        if not isinstance(other, ReluNetwork):
            return NotImplemented
        from pindown.calculus import linear_combination

        return linear_combination([1.0, 1.0], [self, other])

    def __sub__(self, other: object) -> ReluNetwork:
        """Return ``x -> self(x) - other(x)``."""
        if not isinstance(other, ReluNetwork):
            return NotImplemented
        from pindown.calculus import linear_combination

        return linear_combination([1.0, -1.0], [self, other])

    def __neg__(self) -> ReluNetwork:
        """Return ``x -> -self(x)``."""
        return -1.0 * self

    def __rmul__(self, factor: object) -> ReluNetwork:
        """Return ``x -> factor * self(x)``."""
        if not isinstance(factor, Real):
            return NotImplemented
        weight, bias = self.layers[-1]
        last = Affine.of(float(factor) * weight, float(factor) * bias)
        return replace(self, layers=(*self.layers[:-1], last), output_activation=None)

    # ------------------------------------------------------------------ ways out

    def as_fractions(self) -> RationalNetwork:
        """Return the same network in exact rational arithmetic (slow; for ties and tests)."""
        from pindown.rational import RationalNetwork

        return RationalNetwork.from_network(self)

    def to_torch(self) -> Any:
        """Return a float64 ``torch.nn.Sequential`` that computes ``net(X)``."""
        from pindown.io._torch.module import module_from_network

        return module_from_network(self)

    def save(self, path: str | PathLike[str], *, dtype: str = "auto") -> None:
        """Write ``.onnx``, ``.onnx.gz`` or ``.safetensors``.

        Args:
            path: Where to write; the ending chooses the format.
            dtype: ``"float32"``, ``"float64"``, or ``"auto"``: float32 if that loses nothing.
        """
        from pindown.io import save

        save(self, path, dtype=dtype)


def as_rows(X: ArrayLike, in_features: int, input_shape: tuple[int, ...]) -> tuple[Array, bool]:
    """Return X as float64 rows (n, d), and whether it was one input; see :meth:`ReluNetwork.as_rows`."""
    raw = np.asarray(X)
    if raw.dtype.kind not in "biuf":
        raise TypeError(f"inputs must be real numbers; got dtype {raw.dtype}.")
    shape = raw.shape
    batch = raw.ndim > 1 and math.prod(shape[1:]) == in_features
    single = not batch and shape in ((in_features,), input_shape)
    if not (batch or single):
        wanted = f"(n, {in_features})"
        if len(input_shape) > 1:
            wanted += f" or (n, {', '.join(map(str, input_shape))})"
        raise ValueError(f"the network takes inputs of shape {wanted}; got {shape}.")
    _require_same_layout(shape[1:] if batch else shape, input_shape)
    rows = np.asarray(raw, dtype=np.float64).reshape(1 if single else len(raw), in_features)
    if not is_finite(rows):
        bad = np.flatnonzero(~np.isfinite(rows).all(axis=1))
        raise ValueError(
            f"inputs must be finite; {len(bad)} of {len(rows)} rows hold NaN or infinity, "
            f"row {bad[0]} first."
        )
    return rows, single


def rows_at_once(row_bytes: int) -> int:
    """Return how many rows to evaluate together, if each takes so much memory on its way."""
    return max(1, min(_CHUNK_ROWS, _CHUNK_BYTES // max(1, row_bytes)))


def row_chunks(n: int, row_bytes: int) -> Iterator[slice]:
    """Yield slices that cover ``range(n)``, each of rows that are evaluated together."""
    step = rows_at_once(row_bytes)
    for start in range(0, n, step):
        yield slice(start, min(n, start + step))


def _same_numbers(first: Affine, second: Affine) -> bool:
    """Return whether two layers of the same shape are equal, however they are stored."""
    if not np.array_equal(first.bias, second.bias):
        return False
    W, V = first.weight, second.weight
    if not (sp.issparse(W) or sp.issparse(V)):
        return bool(np.array_equal(W, V))
    return bool((sp.csr_array(W) != sp.csr_array(V)).nnz == 0)


def _require_no_overflow(values: Array) -> None:
    if not is_finite(values):
        raise ValueError("the network overflows float64 on this input; scale the input down.")


def _require_same_layout(given: tuple[int, ...], wanted: tuple[int, ...]) -> None:
    """Refuse an image whose axes are in another order, although it holds as many numbers."""
    axes = [tuple(n for n in shape if n != 1) for shape in (given, wanted)]
    if axes[0] != axes[1] and min(len(shape) for shape in axes) > 1:
        raise ValueError(
            f"the network takes inputs of shape {wanted}; {given} holds as many numbers, "
            "but in another order. Transpose or reshape the inputs first."
        )
