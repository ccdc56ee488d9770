r"""The proxy gradient as :math:`\alpha_i W_i - \beta_i A_i + e_i`: unit, atom, rest.

Written with :math:`B_{jk} = \langle W_j, A_k \rangle` and :math:`D_{ij} = \langle W_i, W_j \rangle`,
sums over the support.

Mukherjee 2020, section 4.5.1.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import ArrayLike

from pindown.affine import Array
from pindown.datasets.sparse_codes import SparseCodingModel
from pindown.learn.sparse_coding.proxy import a_unit, supports_with, weights_and_thresholds


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
