"""Invariance and equivariance of any model, measured on samples, with a scale to read errors against.

What training did to a symmetry is the same measure before and after.
"""

from __future__ import annotations

from collections.abc import Callable, Hashable, Iterable, Iterator, Sequence
from dataclasses import dataclass, field
from typing import Any, Literal

import numpy as np
from numpy.typing import ArrayLike, NDArray

from pindown.affine import Array
from pindown.evidence import Assumption, Kind
from pindown.symmetry.families import Family, finite_samples, require_family, without_identity
from pindown.symmetry.groups import Group
from pindown.symmetry.measure.models import as_function, untrained_copy
from pindown.symmetry.tuning import ELEMENTS_FOR_COPIES
from pindown.validation import is_integer, refuse

# Untrained copies below this share of their spread keep the symmetry by design, up to rounding.
_DESIGNED = 1e-5


@dataclass(frozen=True, eq=False)
class SymmetryError:
    r"""How far a model is from keeping a symmetry, on given samples.

    Attributes:
        error: Root mean square of :math:`\|f(gx) - \rho(g) f(x)\|_2` over samples and elements other
            than the identity; :math:`\rho(g) = 1` for invariance.
        scale: The error that the same architecture shows with freshly drawn weights, brought to the
            spread of this model's outputs; where no copy can be drawn, that spread itself.
        spread: Root mean square distance between the outputs of two different samples; of a single one
            the length of its output.
        per_element: The error of each element, in the order of ``elements``.
        elements: Labels of the elements.
        worst: The largest difference of any sample and element.
        standard_error: Standard error of ``error``, over samples; NaN for a single sample.
        untrained: Error divided by spread of each freshly drawn copy; empty if none can be drawn.
        n: How many samples.
        family: Name of the group.
        question: ``"invariance"`` or ``"equivariance"``.
        kind: Always ``"estimate"``: other samples may show more.
    """

    error: float
    scale: float
    spread: float
    per_element: NDArray[np.float64] = field(repr=False)
    elements: tuple[Hashable, ...] = field(repr=False)
    worst: float
    standard_error: float
    untrained: tuple[float, ...] = field(repr=False)
    n: int
    family: str
    question: Literal["invariance", "equivariance"]
    kind: Kind = "estimate"

    @property
    def relative(self) -> float:
        """Error divided by scale: 0 is exact, 1 is no better than without learning or design."""
        if self.error == 0.0:
            return 0.0
        return self.error / self.scale if self.scale else np.inf

    @property
    def reference(self) -> str:
        """What the scale is, in words."""
        if self.untrained:
            return f"what {len(self.untrained)} untrained copies show"
        if self.n == 1:
            return "the length of the only output"
        return "the distance between outputs of different samples"

    @property
    def assumptions(self) -> tuple[Assumption, ...]:
        """What the number rests on."""
        return (
            Assumption(f"measured on {self.n} samples: others may show more"),
            Assumption(f"the scale is {self.reference}"),
        )

    @property
    def worst_element(self) -> Hashable:
        """The element with the largest error."""
        return self.elements[int(self.per_element.argmax())]

    def __str__(self) -> str:
        noise = "" if self.n == 1 else f" ± {self.standard_error:.1g}"
        return (
            f"{self.question} under {self.family}: error {self.error:.3g}{noise}, "
            f"{self.relative:.3g} of {self.reference} ({self.scale:.3g}); worst element "
            f"{self.worst_element} ({self.kind}, n = {self.n:,})"
        )


def invariance(
    model: Any, group: Family, X: ArrayLike, *, copies: int | Sequence[Any] = 5, seed: int = 0
) -> SymmetryError:
    r"""Measure how far :math:`f(g x) = f(x)` is from holding.

    Args:
        model: Any function of arrays, a :class:`~pindown.network.ReluNetwork`, a torch module or a
            fitted scikit-learn estimator.
        group: A group with its action on the samples, a window of one, or other transformations.
        X: Samples ``(n, ...)`` as the group moves them: rows for matrices, images for image actions.
        copies: How many untrained copies to draw for the scale, where the model allows it; or models
            of your own that stand for no learning.
        seed: Seed of these copies.

    Returns:
        The error, its scale, and the error of every element.

    Raises:
        ValueError: If the samples do not fit the action or the model, or are not finite.
        TypeError: If the model or the group is none.

    >>> from pindown.symmetry import cyclic
    >>> X = np.array([[1.0, 2.0, 4.0], [0.0, 5.0, 1.0]])
    >>> invariance(np.sort, cyclic(3), X).error
    0.0
    >>> first = invariance(lambda X: X[:, 0], cyclic(3), X)
    >>> round(first.error, 3), first.scale, first.per_element.round(2).tolist()
    (3.0, 1.0, [0.0, 2.24, 3.61])

    Lecture course, slides on invariance and selectivity.
    """
    samples = finite_samples(X)
    require_family(group)
    return _measure(model, group, None, samples, copies, seed)


def equivariance(
    model: Any,
    group_in: Family,
    group_out: Any,
    X: Any = None,
    *,
    copies: int | Sequence[Any] = 5,
    seed: int = 0,
) -> SymmetryError:
    r"""Measure how far :math:`f(g x) = \rho(g) f(x)` is from holding.

    Args:
        model: As for :func:`invariance`.
        group_in: The group with its action on samples.
        group_out: The same group, its elements in the same order, with its action on outputs; leave it
            out, ``equivariance(model, group, X)``, if both actions are the same.
        X: Samples ``(n, ...)``.
        copies: As for :func:`invariance`.
        seed: Seed of these copies.

    >>> from pindown.symmetry import cyclic
    >>> X = np.array([[1.0, 2.0, 4.0], [0.0, 5.0, 1.0]])
    >>> equivariance(np.tanh, cyclic(3), X).error
    0.0
    >>> equivariance(np.sort, cyclic(3), X).error > 1
    True

    Lecture course, slides on convolution and equivariance.
    """
    if X is None:
        group_out, X = group_in, group_out
    samples = finite_samples(X)
    for family in (group_in, group_out):
        require_family(family)
    one = group_in.order == group_out.order
    if isinstance(group_in, Group) and isinstance(group_out, Group):
        one = np.array_equal(group_in.table, group_out.table)
    if not one:
        raise ValueError(
            f"both actions are of one group, elements in one order; got {group_in.order} elements of "
            f"{group_in.name} for inputs, {group_out.order} of {group_out.name} for outputs."
        )
    return _measure(model, group_in, group_out, samples, copies, seed)


def _measure(
    model: Any, moved: Family, answer: Family | None, X: Array, copies: int | Sequence[Any], seed: int
) -> SymmetryError:
    differences, outputs = _squared_differences(as_function(model), moved, answer, X)
    counted = without_identity(moved)
    per_sample = differences[counted].mean(axis=0)
    error, spread = float(np.sqrt(per_sample.mean())), _output_spread(outputs)
    untrained = _untrained(model, moved, answer, X, copies, seed)
    noise = per_sample.std(ddof=1) / np.sqrt(len(X)) if len(X) > 1 else np.nan
    return SymmetryError(
        error=error,
        scale=spread * float(np.mean(untrained)) if untrained else spread,
        spread=spread,
        per_element=np.sqrt(differences.mean(axis=1)),
        elements=tuple(moved.elements),
        worst=float(np.sqrt(differences.max())),
        standard_error=float(noise / (2.0 * error)) if error else float(noise),
        untrained=untrained,
        n=len(X),
        family=moved.name,
        question="invariance" if answer is None else "equivariance",
    )


def _untrained(
    model: Any, moved: Family, answer: Family | None, X: Array, copies: int | Sequence[Any], seed: int
) -> tuple[float, ...]:
    rng = np.random.default_rng(seed)
    chosen = without_identity(moved)
    if len(chosen) > ELEMENTS_FOR_COPIES:
        chosen = np.sort(rng.choice(chosen, ELEMENTS_FOR_COPIES, replace=False))
    shown = []
    for fresh in _copies(model, copies, rng):
        differences, outputs = _squared_differences(as_function(fresh), moved, answer, X, chosen)
        spread = _output_spread(outputs)
        if spread > 0.0:  # a copy whose units are all off tells nothing
            shown.append(float(np.sqrt(differences.mean())) / spread)
    # A design that keeps the symmetry whatever its weights leaves no scale but the spread itself.
    return tuple(shown) if any(value > _DESIGNED for value in shown) else ()


def _copies(model: Any, copies: int | Sequence[Any], rng: np.random.Generator) -> Iterator[Any]:
    if isinstance(copies, Iterable) and not isinstance(copies, str):
        yield from copies
        return
    if not is_integer(copies, 0):
        refuse("copies", "an integer of at least 0, or models", copies)
    for _ in range(int(copies)):
        fresh = untrained_copy(model, rng)
        if fresh is not None:
            yield fresh


def _squared_differences(
    function: Callable[[Array], Array],
    moved: Family,
    answer: Family | None,
    X: Array,
    chosen: NDArray[np.int64] | None = None,
) -> tuple[Array, Array]:
    """Return squared differences (elements, samples), and the outputs of the samples as they are."""
    outputs = function(X)
    rows = []
    for index in range(moved.order) if chosen is None else chosen.tolist():
        images = moved.act(index, X)
        if len(images) != len(X):
            raise ValueError(
                f"{moved.name} must keep the number of samples; {len(X)} became {len(images)}."
            )
        wanted = outputs if answer is None else answer.act(index, outputs)
        found = function(images)
        if found.shape != wanted.shape:
            raise ValueError(
                f"outputs must keep their shape; {wanted.shape} became {found.shape} under {moved.name}."
            )
        rows.append(np.sum((found - wanted).reshape(len(X), -1) ** 2, axis=1))
    return np.array(rows), outputs


def _output_spread(outputs: Array) -> float:
    r"""Return the root mean square distance of two samples' outputs, :math:`\sqrt{2\,\mathrm{tr}\,C}`.

    One sample has no spread: the length of its output stands in.

    >>> _output_spread(np.array([[0.0], [3.0]]))
    3.0
    """
    rows = outputs.reshape(len(outputs), -1)
    if len(rows) == 1:
        return float(np.linalg.norm(rows))
    return float(np.sqrt(2.0 * rows.var(axis=0, ddof=1).sum()))


@dataclass(frozen=True, eq=False)
class SymmetryChange:
    """What training did to a symmetry.

    Attributes:
        before: The error of the model before training.
        after: The error of the model after it.
    """

    before: SymmetryError
    after: SymmetryError

    @property
    def ratio(self) -> float:
        """Error per spread of outputs, after divided by before: below one training learned symmetry.

        Two models without any error are as symmetric as each other, 1.
        """
        first, second = _per_spread(self.before), _per_spread(self.after)
        if first == second:
            return 1.0
        return second / first if first else np.inf

    def __str__(self) -> str:
        factor = max(self.ratio, 1 / self.ratio if self.ratio else np.inf)
        words = f"{'less' if self.ratio > 1 else 'more'} symmetric by a factor of {factor:.3g}"
        return (
            f"{self.before.question} under {self.before.family}: {_per_spread(self.before):.3g} of the "
            f"spread of outputs before training, {_per_spread(self.after):.3g} after; "
            f"{'as symmetric as before' if self.ratio == 1 else words} (estimate, n = {self.after.n:,})"
        )


def symmetry_change(
    before: Any, after: Any, group: Family, X: ArrayLike, *, group_out: Family | None = None
) -> SymmetryChange:
    """Measure one symmetry of a model before and after training, each against its own spread.

    Args:
        before: The model before training.
        after: The model after it.
        group: The group with its action on samples.
        X: Samples.
        group_out: The action on outputs; without it invariance is measured.

    >>> from pindown.symmetry import cyclic
    >>> X = np.array([[1.0, 2.0], [4.0, 3.0]])
    >>> change = symmetry_change(lambda X: X[:, 0], lambda X: X.sum(axis=1), cyclic(2), X)
    >>> change.ratio
    0.0
    """
    if group_out is None:
        return SymmetryChange(
            invariance(before, group, X, copies=0), invariance(after, group, X, copies=0)
        )
    return SymmetryChange(
        equivariance(before, group, group_out, X, copies=0),
        equivariance(after, group, group_out, X, copies=0),
    )


def _per_spread(found: SymmetryError) -> float:
    if found.error == 0.0:
        return 0.0
    return found.error / found.spread if found.spread else np.inf
