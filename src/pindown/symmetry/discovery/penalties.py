r"""Penalties that push the columns of a matrix towards an orbit of a group that nobody has named.

All take a torch tensor ``W`` of shape (d, n), columns the candidate orbit, and can be differentiated.
Zero means that the columns of :math:`W^\top W` hold the same numbers. An orbit does; so do zero, equal
columns, orthonormal columns, and more: a penalty needs a term from the data beside it.

Lecture course, slides on learning symmetries.
"""

from __future__ import annotations

from typing import Any

import numpy as np
import torch


def gram_symmetry_penalty(W: Any, sigma: float = 1.0) -> Any:
    r"""Return the Gaussian penalty on differences between the columns of the Gramian.

    .. math::
        r(W) = \sum_{ijkl} (n \delta_{ij} - 1)\, e^{-(w_i^\top w_k - w_j^\top w_l)^2 / \sigma^2}
        = \tfrac12 \sum_{ij} \lVert \phi(c_i) - \phi(c_j) \rVert^2 \ge 0,

    where :math:`\phi(c_i)` is the kernel mean of the numbers in column i. The Gaussian kernel is
    characteristic, so for every :math:`\sigma` it is zero only if all columns hold the same numbers.
    The source prints the weights with the opposite sign, which makes the sum negative and its
    minimisation spread the columns apart.

    Args:
        W: The columns, (d, n).
        sigma: Width of the Gaussian.

    >>> unlike = torch.diag(torch.tensor([1.0, 9.0]))
    >>> float(gram_symmetry_penalty(torch.eye(2))), float(gram_symmetry_penalty(unlike))
    (0.0, 2.0)

    Lecture course, slides on learning symmetries (theorem on the regulariser), with its sign corrected.
    """
    if not sigma > 0:
        raise ValueError(f"sigma must be positive; got {sigma!r}.")
    _matrix(W)
    columns = W.T @ W  # symmetric: rows are columns
    n = len(columns)
    gaps = columns[:, None, :, None] - columns[None, :, None, :]
    between = torch.exp(-((gaps / sigma) ** 2)).sum(dim=(2, 3))
    return n * torch.diagonal(between).sum() - between.sum()


def sorted_gram_penalty(W: Any, soft: float | None = None) -> Any:
    r"""Return how far the sorted columns of the Gramian are apart.

    .. math::
        r(W) = \sum_{i<j} \lVert s_i - s_j \rVert^2 = n \sum_i \lVert s_i - \bar s \rVert^2,
        \qquad s_i = \mathrm{sort}(W^\top w_i).

    Zero exactly where :func:`gram_symmetry_penalty` is, at a cost of :math:`n^2 \log n` in place of
    :math:`n^4`, and its gradient does not vanish when columns are far apart.

    Args:
        W: The columns, (d, n).
        soft: Strength of a soft sort in place of the sort; see :func:`soft_sort`.

    >>> W = torch.tensor([[1.0, 0.0], [0.0, 2.0]])
    >>> float(sorted_gram_penalty(W))  # the columns of the Gramian are (1, 0) and (0, 4)
    9.0

    Lecture course, slides on learning symmetries (alternative by soft sorting).
    """
    _matrix(W)
    columns = W.T @ W  # symmetric: rows are columns
    ordered = torch.sort(columns, dim=1).values if soft is None else soft_sort(columns, soft)
    return len(columns) * ((ordered - ordered.mean(dim=0)) ** 2).sum()


def soft_sort(values: Any, strength: float = 1.0) -> Any:
    r"""Return each row sorted, increasing, with gaps beyond ``1 / strength`` drawn in.

    The projection of :math:`\rho / \epsilon`, :math:`\rho = (1, \dots, n)`, on the polytope of all
    orders of a row. It equals the sort where all gaps are at most :math:`1/\epsilon`, and goes to the
    row's mean as the strength grows.

    Args:
        values: Rows to be sorted, (m, n).
        strength: :math:`\epsilon`: large values smooth more.

    >>> soft_sort(torch.tensor([[3.0, 1.0, 2.0]]), 0.1).tolist()
    [[1.0, 2.0, 3.0]]
    >>> soft_sort(torch.tensor([[3.0, 1.0, 2.0]]), 1e6).round(decimals=4).tolist()
    [[2.0, 2.0, 2.0]]

    Lecture course, slides on learning symmetries; after Blondel et al. 2020.
    """
    if not strength > 0:
        raise ValueError(f"strength must be positive; got {strength!r}.")
    from sklearn.isotonic import isotonic_regression

    ordered = torch.sort(values, dim=1).values
    anchors = np.arange(1, values.shape[1] + 1) / strength
    averages = torch.zeros(len(values), values.shape[1], values.shape[1], dtype=values.dtype)
    for row, w in zip(averages, ordered.detach().numpy(), strict=True):
        pooled = isotonic_regression(anchors - w, increasing=True)
        same = np.cumsum(np.r_[0, np.diff(pooled) != 0])
        block = same[:, None] == same
        row[:] = torch.from_numpy(block / block.sum(axis=1, keepdims=True))
    anchored = torch.from_numpy(anchors).to(values.dtype)
    return anchored - averages @ anchored + (averages @ ordered[:, :, None])[:, :, 0]


def _matrix(W: Any) -> None:
    if not torch.is_tensor(W) or W.ndim != 2:
        raise TypeError(
            f"W must be a torch tensor (d, n) with the orbit as columns; got {type(W).__name__}."
        )
