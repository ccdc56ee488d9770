"""Was training lazy (the kernel stayed) or rich (features moved)?"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, Literal

import numpy as np

from pindown.bias.kernel.alignment import kernel_alignment, kernel_distance
from pindown.bias.kernel.checks import as_inputs
from pindown.bias.kernel.empirical import empirical_ntk
from pindown.network import ReluNetwork

# A kernel that moved by less than a tenth predicts training to a tenth or so; one that moved by half of
# itself predicts nothing. In between both descriptions are poor.
LAZY, RICH = 0.1, 0.5


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
    kind: str = "heuristic"

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
    import torch

    from pindown.bias.kernel.modules import Linearised

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
