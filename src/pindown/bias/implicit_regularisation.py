r"""The loss that gradient descent with a finite step descends, to second order in the step.

Steps :math:`w \leftarrow w + \epsilon f(w)` follow the flow of :math:`f + \epsilon f_1` with
:math:`f_1 = -\frac12(\nabla f)f`. For :math:`f = -\nabla C` that is the flow of

.. math:: \tilde C = C + \frac\epsilon4\lVert\nabla C\rVert^2, \qquad
          \nabla\tilde C = \nabla C + \frac\epsilon2H\nabla C,

so :math:`f_1` is *minus* the gradient of :math:`\frac14\lVert\nabla C\rVert^2`. Minibatches
:math:`C_1, \dots, C_m`, each seen once in every epoch in random order, follow on average

.. math:: \tilde C_{SGD} = C + \frac{\epsilon}{4m}\sum_k\lVert\nabla C_k\rVert^2, \qquad
          C = \frac1m\sum_kC_k.

Both hold for steps that are small against one over the largest curvature; momentum and Adam have
other terms.

A step of size :math:`\epsilon` with the gradient :math:`\nabla C + \kappa\frac\epsilon2H\nabla C`
follows the flow of :math:`C + (1 + \kappa)\frac\epsilon4\lVert\nabla C\rVert^2`. With :math:`\kappa =
-1` it follows the flow of the loss itself one order closer than plain descent does; with
:math:`\kappa = E/\epsilon - 1` small steps do what steps of size E would do.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any, Literal, TypeAlias

import numpy as np
import torch
from torch import Tensor

from pindown.affine import Array
from pindown.validation import choice, number, positive

Loss: TypeAlias = Callable[[Tensor], Tensor]  # of a vector of weights; torch operations only


def implicit_penalty(loss: Loss, weights: Tensor, step: float) -> Tensor:
    r"""Return :math:`\frac\epsilon4\lVert\nabla C(w)\rVert^2`, a tensor that can be differentiated.

    Args:
        loss: C, from a vector of weights to a number, in torch operations.
        weights: The weights (p,).
        step: The step size.

    Example:
        The gradient of half the squared norm is the vector itself:

        >>> float(implicit_penalty(lambda w: (w**2).sum() / 2, torch.tensor([3.0, 4.0]), 0.4))
        2.5

    Lecture course, slides on implicit gradient regularisation.
    """
    return _step(step) / 4 * _slope(loss, weights).pow(2).sum()


def modified_loss(loss: Loss, step: float) -> Loss:
    r"""Return :math:`\tilde C = C + \frac\epsilon4\lVert\nabla C\rVert^2` as a function of weights.

    Args:
        loss: C, from a vector of weights to a number.
        step: The step size.

    >>> float(modified_loss(lambda w: (w**2).sum() / 2, 0.4)(torch.tensor([3.0, 4.0])))
    15.0

    Lecture course, slides on implicit gradient regularisation.
    """
    step = _step(step)
    return lambda w: loss(w).reshape(()) + implicit_penalty(loss, w, step)


def modified_gradient(loss: Loss, step: float) -> Loss:
    r"""Return :math:`\nabla\tilde C = \nabla C + \frac\epsilon2H\nabla C` by a product with the Hessian.

    Args:
        loss: C, from a vector of weights to a number.
        step: The step size.

    Returns:
        A function from weights (p,) to the gradient (p,).

    >>> modified_gradient(lambda w: (w**2).sum() / 2, 0.4)(torch.tensor([3.0, 4.0])).tolist()
    [3.5999999046325684, 4.800000190734863]

    Lecture course, slides on implicit gradient regularisation.
    """
    step = _step(step)
    slope = torch.func.grad(lambda w: loss(w).reshape(()))

    def gradient(w: Tensor) -> Tensor:
        g, pull = torch.func.vjp(slope, w)
        bend: Tensor = pull(g)[0]
        return g + step / 2 * bend

    return gradient


def sgd_modified_loss(losses: Sequence[Loss], step: float) -> Loss:
    r"""Return :math:`C + \frac{\epsilon}{4m}\sum_k\lVert\nabla C_k\rVert^2` as a function of weights.

    Args:
        losses: The minibatch losses :math:`C_k`; the whole loss is their mean.
        step: The step size.

    Raises:
        ValueError: If there is no minibatch.

    Example:
        Two minibatches that pull apart: the penalty is there where the whole gradient is zero.

        >>> pull = [lambda w: w.sum(), lambda w: -w.sum()]
        >>> float(sgd_modified_loss(pull, 0.4)(torch.tensor([7.0])))
        0.10000000149011612

    Smith et al. 2021 (the paper behind the slides), equation 1; lecture course, slides on implicit
    gradient regularisation.
    """
    parts = list(losses)
    if not parts:
        raise ValueError("losses must hold at least one minibatch loss; got none.")
    step = _step(step)

    def modified(w: Tensor) -> Tensor:
        plain = torch.stack([part(w).reshape(()) for part in parts]).mean()
        return plain + torch.stack([implicit_penalty(part, w, step) for part in parts]).mean()

    return modified


def array_gradient(loss: Loss, *, step: float = 0.0) -> Callable[[Array], Array]:
    """Return the gradient of a torch loss, or of its modified loss, as a function of float64 arrays.

    Args:
        loss: Function from a vector of weights to a number, in torch operations.
        step: Step size of the modified loss; zero for the loss itself.

    >>> array_gradient(lambda w: (w**2).sum() / 2)(np.array([3.0, 4.0])).tolist()
    [3.0, 4.0]
    """
    step = _step(step)

    def values(w: Array) -> Array:
        # Two reverse passes: for the few weights of a flow this is several times faster than torch.func.
        at = torch.tensor(np.asarray(w, dtype=np.float64), requires_grad=True)
        (slope,) = torch.autograd.grad(loss(at).reshape(()), at, create_graph=step > 0)
        found = slope.detach()
        if step > 0 and slope.requires_grad:
            (bend,) = torch.autograd.grad(slope, at, grad_outputs=found, allow_unused=True)
            found = found if bend is None else found + step / 2 * bend
        return np.asarray(found.numpy(), dtype=np.float64)

    return values


def _slope(loss: Loss, weights: Tensor) -> Tensor:
    found: Tensor = torch.func.grad(lambda w: loss(w).reshape(()))(weights)
    return found


def _step(step: float) -> float:
    return positive("step", step, zero=True)


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
        choice("effect", effect, ("add", "cancel"))
        self.optimizer = optimizer
        self.effect = effect
        self.multiple = positive("multiple", multiple, zero=True)
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
    step = positive("step", step)
    return number("emulated", emulated, step) / step - 1
