r"""How nearly critical the dictionary is: gradients near it, against the explicit bounds of the proof.

Every unit is on with probability :math:`q_1 = k/h`, so that any weights have gradients of that order.
The theorem's content is that :math:`\lVert E\, \partial L / \partial W_i \rVert / q_1` goes to zero.

The proof writes the proxy gradient as :math:`\alpha_i W_i - \beta_i A_i + e_i` (unit, atom, rest), with
:math:`B_{jk} = \langle W_j, A_k \rangle` and :math:`D_{ij} = \langle W_i, W_j \rangle`, sums over the
support.

Mukherjee 2020, Theorem 4.3.2 and section 4.5.1.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from math import sqrt

import numpy as np
from numpy.typing import ArrayLike

from pindown.affine import Array
from pindown.datasets.sparse_codes import SparseCodingModel
from pindown.learn.sparse_coding.proxy_gradients import (
    a_unit,
    proxy_gradient,
    supports_with,
    weights_and_thresholds,
)


@dataclass(frozen=True)
class CriticalityBounds:
    r"""Bounds that hold for all weights within delta of the atoms.

    Attributes:
        alpha_low: Lower bound on the part of :math:`\alpha_i` with the second moment.
        alpha_high: Upper bound on it.
        rest: Upper bound on the norm of the part of :math:`e_i` with the second moment.
        weights_sum: Upper bound on :math:`q_2 \langle W_i, A_i \rangle
            \lVert \sum_{j \ne i} \langle W_j, A_j \rangle W_j \rVert` (the vector a).
        atoms_sum: Upper bound on :math:`q_2 \lVert W_i \rVert^2 \langle W_i, A_i\rangle
            \lVert \sum_{j \ne i} A_j \rVert` (the vector b).
    """

    alpha_low: float
    alpha_high: float
    rest: float
    weights_sum: float
    atoms_sum: float


@dataclass(frozen=True)
class Criticality:
    """Proxy gradients of some units.

    Attributes:
        n_atoms: h.
        inclusion: Probability q1 that a unit is on.
        gradient_norm: Mean norm of the gradients.
        relative: The same divided by q1 and by max(m1^2, m2), as in the theorem.
        cosine: Mean cosine between minus the gradient and the way to the atom; NaN at the atoms.
    """

    n_atoms: int
    inclusion: float
    gradient_norm: float
    relative: float
    cosine: float

    def __str__(self) -> str:
        return (
            f"h = {self.n_atoms}: gradient norm {self.gradient_norm:.3g}, {self.relative:.3g} of its "
            f"natural size q1 max(m1^2, m2); cosine to the way to the atom {self.cosine:.3g}"
        )


def measure_criticality(
    model: SparseCodingModel,
    W: ArrayLike,
    threshold: ArrayLike,
    units: Iterable[int] | None = None,
) -> Criticality:
    r"""Return the size and direction of the proxy gradients, in closed form.

    Args:
        model: The generative model.
        W: Weights (h, n).
        threshold: :math:`\epsilon`, one number or one per unit.
        units: Which units; None for all.

    Example:
        >>> model = SparseCodingModel(np.eye(3), 1, low=1.0, high=1.0)
        >>> print(measure_criticality(model, 1.1 * np.eye(3), 0.0))
        h = 3: gradient norm 0.154, 0.462 of its natural size q1 max(m1^2, m2); cosine to the way to the
        atom 1

    Mukherjee 2020, Theorem 4.3.2, with the gradient replaced by its proxy (Lemma 4.5.1).
    """
    V, eps = weights_and_thresholds(model, W, threshold)
    chosen = list(range(model.n_atoms) if units is None else units)
    G = proxy_gradient(model, V, eps, chosen)
    norms = np.linalg.norm(G, axis=1)
    way = model.dictionary.T[chosen] - V[chosen]
    lengths = norms * np.linalg.norm(way, axis=1)
    turned = -np.einsum("ij,ij->i", G, way)
    cosine = (
        float(np.mean(turned[lengths > 0] / lengths[lengths > 0])) if lengths.any() else float("nan")
    )
    q1, size = model.inclusion(1), max(model.mean**2, model.second_moment)
    mean = float(norms.mean())
    return Criticality(model.n_atoms, q1, mean, mean / (q1 * size), cosine)


def criticality_bounds(model: SparseCodingModel, delta: float) -> CriticalityBounds:
    r"""Return the proof's bounds with their constants, exact probabilities in place of powers of h.

    With :math:`\mu' = \mu / \sqrt n`, :math:`s = \delta + \mu'` and
    :math:`c = \delta^2 + 2\delta + \mu'`:

    .. math:: q_1 m_2 (1-\delta)^2 \le \tilde\alpha_i \le q_1 m_2 (1+\delta)^2 + m_2 h q_2 s^2,

    .. math:: \lVert \tilde e_i \rVert \le m_2 \big( h q_2 [3 s (1+\delta)^2 + 2 s + c (1+\delta)]
              + h^2 q_3 [s^2 (1+\delta) + c s] \big).

    Args:
        model: The generative model.
        delta: Largest distance of a row of W to its atom, below 1.

    Example:
        >>> bounds = criticality_bounds(SparseCodingModel(np.eye(4), 2, low=1.0, high=1.0), 0.0)
        >>> bounds.alpha_low, bounds.alpha_high, bounds.rest
        (0.5, 0.5, 0.0)

    Mukherjee 2020, section 4.B.1, (4.6) and (4.7), and the spectral bounds of section 4.B.2.
    """
    if not 0.0 <= delta < 1.0:
        raise ValueError(f"delta must be a distance from 0 to below 1; got {delta!r}.")
    h, m2, mu = model.n_atoms, model.second_moment, model.coherence
    q1, q2, q3 = (model.inclusion(t) for t in (1, 2, 3))
    near, up = delta + mu, 1.0 + delta
    crossed = delta**2 + 2 * delta + mu
    rest = h * q2 * (3 * near * up**2 + 2 * near + crossed * up)
    rest += h**2 * q3 * (near**2 * up + crossed * near)
    return CriticalityBounds(
        alpha_low=q1 * m2 * (1 - delta) ** 2,
        alpha_high=q1 * m2 * up**2 + m2 * h * q2 * near**2,
        rest=m2 * rest,
        weights_sum=q2 * up**2 * sqrt(h) * sqrt(h * crossed + up**2),
        atoms_sum=q2 * up**3 * sqrt(h) * sqrt(h * mu + 1),
    )


@dataclass(frozen=True, eq=False)
class Decomposition:
    r"""The three parts of a unit's proxy gradient.

    Attributes:
        unit: Index i.
        alpha: Coefficient of :math:`W_i`.
        beta: Coefficient of :math:`-A_i`.
        rest: The vector :math:`e_i`.
        gradient: :math:`\alpha_i W_i - \beta_i A_i + e_i`.
    """

    unit: int
    alpha: float
    beta: float
    rest: Array
    gradient: Array

    def __str__(self) -> str:
        return (
            f"unit {self.unit}: alpha {self.alpha:.4g}, beta {self.beta:.4g}, "
            f"rest of norm {np.linalg.norm(self.rest):.3g}, "
            f"gradient of norm {np.linalg.norm(self.gradient):.3g}"
        )


def decomposition_of_gradient(
    model: SparseCodingModel,
    W: ArrayLike,
    threshold: ArrayLike,
    unit: int,
    supports: Iterable[Sequence[int]] | None = None,
) -> Decomposition:
    r"""Return :math:`\alpha_i`, :math:`\beta_i` and :math:`e_i`, from their printed sums.

    Args:
        model: The generative model.
        W: Weights (h, n).
        threshold: :math:`\epsilon`, one number or one per unit.
        unit: Index i.
        supports: Supports that hold i, over which to take the mean; None for all of them.

    Returns:
        The parts, times the probability that i is in the support.

    Raises:
        ValueError: If a support is not one of the model's or does not hold i.

    Example:
        >>> model = SparseCodingModel(np.eye(3), 1, low=1.0, high=1.0)
        >>> print(decomposition_of_gradient(model, np.eye(3), 0.0, 0))
        unit 0: alpha 0.3333, beta 0.3333, rest of norm 0, gradient of norm 0

    Mukherjee 2020, section 4.5.1 and Lemma 4.5.2.
    """
    V, eps = weights_and_thresholds(model, W, threshold)
    unit = a_unit(model, unit)
    chosen = supports_with(model, unit) if supports is None else supports
    alphas, betas, rests = [], [], []
    for support in chosen:
        members = {a_unit(model, j) for j in support}
        if unit not in members or len(support) != len(members) or len(members) != model.sparsity:
            raise ValueError(
                f"a support must be {model.sparsity} different atoms, unit {unit} among them; "
                f"got {support!r}."
            )
        S = [unit, *(j for j in support if j != unit)]  # the unit comes first
        alpha, beta, rest = _of_support(model, V[S], model.dictionary.T[S], eps[S])
        alphas.append(alpha)
        betas.append(beta)
        rests.append(rest)
    if not alphas:
        raise ValueError("supports must hold at least one support.")
    q1 = model.inclusion(1)
    a, b, e = q1 * float(np.mean(alphas)), q1 * float(np.mean(betas)), q1 * np.mean(rests, axis=0)
    return Decomposition(unit, a, b, e, a * V[unit] - b * model.dictionary[:, unit] + e)


def _of_support(model: SparseCodingModel, W: Array, A: Array, eps: Array) -> tuple[float, float, Array]:
    """Return the parts for one support, whose first unit is i; rows of A are atoms."""
    m1, m2 = model.mean, model.second_moment
    B, D = W @ A.T, W @ W.T
    b, d, e = B[0], D[0], eps[0]
    alpha = m2 * b @ b + m1**2 * (b.sum() ** 2 - b @ b) - 2 * m1 * e * b.sum() + e**2
    beta = 2 * m1**2 * b[1:].sum() + 2 * m2 * b[0] - m1 * e + m1 * eps @ d
    beta -= m2 * d @ B[:, 0] + m1**2 * (d @ B[:, 1:]).sum()
    # Coefficients of W_j and of A_j, j beside i.
    rows = B.sum(axis=1)
    of_units = e * eps - m1 * e * rows - m1 * eps * b.sum() + m2 * B @ b
    of_units += m1**2 * (b.sum() * rows - B @ b)  # k and l different
    of_atoms = -2 * m1**2 * (b.sum() - b) - 2 * m2 * b + m1 * e  # k and j different
    of_atoms += -m1 * (eps @ d) + m2 * d @ B + m1**2 * ((d @ rows) - d @ B)
    rest = of_units[1:] @ W[1:] + of_atoms[1:] @ A[1:]
    return float(alpha), float(beta), rest
