"""Was training lazy (the kernel stayed) or rich (features moved)? Does kernel theory describe it?

The answer to the second is the network's test error beside that of kernel regression with its own
kernels, before and after training.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, Literal

import numpy as np

from pindown.affine import Array
from pindown.bias.tangent_kernel.empirical import empirical_ntk
from pindown.bias.tangent_kernel.gram import (
    as_columns,
    as_inputs,
    kernel_alignment,
    kernel_distance,
    target_alignment,
)
from pindown.bias.tangent_kernel.infinite import infinite_ntk
from pindown.bias.tuning import KERNEL_PENALTIES, LAZY, RICH
from pindown.evidence import Kind
from pindown.network import ReluNetwork


@dataclass(frozen=True)
class Laziness:
    """How far training moved parameters, kernel and function.

    Attributes:
        movement: Relative movement of the parameters, ``|w - w0| / |w0|``.
        kernel_change: Relative change of the tangent kernel in Frobenius norm.
        kernel_alignment: Cosine between the two kernels, means taken out; 1 if only the scale changed.
        function_gap: Distance of the trained network from the first-order model at the trained
            parameters, in units of how far the outputs moved; 0 for a linear model.
        verdict: ``"lazy"``, ``"rich"`` or ``"in between"``, by the kernel's change.
        n: Rows on which kernels and functions were compared.
        kind: The thresholds are conventions: ``"heuristic"``.
    """

    movement: float
    kernel_change: float
    kernel_alignment: float
    function_gap: float
    verdict: Literal["lazy", "in between", "rich"]
    n: int
    kind: Kind = "heuristic"

    def __str__(self) -> str:
        return (
            f"{self.verdict}: parameters moved by {100 * self.movement:.3g} %, the tangent kernel by "
            f"{100 * self.kernel_change:.3g} % (alignment {self.kernel_alignment:.3f}), and the "
            f"first-order model misses {100 * self.function_gap:.3g} % of the change of the outputs on "
            f"{self.n} rows ({self.kind})"
        )


def laziness(initial: Any, trained: Any, X: Any, *, biases: bool = True) -> Laziness:
    r"""Compare a network before and after training.

    Args:
        initial: The network at the start: a ``ReluNetwork`` or a ``torch.nn.Module``.
        trained: The same architecture after training.
        X: Inputs (n, ...) on which to compare, for instance some hundred rows of training data.
        biases: Whether the kernels count biases as parameters; movement and function always do.

    Returns:
        Movement of parameters, kernel and function, and a verdict: lazy if the kernel changed by less
        than 10 %, rich if by more than 50 %.

    Raises:
        ValueError: If the architectures differ.
        TypeError: If the two are not of one kind.

    Example:
        >>> net = ReluNetwork.from_layers([([[1.0]], [0.0])])
        >>> laziness(net, ReluNetwork.from_layers([([[3.0]], [0.0])]), [[1.0], [2.0]]).verdict
        'lazy'

    A linear model is lazy however far its weights move. Chizat, Oyallon and Bach 2019; lecture course,
    slides on lazy training.
    """
    if isinstance(initial, ReluNetwork) != isinstance(trained, ReluNetwork):
        raise TypeError("initial and trained must both be networks or both be modules.")
    before, after = _module(initial), _module(trained)
    rows = as_inputs(X, "X", flat=False)
    start, end = _vectors(before, after)
    length = float(np.linalg.norm(start))
    movement = float(np.linalg.norm(end - start)) / length if length else float("inf")
    K0 = empirical_ntk(initial, rows, biases=biases)
    K1 = empirical_ntk(trained, rows, biases=biases)
    change = kernel_distance(K0, K1)
    verdict: Literal["lazy", "in between", "rich"] = (
        "lazy" if change < LAZY else "rich" if change > RICH else "in between"
    )
    return Laziness(
        movement, change, kernel_alignment(K0, K1), _gap(before, after, rows), verdict, len(rows)
    )


def _module(model: Any) -> Any:
    from torch import nn

    if isinstance(model, ReluNetwork):
        return model.to_torch()
    if not isinstance(model, nn.Module):
        raise TypeError(f"laziness compares ReluNetworks or torch modules; got {type(model).__name__}.")
    return model


def _vectors(before: Any, after: Any) -> tuple[Any, Any]:
    first = {name: value.detach() for name, value in before.named_parameters()}
    second = {name: value.detach() for name, value in after.named_parameters()}
    shapes = [{name: tuple(value.shape) for name, value in some.items()} for some in (first, second)]
    if shapes[0] != shapes[1]:
        raise ValueError("initial and trained must have the same parameters, of the same shapes.")
    flat = [
        np.concatenate([some[name].cpu().double().numpy().ravel() for name in first])
        for some in (first, second)
    ]
    return flat[0], flat[1]


def _gap(before: Any, after: Any, rows: Any) -> float:
    """Return |f - f_lin| / |f - f_0| over the rows; 0 if the outputs did not move."""
    from pindown.bias.tangent_kernel.linearised import Linearised
    from pindown.extras import torch

    model = Linearised(before)
    dtype = next(before.parameters()).dtype
    X = torch.as_tensor(rows, dtype=dtype)
    with torch.no_grad():
        for name, value in after.named_parameters():
            if value.requires_grad:
                model.own(name).copy_(value)
        start, end, first_order = before(X).double(), after(X).double(), model(X).double()
        moved = float(torch.linalg.norm(end - start))
        return float(torch.linalg.norm(end - first_order)) / moved if moved > 0 else 0.0


@dataclass(frozen=True)
class KernelComparison:
    """Test errors (mean squares) of a network and of kernel regressions with its tangent kernels.

    Attributes:
        network: Error of the trained network.
        initial: Error of ridge regression with the tangent kernel at the start.
        final: Error of ridge regression with the tangent kernel after training.
        infinite: Error of ridge regression with the kernel of infinite width and this depth.
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
    kind: Kind = "estimate"

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

    Lecture course, slide on the tangent kernel and practice (NTK versus finite networks).
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
    from pindown.bias.tangent_kernel.empirical import layers_of_module

    layers = layers_of_module(model, True)
    return 2 if layers is None else len(layers)


def _ridge(K: Array, K_test: Array, y: Array) -> Array:
    """Return test predictions with the penalty of least leave-one-out error."""
    values, vectors = np.linalg.eigh(K)
    rotated = vectors.T @ y
    best, coefficients = np.inf, np.zeros_like(y)
    for penalty in KERNEL_PENALTIES * float(np.trace(K)) / len(K):
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
    from pindown.extras import torch

    with torch.no_grad():
        dtype = next(model.parameters()).dtype
        return np.asarray(model(torch.as_tensor(X, dtype=dtype)).double().numpy())
