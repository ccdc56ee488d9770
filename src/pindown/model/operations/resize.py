r"""Images made larger or smaller: nearest, linear and cubic interpolation, one axis after the other.

Along one axis, output o lies at the place c(o) of the input, by one of ONNX's coordinate
transformations, for instance :math:`c(o) = (o + 1/2) / s - 1/2` (``half_pixel``) for the scale s. Its
value is a sum over the one, two or four entries around that place, with weights that sum to one; what
lies outside is the entry at the edge.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from functools import lru_cache, reduce
from typing import Any

import numpy as np
import scipy.sparse as sp
from numpy.typing import NDArray

from pindown.affine import Array
from pindown.errors import UnsupportedModelError
from pindown.model._expression import Expression
from pindown.model._lowering import Lowering
from pindown.model.limits import MAX_SPARSE_ENTRIES, MAX_TENSOR_ENTRIES, check_entries, check_shape
from pindown.model.operations.affine_operation import AffineOperation, Nothing
from pindown.model.operations.operation import Numbers, Shape, Writer, matched

_TAPS = {"nearest": 1, "linear": 2, "cubic": 4}
_COORDINATES = {  # and the operator set that has it
    "half_pixel": 13,
    "pytorch_half_pixel": 13,
    "align_corners": 13,
    "asymmetric": 13,
    "half_pixel_symmetric": 19,
    "tf_half_pixel_for_nn": 11,
}
_TIE = 1e-6  # a place this near to the middle is in the middle
_ROUNDINGS = ("round_prefer_floor", "round_prefer_ceil", "floor", "ceil")


@dataclass(frozen=True, eq=False)
class Resize(AffineOperation):
    """Interpolation between the entries of a tensor, along some of its axes; made by :meth:`of`.

    Attributes:
        axes: The axes, counted from the front of the literal shape.
        sizes: Their new lengths.
        scales: The scales by which places are computed; None: new lengths over old ones.
        mode: ``"nearest"``, ``"linear"`` or ``"cubic"``.
        coordinate: Where outputs lie in the input, by ONNX's name.
        nearest: How a place is rounded with ``"nearest"``, by ONNX's name. There places are computed in
            float32, and ties are those within 1e-6, as onnxruntime has it: the last digit decides.
        cubic: The coefficient of the cubic kernel.
        exclude_outside: Whether cubic weights of what lies outside are dropped and the rest scaled up.

    Example:
        >>> twice = Resize.of((1, 1, 2), scales=(1, 1, 2), mode="linear")
        >>> twice(np.array([[[[0.0, 4.0]]]]))
        array([[[[0., 1., 3., 4.]]]])
    """

    axes: tuple[int, ...]
    sizes: tuple[int, ...]
    scales: tuple[float, ...] | None = None
    mode: str = "nearest"
    coordinate: str = "half_pixel"
    nearest: str = "round_prefer_floor"
    cubic: float = -0.75
    exclude_outside: bool = False

    def __post_init__(self) -> None:
        words = ((self.mode, _TAPS), (self.coordinate, _COORDINATES), (self.nearest, _ROUNDINGS))
        for word, known in words:
            if word not in known:
                raise UnsupportedModelError(
                    f"Resize with '{word}' is not read, only with {', '.join(known)}."
                )
        if self.coordinate == "tf_half_pixel_for_nn" and self.mode != "nearest":
            raise UnsupportedModelError(f"Resize with {self.coordinate} is only read for mode nearest.")

    @classmethod
    def of(
        cls,
        shape: Sequence[int],
        *,
        sizes: Sequence[int] | None = None,
        scales: Sequence[float] | None = None,
        axes: Sequence[int] | None = None,
        antialias: bool = False,
        **words: Any,
    ) -> Resize:
        """Return the resizing of a tensor of a literal shape, in the words of ONNX.

        torch's ``interpolate`` is ``nearest`` with ``"asymmetric"`` and ``"floor"``, ``linear`` and
        ``cubic`` with ``"half_pixel"``, or ``"align_corners"`` where it was told so.

        Args:
            shape: The literal shape.
            sizes: The new lengths, of all axes or of ``axes``.
            scales: Or by which factors lengths grow; what comes out is rounded down.
            axes: The axes that are meant; None: all.
            antialias: Refused.
            words: ``mode``, ``coordinate``, ``nearest``, ``cubic``, ``exclude_outside``.

        Raises:
            UnsupportedModelError: If a word is not known, antialias is set, or the result is too large.
        """
        if antialias:
            raise UnsupportedModelError("Resize with antialias is not read; export the model without.")
        axes = range(len(shape)) if axes is None else [axis % len(shape) for axis in axes]
        given = sizes if scales is None else scales
        if given is None or (sizes is not None and scales is not None) or len(given) != len(axes):
            raise ValueError(f"Resize needs sizes or scales of {len(axes)} axes; got {sizes}, {scales}.")
        if not all(0 < v < math.inf for v in given):
            raise ValueError(f"Resize needs positive sizes and scales; got {tuple(given)}.")
        kept: list[tuple[int, int, float]] = []
        for axis, value in zip(axes, given, strict=True):
            n = shape[axis]
            size = int(value) if scales is None else _scaled(n, float(value))
            scale = size / n if scales is None else float(value)
            if (size, scale) != (n, 1.0):
                kept.append((axis, size, scale))
        numbers, lengths, factors = zip(*kept, strict=True) if kept else ((), (), ())
        made = cls(numbers, lengths, None if scales is None else factors, **words)
        wanted = check_shape(made.shape(tuple(shape)), "a resized tensor", MAX_TENSOR_ENTRIES)
        if kept and wanted == tuple(shape):
            raise UnsupportedModelError(
                f"Resize by scales {tuple(given)} that leave the shape {wanted} as it is is not read, "
                "because runtimes disagree on it; leave it out, or give sizes."
            )
        return made

    def shape(self, *shapes: Shape) -> Shape:
        """Replace the lengths."""
        (shape,) = shapes
        if any(not 0 <= axis < len(shape) for axis in self.axes):
            raise ValueError(f"axes {self.axes} do not exist in a tensor of shape {shape}.")
        made = dict(zip(self.axes, self.sizes, strict=True))
        return tuple(made.get(axis, n) for axis, n in enumerate(shape))

    def _scale(self, i: int, n: int) -> float:
        return self.sizes[i] / n if self.scales is None else self.scales[i]

    def _taps(self, i: int, n: int) -> tuple[NDArray[np.int64], Array]:
        """Return which entries outputs along axis i of length n are made of, and the weights."""
        size, scale = self.sizes[i], self._scale(i, n)
        if self.mode == "nearest":
            return _nearest(n, size, scale, self.coordinate, self.nearest)
        if self.mode == "linear":
            return _linear(n, size, scale, self.coordinate)
        return _cubic(n, size, scale, self.coordinate, self.cubic, self.exclude_outside)

    def linear(self, x: Numbers) -> Numbers:
        """Interpolate along each axis."""
        for i, axis in enumerate(self.axes):
            x = _along(x, 1 + axis, *self._taps(i, x.shape[1 + axis]))
        return x

    def transposed(self, form: Array, shape: Shape) -> Array:
        """Give every entry its shares, along each axis."""
        for i, axis in enumerate(self.axes):
            front = np.moveaxis(form, 1 + axis, 0)
            back = self._matrix(i, shape[axis]).T @ front.reshape(len(front), -1)
            form = np.moveaxis(back.reshape(-1, *front.shape[1:]), 0, 1 + axis)
        return np.ascontiguousarray(form)

    def _matrix(self, i: int, n: int) -> sp.csr_array:
        """Return the weights along axis i of length n, (new length, n)."""
        where, weights = self._taps(i, n)
        rows = np.repeat(np.arange(len(where)), where.shape[1])
        return sp.csr_array((weights.ravel(), (rows, where.ravel())), shape=(len(where), n))

    @property
    def smallest_weight(self) -> float:
        """A number below all weights but zero: products of at most cubes of rounding errors."""
        return 1.0 if self.mode == "nearest" else 2.0**-500

    def signed(self) -> tuple[AffineOperation, AffineOperation]:
        """Only cubic interpolation has negative weights."""
        if self.mode != "cubic":
            return self, Nothing(self)
        return _SignedResize(self, 0), _SignedResize(self, 1)

    def n_terms(self, shape: Shape) -> int:
        """A few for each axis; back, one for each output in which an entry has a share."""
        taps = (self._taps(i, shape[axis]) for i, axis in enumerate(self.axes))
        return sum(8 + int(np.bincount(where.ravel()).max()) for where, _ in taps)

    def lower(self, lowering: Lowering, *inputs: Expression) -> Expression:
        """Multiply by the weights of all axes, as one sparse matrix."""
        (x,) = inputs
        made = self.shape(x.shape)
        taps = _TAPS[self.mode] ** len(self.axes)
        what = "a resized tensor, written as a matrix,"
        check_entries(*made, taps, what=what, limit=MAX_SPARSE_ENTRIES)
        factors = [sp.eye_array(n, format="csr") for n in x.shape]
        for i, axis in enumerate(self.axes):
            factors[axis] = self._matrix(i, x.shape[axis])
        matrix = reduce(lambda a, b: sp.kron(a, b, format="csr"), factors)
        return x.map(sp.csr_array(matrix), made)

    def write(self, writer: Writer, *inputs: str) -> str:
        """Write Resize, with scales where they are in the file's reach; an old word as Gather."""
        (x,) = inputs
        shape = writer.shape_of(x)
        if self.coordinate == "tf_half_pixel_for_nn" or not self.axes:
            for i, axis in enumerate(self.axes):
                where, _ = self._taps(i, shape[axis])
                x = writer.node("Gather", [x, writer.integers(where[:, 0])], axis=axis)
            return x if self.axes else writer.node("Identity", [x])
        words: dict[str, Any] = {
            "mode": self.mode,
            "coordinate_transformation_mode": self.coordinate,
            "nearest_mode": self.nearest,
            "cubic_coeff_a": self.cubic,
            "exclude_outside": int(self.exclude_outside),
        }
        scales = np.ones(len(shape), dtype=np.float32)
        scales[list(self.axes)] = [self._scale(i, shape[axis]) for i, axis in enumerate(self.axes)]
        reached = tuple(map(_scaled, shape, scales.tolist())) == self.shape(shape)
        ratios = [size / shape[axis] for axis, size in zip(self.axes, self.sizes, strict=True)]
        if reached and (self.scales is not None or scales[list(self.axes)].tolist() == ratios):
            since = _COORDINATES[self.coordinate]
            name = writer.integers(scales, "float32")  # whatever the file's type
            return writer.node("Resize", [x, "", name], since=since, **words)
        # Sizes of all axes would hold the batch's, too.
        since = max(18, _COORDINATES[self.coordinate])
        name = writer.integers(self.sizes)
        return writer.node("Resize", [x, "", "", name], since=since, axes=self.axes, **words)


@dataclass(frozen=True, eq=False)
class _SignedResize(AffineOperation):
    r"""The positive (0) or negative (1) part of a resizing, a product of one factor for each axis.

    With :math:`A = A^+ - A^-` and the parts P and N so far, the parts of the product are
    :math:`A^+ P + A^- N` and :math:`A^+ N + A^- P`.
    """

    whole: Resize
    part: int

    def shape(self, *shapes: Shape) -> Shape:
        """Return the other's."""
        return self.whole.shape(*shapes)

    def linear(self, x: Numbers) -> Numbers:
        """Carry both parts along."""
        P, N = x, np.zeros_like(x)
        for i, axis in enumerate(self.whole.axes):
            where, weights = self.whole._taps(i, x.shape[1 + axis])
            plus, minus = (
                [_along(v, 1 + axis, where, np.maximum(sign * weights, 0.0)) for v in (P, N)]
                for sign in (1.0, -1.0)
            )
            P, N = plus[0] + minus[1], plus[1] + minus[0]
        return (P, N)[self.part]

    def transposed(self, form: Array, shape: Shape) -> Array:
        """Nobody asks for it."""
        raise NotImplementedError

    def signed(self) -> tuple[AffineOperation, AffineOperation]:
        """Return itself and nothing."""
        return self, Nothing(self)

    def n_terms(self, shape: Shape) -> int:
        """As many as the other's."""
        return self.whole.n_terms(shape)

    def write(self, writer: Writer, *inputs: str) -> str:
        """It is never part of a model."""
        raise NotImplementedError


def _along(x: Numbers, axis: int, where: NDArray[np.int64], weights: Array) -> Numbers:
    """Return sums of entries along an axis, with weights (outputs, taps)."""
    if where.shape[1] == 1:
        return np.take(x, where[:, 0], axis)
    total: Any = 0
    for at, weight in zip(where.T, weights.T, strict=True):
        own = matched(weight, x).reshape(-1, *(1,) * (x.ndim - 1 - axis))
        total = total + own * np.take(x, at, axis)
    return np.asarray(total)


def _scaled(n: int, scale: float) -> int:
    """Return the new length for a scale, in float32 as runtimes do it if the scale is such a number."""
    kind = np.float32 if np.float32(scale) == scale else np.float64
    return math.floor(kind(n) * kind(scale))


def _places(n: int, size: int, scale: float, coordinate: str, kind: Any = np.float64) -> Array:
    """Return where outputs lie in the input, computed in a float type."""
    o, s, half = np.arange(size, dtype=kind), kind(scale), kind(0.5)
    if coordinate == "asymmetric":
        return o / s
    if coordinate == "align_corners":
        return o * kind(n - 1) / kind(max(1, size - 1))
    if coordinate == "tf_half_pixel_for_nn":
        return (o + half) / s
    if coordinate == "pytorch_half_pixel" and size == 1:
        return np.zeros(1, dtype=kind)
    if coordinate == "half_pixel_symmetric":
        moved = kind(n) * half * (kind(1) - kind(size) / (s * kind(n)))
        return np.asarray(float(moved) + (np.arange(size) + 0.5) / float(s) - 0.5, dtype=kind)
    return (o + half) / s - half


@lru_cache(maxsize=64)
def _nearest(
    n: int, size: int, scale: float, coordinate: str, rounding: str
) -> tuple[NDArray[np.int64], Array]:
    place = _places(n, size, scale, coordinate, np.float32).astype(np.float64)
    if rounding == "round_prefer_floor":
        whole = np.ceil(place - 0.5 - _TIE)
    elif rounding == "round_prefer_ceil":
        whole = np.floor(place + 0.5 + _TIE)
    else:
        whole = np.floor(place) if rounding == "floor" else np.ceil(place)
    where = np.clip(whole, 0, n - 1).astype(np.int64)[:, None]
    return where, np.ones(where.shape)


@lru_cache(maxsize=64)
def _linear(n: int, size: int, scale: float, coordinate: str) -> tuple[NDArray[np.int64], Array]:
    place = np.clip(_places(n, size, scale, coordinate), 0.0, n - 1.0)
    low = np.floor(place)
    share = place - low
    where = np.stack([low, np.minimum(low + 1, n - 1)], axis=1).astype(np.int64)
    return where, np.stack([1.0 - share, share], axis=1)


@lru_cache(maxsize=64)
def _cubic(
    n: int, size: int, scale: float, coordinate: str, a: float, exclude_outside: bool
) -> tuple[NDArray[np.int64], Array]:
    place = _places(n, size, scale, coordinate)
    low = np.floor(place)
    t = (place - low)[:, None]
    inner = [((a + 2) * d - (a + 3)) * d * d + 1 for d in (t, 1 - t)]  # at distances up to one
    outer = [((a * d - 5 * a) * d + 8 * a) * d - 4 * a for d in (t + 1, 2 - t)]  # and up to two
    weights = np.concatenate([outer[0], *inner, outer[1]], axis=1)
    where = low[:, None] + np.arange(-1, 3)
    if exclude_outside:
        weights = np.where((where >= 0) & (where < n), weights, 0.0)
        weights /= weights.sum(axis=1, keepdims=True)
    return np.clip(where, 0, n - 1).astype(np.int64), weights
