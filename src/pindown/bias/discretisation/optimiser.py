r"""Gradient descent with its implicit penalty added once more, or taken away.

A step of size :math:`\epsilon` with the gradient :math:`\nabla C + \kappa\frac\epsilon2H\nabla C`
follows the flow of :math:`C + (1 + \kappa)\frac\epsilon4\lVert\nabla C\rVert^2`. With :math:`\kappa =
-1` it follows the flow of the loss itself one order closer than plain descent does; with
:math:`\kappa = E/\epsilon - 1` small steps do what steps of size E would do.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, Literal

import numpy as np
import torch
from torch import Tensor

from pindown.bias.least_squares.checks import number


class ImplicitRegularisation:
    r"""Wrap plain gradient descent so that its implicit penalty is strengthened or cancelled.

    Each step costs one more pass: a product of the Hessian with the gradient. Groups with step sizes
    :math:`\epsilon_g` of their own, and weight decay, are accounted for: the penalty is that of
    descending with those steps. Schedulers take the wrapped optimiser, ``.optimizer``.

    Args:
        optimizer: ``torch.optim.SGD`` without momentum (for ``"add"`` any optimiser will do, but then
            the sum is not what a theorem speaks of).
        effect: ``"add"`` strengthens the penalty, ``"cancel"`` takes it away.
        multiple: How many times the penalty is added or taken, in units of the one already there.

    Raises:
        TypeError: If it is not a torch optimiser.
        ValueError: If the effect is another one, or cancelling is asked of a method with other terms.

    Example:
        On half the square, a step of 0.1 multiplies by 0.9; without its implicit penalty by 0.905, and
        the flow itself by exp(-0.1) = 0.9048.

        >>> w = torch.nn.Parameter(torch.ones(1, dtype=torch.float64))
        >>> descent = ImplicitRegularisation(torch.optim.SGD([w], lr=0.1), "cancel")
        >>> _ = descent.step(lambda: (w**2).sum() / 2)
        >>> round(w.item(), 12)
        0.905

    Lecture course, slides on implicit gradient regularisation.
    """

    def __init__(
        self,
        optimizer: torch.optim.Optimizer,
        effect: Literal["add", "cancel"] = "add",
        multiple: float = 1.0,
    ) -> None:
        if not isinstance(optimizer, torch.optim.Optimizer):
            raise TypeError(f"optimizer must be a torch optimiser; got {type(optimizer).__name__}.")
        if effect not in ("add", "cancel"):
            raise ValueError(f"effect must be 'add' or 'cancel'; got {effect!r}.")
        self.optimizer = optimizer
        self.effect = effect
        self.multiple = number("multiple", multiple, 0.0, np.inf)
        self._check_plain()

    def _check_plain(self) -> None:
        # At every step as well: groups and states can be changed after the start.
        if self.effect == "cancel" and not self.plain:
            raise ValueError(
                "only plain gradient descent has this penalty to cancel: pass torch.optim.SGD without "
                "momentum and maximize."
            )

    @property
    def plain(self) -> bool:
        """Whether the wrapped method is plain gradient descent, the one the theorem is about."""
        groups = self.optimizer.param_groups
        return isinstance(self.optimizer, torch.optim.SGD) and not any(
            g["momentum"] or g["maximize"] for g in groups
        )

    @property
    def param_groups(self) -> list[dict[str, Any]]:
        """The groups of the wrapped optimiser."""
        groups: list[dict[str, Any]] = self.optimizer.param_groups
        return groups

    def zero_grad(self, set_to_none: bool = True) -> None:
        """Forget the gradients."""
        self.optimizer.zero_grad(set_to_none=set_to_none)

    def state_dict(self) -> dict[str, Any]:
        """Return the state of the wrapped optimiser, with the effect and its multiple."""
        return {
            "optimizer": self.optimizer.state_dict(),
            "effect": self.effect,
            "multiple": self.multiple,
        }

    def load_state_dict(self, state: dict[str, Any]) -> None:
        """Take up a state that :meth:`state_dict` returned."""
        self.optimizer.load_state_dict(state["optimizer"])
        self.effect, self.multiple = state["effect"], state["multiple"]

    def step(self, closure: Callable[[], Tensor]) -> Tensor:
        """Move the parameters once.

        Args:
            closure: Evaluates the loss. It must not call ``backward``: gradients are taken here.

        Returns:
            The loss before the step.

        Raises:
            ValueError: If the loss is not one finite number that depends on the parameters.
        """
        self._check_plain()
        owners = [(p, g) for g in self.param_groups for p in g["params"] if p.requires_grad]
        params = [p for p, _ in owners]
        with torch.enable_grad():
            loss = closure()
            if not isinstance(loss, Tensor) or loss.numel() != 1 or not loss.requires_grad:
                raise ValueError(
                    f"the closure must return the loss, one number that depends on the parameters, "
                    f"without calling backward; got {loss!r}."
                )
            if not bool(torch.isfinite(loss)):
                raise ValueError(f"the loss must be finite; got {loss.item()!r}.")
            slopes = torch.autograd.grad(loss.reshape(()), params, create_graph=True, allow_unused=True)
        whole = [
            None if s is None else s.detach() + g.get("weight_decay", 0.0) * p.detach()
            for s, (p, g) in zip(slopes, owners, strict=True)
        ]
        bends = self._bends(slopes, whole, owners)
        sign = self.multiple if self.effect == "add" else -self.multiple
        for p, slope, bend in zip(params, slopes, bends, strict=True):
            p.grad = None if slope is None else slope.detach() + sign / 2 * bend
        self.optimizer.step()
        return loss.detach()

    def _bends(
        self,
        slopes: tuple[Tensor | None, ...],
        whole: list[Tensor | None],
        owners: list[tuple[Tensor, dict[str, Any]]],
    ) -> list[Tensor]:
        """Return the Hessian of loss and decay times the move that descent would make."""
        moves = [
            None if s is None else float(g["lr"]) * s for s, (_, g) in zip(whole, owners, strict=True)
        ]
        pairs = [
            (s, v)
            for s, v in zip(slopes, moves, strict=True)
            if s is not None and v is not None and s.requires_grad
        ]
        params = [p for p, _ in owners]
        products: tuple[Tensor | None, ...] = (None,) * len(params)
        if pairs:  # otherwise the loss is affine
            products = torch.autograd.grad(
                [s for s, _ in pairs], params, grad_outputs=[v for _, v in pairs], allow_unused=True
            )
        return [
            (torch.zeros_like(p) if h is None else h)
            + (0.0 if v is None else g.get("weight_decay", 0.0) * v)
            for h, v, (p, g) in zip(products, moves, owners, strict=True)
        ]

    def __repr__(self) -> str:
        return (
            f"ImplicitRegularisation({type(self.optimizer).__name__}, {self.effect}, {self.multiple:g})"
        )


def emulating_multiple(step: float, emulated: float) -> float:
    """Return the multiple with which small steps have the implicit penalty of large ones.

    Args:
        step: The step size used.
        emulated: The larger step size whose bias is wanted.

    >>> emulating_multiple(0.01, 0.05)
    4.0

    Lecture course, slides on implicit gradient regularisation.
    """
    step = number("step", step, 0.0, np.inf, closed=False)
    return number("emulated", emulated, step, np.inf) / step - 1
