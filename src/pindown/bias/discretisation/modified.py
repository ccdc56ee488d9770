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
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import TypeAlias

import numpy as np
import torch
from torch import Tensor

from pindown.affine import Array
from pindown.bias.least_squares.checks import number

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
        loss: From a vector of weights to a number, in torch operations.
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
    return number("step", step, 0.0, np.inf)
