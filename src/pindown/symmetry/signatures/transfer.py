"""One view of a sample is enough if the orbits of templates are stored: where to pool, and its price."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import ArrayLike

from pindown.affine import Array
from pindown.symmetry.groups import Group
from pindown.symmetry.signatures.projections import as_vectors
from pindown.validation import is_integer

Response = Callable[[Array], Any]


@dataclass(frozen=True)
class PoolingCost:
    """What it takes to compute signatures of n samples in two ways.

    Attributes:
        stored: Numbers kept when template orbits are stored.
        stored_products: Multiplications per sample then.
        moved: Numbers kept when samples are moved instead.
        moved_products: Multiplications per sample then, those of moving it included.
        kind: ``"exact"``: counts for dense matrices.
    """

    stored: int
    stored_products: int
    moved: int
    moved_products: int
    kind: str = "exact"

    def __str__(self) -> str:
        return (
            f"stored template orbits: {self.stored} numbers, {self.stored_products} multiplications per "
            f"sample; moved samples: {self.moved} numbers, {self.moved_products} multiplications."
        )


def pool_over_inputs(x: ArrayLike, t: ArrayLike, group: Group, eta: Response) -> float:
    r"""Pool the responses of one template to all images of a sample.

    .. math:: \frac{1}{|G|} \sum_g \eta(\langle g x, t \rangle)

    Args:
        x: A sample, (d,).
        t: A template, (d,).
        group: The group.
        eta: A function of arrays.

    >>> from pindown.symmetry.groups import cyclic
    >>> pool_over_inputs([1.0, 2.0, 3.0], [1.0, 0.0, 0.0], cyclic(3), np.square)
    4.666666666666667

    Lecture course, section on transferability.
    """
    sample, template = as_vectors(group, x, t)
    return float(np.mean(eta(group.orbit(sample) @ template)))


def pool_over_templates(
    x: ArrayLike, t: ArrayLike, group: Group, eta: Response, *, adjoint: bool = False
) -> float:
    r"""Pool the responses of a template's orbit to one sample.

    .. math:: \frac{1}{|G|} \sum_g \eta(\langle x, g t \rangle)

    It equals :func:`pool_over_inputs` if the action is orthogonal. If it is not, the transposed matrices
    must move the template: ``adjoint=True``.

    Args:
        x: A sample, (d,).
        t: A template, (d,).
        group: The group.
        eta: A function of arrays.
        adjoint: Whether the template is moved by the transposed matrices.

    >>> from pindown.symmetry.groups import cyclic
    >>> pool_over_templates([1.0, 2.0, 3.0], [1.0, 0.0, 0.0], cyclic(3), np.square)
    4.666666666666667

    Lecture course, section on transferability.
    """
    sample, template = as_vectors(group, x, t)
    orbit = template @ group.matrices if adjoint else group.orbit(template)
    return float(np.mean(eta(orbit @ sample)))


def pooling_cost(n_templates: int, order: int, n_features: int) -> PoolingCost:
    r"""Count what storing template orbits and what moving samples costs.

    Stored orbits hold :math:`K |G| d` numbers and need as many multiplications per sample. Moving the
    sample needs the group's matrices, :math:`|G| d^2` numbers and multiplications, and then
    :math:`K |G| d` more.

    Args:
        n_templates: K.
        order: :math:`|G|`.
        n_features: d.

    >>> cost = pooling_cost(20, 8, 64)
    >>> cost.stored_products, cost.moved_products
    (10240, 43008)

    Lecture course, section on transferability (cost model ours).
    """
    for name, value in (("n_templates", n_templates), ("order", order), ("n_features", n_features)):
        if not is_integer(value):
            raise ValueError(f"{name} must be a whole number of at least 1; got {value!r}.")
    products = n_templates * order * n_features
    return PoolingCost(
        stored=products,
        stored_products=products,
        moved=order * n_features**2 + n_templates * n_features,
        moved_products=order * n_features**2 + products,
    )
