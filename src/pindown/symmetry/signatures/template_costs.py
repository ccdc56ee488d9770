"""What templates cost: how many make distances trustworthy, and where to pool.

One view of a sample is enough if the orbits of templates are stored.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import ArrayLike

from pindown.affine import Array
from pindown.evidence import Kind
from pindown.symmetry.groups import Group
from pindown.symmetry.signatures.projections import (
    Projector,
    as_samples,
    as_vectors,
    check_degree,
    unit_templates,
)
from pindown.symmetry.signatures.readouts import apply_nonlinearity, pooled
from pindown.symmetry.tuning import TEMPLATES_AT_ONCE
from pindown.validation import choice, integer, positive, probability

_BOUNDED = ("step", "sigmoid")  # responses in [0, 1], which the inequality needs
Response = Callable[[Array], Any]


@dataclass(frozen=True)
class TemplateSimulation:
    r"""How often a number of templates was too small, beside the probability that a theorem allows.

    Attributes:
        n_templates: How many templates, K.
        failures: Repeats in which some pair's distance was off by more than ``eps``.
        repeats: How many sets of templates were drawn.
        allowed: The theorem's bound on the probability of a failure, :math:`\delta^2`.
        largest: The largest deviation over all repeats and pairs.
        smallest_limit: The smallest distance of a pair with all templates: zero means not selective.
        kind: ``"estimate"``: the limit is a mean over many templates.
    """

    n_templates: int
    failures: int
    repeats: int
    allowed: float
    largest: float
    smallest_limit: float
    kind: Kind = "estimate"

    def __str__(self) -> str:
        return (
            f"{self.failures} of {self.repeats} draws of {self.n_templates} templates failed (allowed: "
            f"a share of {self.allowed:.3g}); largest deviation {self.largest:.3g}, smallest distance "
            f"in the limit {self.smallest_limit:.3g}."
        )


def templates_needed(n_orbits: int, eps: float, delta: float, *, c: float = 2.0) -> int:
    r"""The number of templates after which distances of signatures are near their limit.

    .. math:: K \ge \frac{2}{c \epsilon^2} \ln\frac{Q}{\delta}
              \quad\Rightarrow\quad |D_K - D_\infty| \le \epsilon \text{ for all pairs of Q samples}

    with probability at least :math:`1 - \delta^2`. For responses in [0, 1] pooled by their mean
    Hoeffding's inequality and a union over the pairs give c = 2; for sums divide eps by the order of
    the group first. The statement says nothing on whether :math:`D_\infty` is positive for samples of
    different orbits.

    Args:
        n_orbits: Q, the number of samples, one per orbit.
        eps: The deviation to allow, in (0, 1).
        delta: In (0, 1); its square is the probability of failure.
        c: The constant of the inequality.

    Returns:
        K.

    >>> templates_needed(10, eps=0.1, delta=0.1)
    461

    Lecture course, theorem on the number of templates (constant derived; its equivalence dropped).
    """
    integer("n_orbits", n_orbits)
    probability("eps", eps)
    probability("delta", delta)
    positive("c", c)
    return math.ceil(2.0 / (c * eps**2) * math.log(n_orbits / delta))


def signature_distance(first: ArrayLike, second: ArrayLike) -> float:
    r"""The mean absolute difference of two signatures.

    .. math:: D_K(x, x') = \frac{1}{K} \sum_k |\mu_{t_k}(x) - \mu_{t_k}(x')|

    Args:
        first: One signature.
        second: Another of the same length.

    >>> signature_distance([0.0, 1.0], [0.5, 0.5])
    0.5

    Lecture course, theorem on the number of templates.
    """
    a, b = np.asarray(first, dtype=float), np.asarray(second, dtype=float)
    if a.shape != b.shape or a.ndim != 1 or a.size == 0:
        raise ValueError(f"signatures must be vectors of one length; got {a.shape} and {b.shape}.")
    return float(np.abs(a - b).mean())


def simulate_templates(
    X: ArrayLike,
    group: Group,
    *,
    eps: float = 0.1,
    delta: float = 0.1,
    threshold: float = 0.0,
    nonlinearity: str = "step",
    repeats: int = 100,
    limit_templates: int = 20_000,
    random_state: int = 0,
) -> TemplateSimulation:
    r"""Draw the number of templates the theorem asks for, many times, and count failures.

    Args:
        X: One sample per orbit, (Q, d).
        group: A group that acts on them.
        eps: The deviation allowed.
        delta: The theorem's probability of failure is its square.
        threshold: b in the response :math:`\sigma(u - b)` to unit templates.
        nonlinearity: ``"step"`` or ``"sigmoid"``: a response in [0, 1], which the theorem needs.
        repeats: How many draws.
        limit_templates: How many templates stand for infinitely many.
        random_state: Seed of the templates.

    >>> from pindown.symmetry.groups import cyclic
    >>> simulate_templates(np.eye(8)[:2] + 0.1, cyclic(8), eps=0.2, threshold=0.2, repeats=20).failures
    0

    Lecture course, theorem on the number of templates.
    """
    samples = as_samples(X)
    check_degree(group, samples.shape[1])
    choice("nonlinearity", nonlinearity, _BOUNDED)
    integer("limit_templates", limit_templates)
    integer("repeats", repeats, least=0)
    count = templates_needed(len(samples), eps, delta)
    rng = np.random.default_rng(random_state)
    done, limit = 0, np.zeros((len(samples), len(samples)))
    while done < limit_templates:
        block = min(TEMPLATES_AT_ONCE, limit_templates - done)
        limit += block * _distances(samples, group, block, threshold, nonlinearity, rng)
        done += block
    limit /= done
    deviations = [
        float(np.abs(_distances(samples, group, count, threshold, nonlinearity, rng) - limit).max())
        for _ in range(repeats)
    ]
    pairs = limit[~np.eye(len(samples), dtype=bool)]
    return TemplateSimulation(
        n_templates=count,
        failures=sum(deviation > eps for deviation in deviations),
        repeats=repeats,
        allowed=delta**2,
        largest=max(deviations, default=0.0),
        smallest_limit=float(pairs.min()) if pairs.size else 0.0,
    )


def _distances(
    X: Array, group: Group, count: int, threshold: float, nonlinearity: str, rng: np.random.Generator
) -> Array:
    """The distances of all pairs with fresh templates, (Q, Q)."""
    projections = Projector(unit_templates(count, X.shape[1], rng), group)(X)
    responses = pooled(apply_nonlinearity(projections - threshold, nonlinearity), "mean")
    return np.abs(responses[:, None] - responses[None]).mean(axis=2)


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
    kind: Kind = "exact"

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
        n_templates: How many templates, K.
        order: Elements of the group, :math:`|G|`.
        n_features: Numbers in a sample, d.

    >>> cost = pooling_cost(20, 8, 64)
    >>> cost.stored_products, cost.moved_products
    (10240, 43008)

    Lecture course, section on transferability (cost model ours).
    """
    integer("n_templates", n_templates)
    integer("order", order)
    integer("n_features", n_features)
    products = n_templates * order * n_features
    return PoolingCost(
        stored=products,
        stored_products=products,
        moved=order * n_features**2 + n_templates * n_features,
        moved_products=order * n_features**2 + products,
    )
