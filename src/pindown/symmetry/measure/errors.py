"""Invariance and equivariance of any model, measured on samples, with a scale to read errors against."""

from __future__ import annotations

from collections.abc import Hashable, Iterable, Iterator, Sequence
from dataclasses import dataclass, field
from typing import Any, Literal

import numpy as np
from numpy.typing import ArrayLike, NDArray

from pindown.symmetry.groups import Group
from pindown.symmetry.measure.differences import output_spread, squared_differences
from pindown.symmetry.measure.families import Family, as_samples, require_family, without_identity
from pindown.symmetry.measure.models import Array, as_function, untrained_copy
from pindown.validation import is_integer

# Errors of untrained copies are averaged over elements; beyond this many a draw tells enough.
_ELEMENTS_FOR_COPIES = 24
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
        standard_error: Of ``error``, over samples; NaN for a single sample.
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
    kind: Literal["estimate"] = "estimate"

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
    def assumptions(self) -> tuple[str, ...]:
        """What the number rests on."""
        return (
            f"measured on {self.n} samples: others may show more",
            f"the scale is {self.reference}",
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
        seed: For these draws.

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
    samples = as_samples(X)
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
        seed: For these draws.

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
    samples = as_samples(X)
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
    differences, outputs = squared_differences(as_function(model), moved, answer, X)
    counted = without_identity(moved)
    per_sample = differences[counted].mean(axis=0)
    error, spread = float(np.sqrt(per_sample.mean())), output_spread(outputs)
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
    if len(chosen) > _ELEMENTS_FOR_COPIES:
        chosen = np.sort(rng.choice(chosen, _ELEMENTS_FOR_COPIES, replace=False))
    shown = []
    for fresh in _copies(model, copies, rng):
        differences, outputs = squared_differences(as_function(fresh), moved, answer, X, chosen)
        spread = output_spread(outputs)
        if spread > 0.0:  # a copy whose units are all off tells nothing
            shown.append(float(np.sqrt(differences.mean())) / spread)
    # A design that keeps the symmetry whatever its weights leaves no scale but the spread itself.
    return tuple(shown) if any(value > _DESIGNED for value in shown) else ()


def _copies(model: Any, copies: int | Sequence[Any], rng: np.random.Generator) -> Iterator[Any]:
    if isinstance(copies, Iterable) and not isinstance(copies, str):
        yield from copies
        return
    if not is_integer(copies, 0):
        raise ValueError(f"copies must be a whole number from 0, or models; got {copies!r}.")
    for _ in range(int(copies)):
        fresh = untrained_copy(model, rng)
        if fresh is not None:
            yield fresh
