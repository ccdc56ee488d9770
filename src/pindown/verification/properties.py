r"""Properties of one or several networks: which inputs and outputs must not come together.

A property is stated by what violates it, as VNN-LIB does: a union of *unsafe sets*, each a box of inputs
with linear inequalities between inputs and outputs,

.. math::
    l \le x \le u, \qquad C x + R f(x) \le t .

The property holds if no input lies in any of them.

**Numbers.** What was written may lie between two float64. The numbers of a set are rounded outwards, so
that what is proved holds for what was written; its ``inner`` set is rounded inwards, and a witness has
to lie in that. An interval of inputs in which there is no float64 at all is met by the nearest one.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from fractions import Fraction
from functools import cached_property
from os import PathLike
from pathlib import Path
from typing import TYPE_CHECKING, Any, TypeVar

import numpy as np
from numpy.typing import ArrayLike, NDArray

from pindown.affine import Array
from pindown.box import Box, as_box
from pindown.errors import ModelFileError
from pindown.io.files import read_bytes
from pindown.rounding import add_down, add_up
from pindown.text import card, printable
from pindown.validation import array, boolean, integer, positive, vector

if TYPE_CHECKING:
    from pindown.model.graph import Model

_T = TypeVar("_T")


@dataclass(frozen=True, eq=False)
class UnsafeSet:
    """One way to violate a property: ``input_rows @ x + rows @ f(x) <= limits`` somewhere in a box.

    Attributes:
        lower: Lower corner of the box, (d,).
        upper: Upper corner, (d,).
        rows: Linear forms of the outputs, (q, k).
        limits: Their limits, (q,).
        input_rows: Linear forms of the inputs that are added, (q, d), or None for zeros.
        strict: Whether a row must be below its limit, not at it, (q,); a proof never needs to know.
        inner: The same set with its numbers rounded inwards, None if none had to be rounded.

    Example:
        >>> half = UnsafeSet(np.zeros(1), np.ones(1), rows=np.eye(1), limits=np.array([0.5]))
        >>> half.contains([0.3], [0.5]), half.contains([0.3], [0.6]), half.contains([1.3], [0.5])
        (True, False, False)
    """

    lower: Array
    upper: Array
    rows: Array
    limits: Array
    input_rows: Array | None = None
    strict: NDArray[np.bool_] | None = None
    inner: UnsafeSet | None = None

    def __post_init__(self) -> None:
        q, d = len(self.limits), len(self.lower)
        if (
            self.upper.shape != (d,)
            or self.rows.shape[:1] != (q,)
            or (self.input_rows is not None and self.input_rows.shape != (q, d))
            or (self.strict is not None and self.strict.shape != (q,))
        ):
            raise ValueError(
                f"an unsafe set of {d} inputs and {q} limits needs corners (d,), rows (q, k), "
                f"input_rows (q, d) and strict (q,); got {self.upper.shape}, {self.rows.shape}, "
                f"{getattr(self.input_rows, 'shape', None)} and {getattr(self.strict, 'shape', None)}."
            )

    @property
    def inside(self) -> UnsafeSet:
        """What a witness has to lie in: the inner set, or this one if nothing was rounded."""
        return self if self.inner is None else self.inner

    def contains(self, x: ArrayLike, outputs: ArrayLike) -> bool:
        """Return whether an input and its outputs lie in the set as written, in rational arithmetic."""
        point = vector("x", x, len(self.lower))
        return self.inside._reached(point, vector("outputs", outputs, self.rows.shape[1]))

    def _reached(self, x: Array, y: Array) -> bool:
        if not ((x >= self.lower).all() and (x <= self.upper).all()):
            return False
        for i, limit in enumerate(self.limits):
            total = _dot(self.rows[i], y)
            if self.input_rows is not None:
                total += _dot(self.input_rows[i], x)
            if total > Fraction(limit) or (
                self.strict is not None and self.strict[i] and total == Fraction(limit)
            ):
                return False
        return True


@dataclass(frozen=True, eq=False, repr=False)
class Property:
    """A union of unsafe sets; the property holds if none of them is reached.

    Attributes:
        unsafe: The sets.
        n_inputs: How many inputs each network has; one entry for one network.
        n_outputs: How many outputs each network has.
        reads: For several networks: which of the free inputs (the d coordinates of the unsafe sets)
            each network reads, one index array for each; None if there is one network.
        models: Which of the given models each network is: (0, 1) for two files, (0, 0) for two copies
            of one; None if there is one network.
        text: What it says, in words.

    Example:
        >>> Property.box([0, 0], [1, 2], rows=[[1.0, -1.0]], limits=[3.0])
        Property(for all 2 inputs in a box (0 <= x_1 <= 1, 0 <= x_2 <= 2): y_1 - y_2 <= 3)
    """

    unsafe: tuple[UnsafeSet, ...]
    n_inputs: tuple[int, ...]
    n_outputs: tuple[int, ...]
    reads: tuple[NDArray[np.intp], ...] | None = None
    models: tuple[int, ...] | None = None
    text: str = ""

    def __post_init__(self) -> None:
        d, k = self.n_free, sum(self.n_outputs)
        if any(len(part.lower) != d or part.rows.shape[1] != k for part in self.unsafe):
            raise ValueError(f"every unsafe set of this property needs {d} inputs and {k} outputs.")

    # ------------------------------------------------------------------ making one

    @classmethod
    def box(cls, lower: ArrayLike, upper: ArrayLike, rows: ArrayLike, limits: ArrayLike) -> Property:
        """Return the property that ``rows @ f(x) <= limits`` on the whole box.

        Args:
            lower: Lower corner, (d,).
            upper: Upper corner, (d,).
            rows: Linear forms of the outputs, (q, k).
            limits: Their limits, (q,).

        >>> Property.box([0], [1], rows=[[1.0]], limits=[2.0]).violated_by([0.5], [2.1])
        True
        >>> Property.box([0], [1], rows=[[1.0]], limits=[2.0]).violated_by([0.5], [2.0])
        False
        """
        box = Box(lower, upper)
        forms = array("rows", rows)
        if forms.ndim != 2 or 0 in forms.shape or not np.isfinite(forms).all():
            raise ValueError(f"rows must be finite, (q, k), at least one of each; got {forms.shape}.")
        ends = vector("limits", limits, len(forms))
        # 0 - form: no zero is negative.
        unsafe = tuple(
            _strictly_below(box, 0.0 - form[None], -end[None])
            for form, end in zip(forms, ends, strict=True)
        )
        return cls(unsafe, (box.dim,), (forms.shape[1],))

    @classmethod
    def robust(
        cls,
        x: ArrayLike,
        label: int,
        radius: float,
        *,
        n_outputs: int,
        box: Box | tuple[ArrayLike, ArrayLike] | None = None,
        target: int | None = None,
    ) -> Property:
        """Return the property that one output is the largest on a ball around an input.

        A tie counts as a violation: ``y_label`` must be above each other output.

        Args:
            x: The input, of any shape.
            label: Which output is to be the largest, counted from 0.
            radius: Radius of the ball in the maximum norm.
            n_outputs: How many outputs there are.
            box: Cuts the ball: a Box or a pair of numbers or corners.
            target: The only output that is looked at beside ``label``; all, if it is left out.

        >>> print(Property.robust([0.5, 0.9], 0, 0.2, n_outputs=3, box=(0, 1)))
        for all 2 inputs in a box (0.3 <= x_1 <= 0.7, 0.7 <= x_2 <= 1): y_1 is the largest of 3 outputs
        """
        center = array("x", x).ravel()
        center = vector("x", center, len(center))
        r = positive("radius", radius, zero=True)
        k = integer("n_outputs", n_outputs, least=2)
        own = integer("label", label, least=0, most=k - 1)
        others = [j for j in range(k) if j != own]
        if target is not None:
            if target == own:
                raise ValueError(f"target must be another output than label; both are {label}.")
            others = [integer("target", target, least=0, most=k - 1)]
        ends = np.array(
            [add_down(center, -r), add_up(center, r), add_up(center, -r), add_down(center, r)]
        )
        if box is not None:
            cut = as_box(box, len(center))
            if not cut.contains(center):
                raise ValueError("x must lie in the box that cuts the ball.")
            ends[::2] = np.maximum(ends[::2], cut.lower)
            ends[1::2] = np.minimum(ends[1::2], cut.upper)
        low, high, inner_low, inner_high = ends
        rounded = not (np.array_equal(low, inner_low) and np.array_equal(high, inner_high))
        unsafe = []
        for j in others:
            row, limit = np.zeros((1, k)), np.zeros(1)
            row[0, own], row[0, j] = 1.0, -1.0
            inner = UnsafeSet(inner_low, inner_high, row, limit) if rounded else None
            unsafe.append(UnsafeSet(low, high, row, limit, inner=inner))
        above = f"the largest of {k} outputs" if target is None else f"above y_{others[0] + 1}"
        return cls(tuple(unsafe), (len(center),), (k,), text=f"y_{own + 1} is {above}")

    @classmethod
    def output_range(
        cls, box_lower: ArrayLike, box_upper: ArrayLike, lower: ArrayLike, upper: ArrayLike
    ) -> Property:
        """Return the property that ``lower <= f(x) <= upper`` on the whole box.

        Args:
            box_lower: Lower corner of the box, (d,).
            box_upper: Upper corner, (d,).
            lower: Least values of the outputs, (k,); ``-inf`` for none.
            upper: Largest values of the outputs, (k,); ``inf`` for none.

        >>> Property.output_range([0], [1], lower=[-1, 0], upper=[1, np.inf])
        Property(for all inputs in a box (0 <= x_1 <= 1): y_1 >= -1, y_1 <= 1, y_2 >= 0)
        """
        box, low, high = Box(box_lower, box_upper), array("lower", lower), array("upper", upper)
        if low.ndim != 1 or low.shape != high.shape or low.size == 0 or not (low <= high).all():
            raise ValueError(
                f"lower and upper must be (k,) with lower <= upper; got {low.shape} and {high.shape}."
            )
        unsafe = []
        for j, form in enumerate(np.eye(low.size)):
            if np.isfinite(low[j]):
                unsafe.append(_strictly_below(box, form[None], low[j : j + 1]))
            if np.isfinite(high[j]):
                unsafe.append(_strictly_below(box, 0.0 - form[None], -high[j : j + 1]))
        return cls(tuple(unsafe), (box.dim,), (low.size,))

    @classmethod
    def monotone(
        cls,
        lower: ArrayLike,
        upper: ArrayLike,
        *,
        input: int,
        output: int,
        n_outputs: int,
        increasing: bool = True,
        tol: float = 0.0,
    ) -> Property:
        r"""Return the property that an output never falls when one input grows and the others stay.

        .. math::
            x_i \ge x'_i, \; x_j = x'_j \; (j \ne i) \implies f_k(x) \ge f_k(x') - \tau .

        It is about two copies of one network. With :math:`\tau = 0` it can be refuted, not proved: where
        the two inputs are equal so are the outputs, and no rounded bound tells that from a fall.

        Args:
            lower: Lower corner of the box, (d,).
            upper: Upper corner, (d,).
            input: Which input grows, counted from 0.
            output: Which output must not fall, counted from 0.
            n_outputs: How many outputs there are.
            increasing: False if the output must not grow instead.
            tol: By how much it may fall, :math:`\tau`.

        >>> falls = Property.monotone([0, 0], [1, 1], input=0, output=0, n_outputs=1, increasing=False)
        >>> falls.violated_by([0.9, 0.5, 0.1], [[2.0], [1.0]])  # f(0.9, 0.5) = 2 and f(0.1, 0.5) = 1
        True
        >>> nearly = Property.monotone([0, 0], [1, 1], input=0, output=0, n_outputs=1, tol=0.5)
        >>> [nearly.violated_by([0.9, 0.5, 0.1], [[2.0], [y]]) for y in (2.5, 2.6)]
        [False, True]
        """
        box, k = Box(lower, upper), integer("n_outputs", n_outputs)
        i, j = (
            integer("input", input, least=0, most=box.dim - 1),
            integer("output", output, least=0, most=k - 1),
        )
        low, high = (np.append(corner, corner[i]) for corner in (box.lower, box.upper))
        sign = 1.0 if boolean("increasing", increasing) else -1.0
        rows, input_rows = np.zeros((2, 2 * k)), np.zeros((2, box.dim + 1))
        input_rows[0, i], input_rows[0, -1] = -1.0, 1.0
        rows[1, j], rows[1, k + j] = sign, -sign
        limits = np.array([0.0, 0.0 - positive("tol", tol, zero=True)])
        unsafe = UnsafeSet(low, high, rows, limits, input_rows, np.array([False, True]))
        own = np.arange(box.dim)
        moved = own.copy()
        moved[i] = box.dim
        more = f" by more than {tol:g}" if tol else ""
        text = f"y_{j + 1} never {'falls' if increasing else 'grows'}{more} when x_{i + 1} grows"
        return cls((unsafe,), (box.dim,) * 2, (k,) * 2, (own, moved), (0, 0), text)

    @classmethod
    def acas_xu(cls, number: int) -> Property:
        """Return property 1 to 10 of the ACAS Xu networks; see :mod:`pindown.verification.acas_xu`.

        >>> Property.acas_xu(2).text
        'COC has not the largest score (ACAS Xu 2)'
        """
        from pindown.verification.acas_xu import acas_xu

        return acas_xu(number)

    @classmethod
    def from_vnnlib(cls, path: str | PathLike[str]) -> Property:
        """Read a ``.vnnlib`` or ``.vnnlib.gz`` file; see :func:`pindown.verification.read_vnnlib`.

        >>> Property.from_vnnlib("missing.vnnlib")
        Traceback (most recent call last):
        pindown.errors.PropertyFileError: missing.vnnlib: there is no such file; check the path.
        """
        from pindown.verification.vnnlib import read_vnnlib

        return read_vnnlib(path)

    # ------------------------------------------------------------------ what it is

    @property
    def n_free(self) -> int:
        """Free inputs: the dimension of the unsafe sets."""
        if self.reads is None:
            return self.n_inputs[0]
        return 1 + max(int(part.max(initial=-1)) for part in self.reads)

    @property
    def n_models(self) -> int:
        """How many models it is about."""
        return 1 if self.models is None else 1 + max(self.models)

    def violated_by(self, x: ArrayLike, outputs: Any) -> bool:
        """Return whether an input with its outputs violates it, in rational arithmetic.

        Args:
            x: The free inputs, (d,).
            outputs: What the networks give there, (k,), or one array for each network.
        """
        point = vector("x", x, self.n_free)
        y = np.concatenate([np.ravel(array("outputs", part)) for part in outputs])
        y = vector("outputs", y, sum(self.n_outputs))
        lower, upper, which = self._boxes
        inside = np.all((point >= lower) & (point <= upper), axis=1)[which]
        return any(self.unsafe[int(i)].inside._reached(point, y) for i in np.flatnonzero(inside))

    @property
    def names(self) -> tuple[Sequence[str], Sequence[str]]:
        """What its words call the free inputs and the outputs; a prime is the second network.

        >>> Property.monotone([0], [1], input=0, output=0, n_outputs=1).names
        (['x_1', "x'_1"], ['y_1', "y'_1"])
        """
        from pindown.verification._property_words import named

        return named(self)

    def conditions(self, index: int) -> list[str]:
        """Return in words what holds in one of the unsafe sets, row by row; the box is left out.

        >>> Property.robust([0.5], 1, 0.2, n_outputs=3).conditions(0)
        ['y_1 >= y_2']
        """
        from pindown.verification._property_words import conditions

        return conditions(self, index)

    def one_of_each(self, given: Sequence[_T]) -> tuple[_T, ...]:
        """Return the models that it is about, where one was given for every network.

        Competitions name a file for each network, also for those that the property says are equal. What
        is repeated must be one object, or files with the same bytes.

        >>> pair = Property.monotone([0], [1], input=0, output=0, n_outputs=1)
        >>> pair.one_of_each(["f.onnx", "f.onnx"])
        ('f.onnx',)
        """
        models = self.models or (0,)
        if len(given) != len(models) or len(given) == self.n_models:
            return tuple(given)
        for one, m in zip(given, models, strict=True):
            if not _same_model(one, first := given[models.index(m)]):
                raise ValueError(
                    f"the property says that two networks are equal; {first} and {one} differ."
                )
        return tuple(given[models.index(m)] for m in range(self.n_models))

    def check_model(self, *models: Model | Any) -> None:
        """Refuse models that are not as many, or not of the sizes, that the property is about.

        >>> from pindown import ReluNetwork
        >>> net = ReluNetwork.from_layers([([[1.0, 2.0]], [0.0])])
        >>> Property.box([0], [1], rows=[[1.0]], limits=[2.0]).check_model(net)
        Traceback (most recent call last):
        ValueError: the property is about 1 input and 1 output; the model has 2 inputs and 1 output.
        """
        if len(models) != self.n_models:
            raise ValueError(
                f"the property is about {_count(self.n_models, 'model')}; got {len(models)}."
            )
        for i, sizes in enumerate(zip(self.n_inputs, self.n_outputs, strict=True)):
            which = 0 if self.models is None else self.models[i]
            found = models[which].in_features, models[which].out_features
            if found != sizes:
                name = "the model" if self.n_models == 1 else f"model {which + 1}"
                raise ValueError(f"the property is about {_sizes(*sizes)}; {name} has {_sizes(*found)}.")

    @cached_property
    def _boxes(self) -> tuple[Array, Array, NDArray[np.intp]]:
        """Corners of the different boxes that witnesses lie in, and which of them each set has."""
        parts = {(id(part.inside.lower), id(part.inside.upper)): part.inside for part in self.unsafe}
        number = {key: i for i, key in enumerate(parts)}
        which = [number[id(part.inside.lower), id(part.inside.upper)] for part in self.unsafe]
        lower, upper = np.empty((2, len(parts), self.n_free))
        for i, part in enumerate(parts.values()):
            lower[i], upper[i] = part.lower, part.upper
        return lower, upper, np.array(which, dtype=np.intp)

    _repr_html_ = card

    def __str__(self) -> str:
        from pindown.verification._property_words import described

        return described(self)

    def __repr__(self) -> str:
        return f"Property({self})"


def _strictly_below(box: Box, rows: Array, limits: Array) -> UnsafeSet:
    return UnsafeSet(box.lower, box.upper, rows, limits, strict=np.ones(len(limits), dtype=bool))


def _same_model(one: object, other: object) -> bool:
    """Return whether both are one object, or name files with the same bytes."""
    if one is other or not isinstance(one, (str, PathLike)) or not isinstance(other, (str, PathLike)):
        return one is other
    return Path(one) == Path(other) or _content(Path(one)) == _content(Path(other))


def _content(path: Path) -> bytes:
    try:
        return read_bytes(path)
    except ModelFileError as error:
        raise ModelFileError(f"{printable(str(path))}: {error}") from None


def _dot(row: Array, values: Array) -> Fraction:
    """Return a sum of products of float64, exactly."""
    used = np.flatnonzero(row)
    return sum((Fraction(row[i]) * Fraction(values[i]) for i in used), Fraction(0))


def _sizes(n_inputs: int, n_outputs: int) -> str:
    return f"{_count(n_inputs, 'input')} and {_count(n_outputs, 'output')}"


def _count(n: int, what: str) -> str:
    return f"{n:,} {what}" + ("" if n == 1 else "s")
