"""Does kernel theory describe this network? Its test error beside that of its own kernels."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np

from pindown.affine import Array
from pindown.bias.kernel.alignment import kernel_alignment, target_alignment
from pindown.bias.kernel.checks import as_columns, as_inputs
from pindown.bias.kernel.empirical import empirical_ntk
from pindown.bias.kernel.infinite import infinite_ntk
from pindown.network import ReluNetwork

# Ridge penalties as shares of the kernel's mean diagonal; leave-one-out error chooses.
_PENALTIES = np.logspace(-8, 1, 28)


@dataclass(frozen=True)
class KernelComparison:
    """Test errors (mean squares) of a network and of kernel regressions with its tangent kernels.

    Attributes:
        network: Of the trained network.
        initial: Of ridge regression with the tangent kernel at the start.
        final: Of ridge regression with the tangent kernel after training.
        infinite: Of ridge regression with the kernel of infinite width and this depth.
        alignment: Alignment of the kernels before and after training.
        target_before: Alignment of the initial kernel with the training targets.
        target_after: Alignment of the final kernel with them.
        n: Training rows.
        n_test: Test rows.
        kind: ``"estimate"``: the errors are means over test rows.
    """

    network: float
    initial: float
    final: float
    infinite: float
    alignment: float
    target_before: float
    target_after: float
    n: int
    n_test: int
    kind: str = "estimate"

    def __str__(self) -> str:
        return (
            f"test error {self.network:.4g} (network), {self.initial:.4g} (kernel at the start), "
            f"{self.final:.4g} (kernel after training), {self.infinite:.4g} (infinite width) on "
            f"{self.n_test} rows; kernels aligned {self.alignment:.2f}, with the targets "
            f"{self.target_before:.2f} before and {self.target_after:.2f} after ({self.kind})"
        )


def kernel_versus_network(
    initial: Any, trained: Any, X: Any, y: Any, X_test: Any, y_test: Any, *, depth: int | None = None
) -> KernelComparison:
    """Compare a trained network with kernel ridge regressions by its own tangent kernels.

    Args:
        initial: The network before training: a ``ReluNetwork`` or a ``torch.nn.Module``.
        trained: The network after training.
        X: Training inputs (n, d).
        y: Training targets (n,) or (n, k).
        X_test: Test inputs.
        y_test: Test targets.
        depth: Number of affine maps for the infinite-width kernel; read off a ``ReluNetwork`` or a
            ``Sequential`` of ``Linear`` and ``ReLU``, and 2 for other modules.

    Returns:
        Test errors and alignments. The ridge penalty of each kernel is chosen by its leave-one-out
        error on the training rows. The infinite kernel sees inputs with a constant 1 appended, for the
        biases.

    Lecture course, slide on the tangent kernel and practice.
    """
    rows, others = as_inputs(X, "X", flat=False), as_inputs(X_test, "X_test", flat=False)
    targets, wanted = as_columns(y, len(rows), "y"), as_columns(y_test, len(others), "y_test")
    if len(rows) < 2:
        raise ValueError("X must have at least two rows: the penalty is chosen by leaving one out.")
    layers = _depth(trained) if depth is None else depth
    outputs = _outputs(trained, others)
    if targets.shape[1] != wanted.shape[1] or outputs.size != wanted.size:
        raise ValueError(
            f"targets must have one column per output; got {targets.shape[1]} and {wanted.shape[1]} for "
            f"{outputs.size // len(others)}."
        )
    before, after = empirical_ntk(initial, rows), empirical_ntk(trained, rows)
    cross = empirical_ntk(initial, others, rows), empirical_ntk(trained, others, rows)
    flat, flat_test = (np.c_[Z.reshape(len(Z), -1), np.ones(len(Z))] for Z in (rows, others))
    limit = infinite_ntk(flat, depth=layers), infinite_ntk(flat_test, flat, depth=layers)

    def error(K: Array, K_test: Array) -> float:
        return float(np.mean((_ridge(K, K_test, targets) - wanted) ** 2))

    return KernelComparison(
        network=float(np.mean((outputs.reshape(wanted.shape) - wanted) ** 2)),
        initial=error(before, cross[0]),
        final=error(after, cross[1]),
        infinite=error(*limit),
        alignment=kernel_alignment(before, after),
        target_before=target_alignment(before, targets),
        target_after=target_alignment(after, targets),
        n=len(rows),
        n_test=len(others),
    )


def _depth(model: Any) -> int:
    if isinstance(model, ReluNetwork):
        return model.depth
    from pindown.bias.kernel.structure import layers_of_module

    layers = layers_of_module(model, True)
    return 2 if layers is None else len(layers)


def _ridge(K: Array, K_test: Array, y: Array) -> Array:
    """Return test predictions with the penalty of least leave-one-out error."""
    values, vectors = np.linalg.eigh(K)
    rotated = vectors.T @ y
    best, coefficients = np.inf, np.zeros_like(y)
    for penalty in _PENALTIES * float(np.trace(K)) / len(K):
        inverse = 1.0 / (np.maximum(values, 0.0) + penalty)
        solution = vectors @ (inverse[:, None] * rotated)
        # Leaving row i out changes its prediction by alpha_i over the i-th diagonal of the inverse.
        diagonal = np.sum(vectors**2 * inverse, axis=1)
        error = float(np.mean((solution / diagonal[:, None]) ** 2))
        if error < best:
            best, coefficients = error, solution
    return np.asarray(K_test @ coefficients)


def _outputs(model: Any, X: Array) -> Array:
    if isinstance(model, ReluNetwork):
        return model(X)
    import torch

    with torch.no_grad():
        dtype = next(model.parameters()).dtype
        return np.asarray(model(torch.as_tensor(X, dtype=dtype)).double().numpy())
