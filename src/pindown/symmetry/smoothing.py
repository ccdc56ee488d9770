r"""Make any model invariant, or equivariant, by averaging it over a group.

.. math:: S_Gf(x) = \frac1{|G|} \sum_g \rho(g)^{-1} f(gx), \qquad \rho = 1 \text{ for invariance.}

:math:`S_G` is a projection: it leaves invariant functions alone, and doing it twice changes nothing. If
the data are as likely to be moved as not and the truth is invariant, it never hurts:
:math:`E|f - f_*|^2 - E|S_Gf - f_*|^2 = E\,\mathrm{Var}_g f(gx)`.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from typing import Any

import numpy as np
from numpy.typing import ArrayLike

from pindown.affine import Array
from pindown.symmetry.groups import Group
from pindown.validation import is_integer


@dataclass(frozen=True, eq=False)
class GroupAverage:
    """A function averaged over a group, or over some of its elements.

    Attributes:
        model: Maps samples ``(n, ...)`` to outputs ``(n, ...)``.
        group: The group with its action on samples.
        output_rep: The group with its action on outputs; None for invariance.
        elements: Indices of the elements that are averaged over.

    >>> from pindown.symmetry import cyclic
    >>> average = smoothed(lambda X: X[:, 0], cyclic(3))
    >>> print(average)
    average over all 3 elements of C3: invariant (exact)
    >>> average([[1.0, 2.0, 6.0], [6.0, 1.0, 2.0]]).tolist()
    [3.0, 3.0]

    Lecture course, section on invariant function classes.
    """

    model: Callable[[Array], Any] = field(repr=False)
    group: Group
    output_rep: Group | None
    elements: tuple[int, ...]

    @property
    def kind(self) -> str:
        """``"exact"`` if all elements are averaged over and the action is exact, else ``"estimate"``."""
        return kind_of_average(self.group, self.elements)

    def __call__(self, X: ArrayLike) -> Array:
        """Return the averaged outputs."""
        samples = np.asarray(X, dtype=float)
        total: Any = 0.0
        for g in self.elements:
            # Turned pictures have negative strides, which torch refuses.
            moved = np.ascontiguousarray(self.group.act(g, samples))
            outputs = _array(self.model(moved))
            if self.output_rep is not None:
                outputs = self.output_rep.act(int(self.group.inverses[g]), outputs)
            total = total + outputs
        return np.asarray(total) / len(self.elements)

    def __str__(self) -> str:
        what = "invariant" if self.output_rep is None else "equivariant"
        if self.kind == "exact":
            return f"average over all {self.group.order} elements of {self.group.name}: {what} (exact)"
        return (
            f"average over {len(self.elements)} of the {self.group.order} elements of "
            f"{self.group.name}: nearly {what} (estimate)"
        )


def smoothed(
    model: Any,
    group: Group,
    output_rep: Group | None = None,
    *,
    elements: Sequence[int] | None = None,
    n_elements: int | None = None,
    random_state: int = 0,
) -> Any:
    r"""Return a model averaged over a group: invariant, or equivariant if outputs move too.

    Args:
        model: A function of samples, or a torch module (which stays one, with gradients; its group must
            act by matrices). For scikit-learn see :class:`GroupSmoothed`.
        group: The group with its action on inputs.
        output_rep: The same group with its action on outputs; None to make the model invariant.
        elements: Indices of elements to average over, for a part of the group; None for all.
        n_elements: Average over so many elements drawn without replacement: then the symmetry holds
            only up to an error that falls with the square root of their number.
        random_state: Seed of the draw.

    Returns:
        A :class:`GroupAverage`, or a torch module.

    Raises:
        ValueError: If the groups differ or the elements are not of the group.
        TypeError: If the model cannot be called.

    Example:
        >>> from pindown.symmetry import dihedral
        >>> square = dihedral(4).permuting()
        >>> smoothed(np.sort, square, square)([[4.0, 1.0, 3.0, 2.0]]).round(9).tolist()
        [[2.5, 2.5, 2.5, 2.5]]

    Lecture course, section on invariant function classes.
    """
    if output_rep is not None and not np.array_equal(group.table, output_rep.table):
        raise ValueError(
            f"inputs and outputs must move by one group; got {group.name} and {output_rep.name}."
        )
    chosen = chosen_elements(group, elements, n_elements, random_state)
    if hasattr(model, "forward") and hasattr(model, "register_buffer"):
        from pindown.symmetry.layers.smoothed import SmoothedModule

        return SmoothedModule(model, group, output_rep, chosen)
    if not callable(model):
        raise TypeError(
            f"model must be a function or a torch module; got {type(model).__name__}. Estimators go "
            f"into GroupSmoothed."
        )
    return GroupAverage(model, group, output_rep, chosen)


def orbit_variance(model: Callable[[Array], Any], group: Group, X: ArrayLike) -> Array:
    r"""Return :math:`\mathrm{Var}_g f(gx)` at each sample: what smoothing takes off the squared error.

    >>> from pindown.symmetry import cyclic
    >>> orbit_variance(lambda X: X[:, 0], cyclic(2), [[1.0, 3.0], [2.0, 2.0]]).tolist()
    [1.0, 0.0]

    Lecture course, section on invariant function classes; the identity is ours.
    """
    samples = np.asarray(X, dtype=float)
    moved = (np.ascontiguousarray(group.act(g, samples)) for g in range(group.order))
    outputs = np.stack([_array(model(images)) for images in moved])
    spread = outputs.var(axis=0)
    return spread.reshape(len(samples), -1).sum(axis=1)


def kind_of_average(group: Group, elements: Sequence[int]) -> str:
    """Return ``"exact"`` for every element once, moved by an exact action, else ``"estimate"``.

    >>> from pindown.symmetry import cyclic
    >>> kind_of_average(cyclic(3), (0, 1, 2)), kind_of_average(cyclic(3), (0, 1))
    ('exact', 'estimate')
    """
    whole = sorted(elements) == list(range(group.order))
    return "exact" if whole and not group.approximate else "estimate"


def chosen_elements(
    group: Group, elements: Sequence[int] | None, n_elements: int | None, random_state: Any
) -> tuple[int, ...]:
    """Return the indices to average over, or say what is wrong with them."""
    if elements is not None and n_elements is not None:
        raise ValueError("give elements or n_elements, not both.")
    if elements is not None:
        given = np.asarray(elements)
        whole = given.ndim == 1 and given.size and given.dtype.kind in "iu"
        inside = whole and given.min() >= 0 and given.max() < group.order
        if not inside or len(np.unique(given)) < len(given):
            raise ValueError(
                f"elements must be indices of {group.name}, 0 to {group.order - 1}, each once; got "
                f"{elements!r}."
            )
        return tuple(given.tolist())
    if n_elements is None:
        return tuple(range(group.order))
    if not is_integer(n_elements):
        raise ValueError(f"n_elements must be a whole number of at least 1; got {n_elements!r}.")
    if n_elements >= group.order:
        return tuple(range(group.order))
    drawn = np.random.default_rng(random_state).choice(group.order, int(n_elements), replace=False)
    return tuple(sorted(drawn.tolist()))


def _array(outputs: Any) -> Array:
    return np.asarray(outputs.detach().cpu() if hasattr(outputs, "detach") else outputs, dtype=float)
