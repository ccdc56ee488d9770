r"""The printed losses, term by term, on log-odds.

With :math:`p = \sigma(z)` the two halves of the binary cross entropy are
:math:`-\log p = \mathrm{softplus}(-z)` and :math:`-\log(1 - p) = \mathrm{softplus}(z)`: nothing is
rounded to zero or one on the way. All functions take the log-odds of whole batches.

Wolf et al. 2019, section 2 and Algorithm 1.
"""

from __future__ import annotations

import torch
from torch import Tensor
from torch.nn.functional import softplus

# A product of two logs grows with the square of the log-odds: beyond this the weight is held.
LOGIT_LIMIT = 30.0


def accepted(logit: Tensor) -> Tensor:
    r"""Return :math:`-\log\sigma(z)`, the price of a point that should be accepted.

    Example:
        >>> round(accepted(torch.tensor(0.0)).item(), 4)  # log 2
        0.6931
    """
    return softplus(-logit)


def rejected(logit: Tensor) -> Tensor:
    r"""Return :math:`-\log(1 - \sigma(z))`, the price of a point that should be rejected.

    Example:
        >>> bool(torch.isclose(rejected(torch.tensor(100.0)), torch.tensor(100.0)))
        True
    """
    return softplus(logit)


def weighted_rejection(logit: Tensor, weight_logit: Tensor | None) -> Tensor:
    r"""Return the mean over the batch of :math:`(-\log(1-\sigma(z))) \, (-\log(1-\sigma(w)))`.

    Args:
        logit: z, of the function that learns.
        weight_logit: w, of the other function, a constant weight for this step; None for weight one
            (the ablations with one function only).
    """
    price = rejected(logit)
    if weight_logit is None:
        return price.mean()
    return (price * rejected(weight_logit.clamp(-LOGIT_LIMIT, LOGIT_LIMIT))).mean()


def membership_loss(c_real: Tensor, c_fake: Tensor, h_fake: Tensor | None) -> Tensor:
    r"""Return :math:`L_C = E_x[-\log c(x)] + E_x[\log(1 - c(G_c(x))) \log(1 - h(G_c(x), x))]`.

    Args:
        c_real: Log-odds of c at x.
        c_fake: Log-odds of c at :math:`G_c(x)`.
        h_fake: Log-odds of h at :math:`(G_c(x), x)`; None where there is no h.

    Example:
        At log-odds zero every log is log 2, so the loss is log 2 + (log 2)^2:

        >>> zero = torch.zeros(4)
        >>> round(membership_loss(zero, zero, zero).item(), 4)
        1.1736

    Wolf et al. 2019, equation for L_C.
    """
    return accepted(c_real).mean() + weighted_rejection(c_fake, h_fake)


def comparator_loss(
    h_same: Tensor, h_fake: Tensor, c_fake: Tensor | None, h_reverse: Tensor | None = None
) -> Tensor:
    r"""Return :math:`L_H = E_x[-\log h(x, x)] + E_x[\log(1 - c(G_h(x))) \log(1 - h(G_h(x), x))]`.

    Args:
        h_same: Log-odds of h at (x, x).
        h_fake: Log-odds of h at :math:`(G_h(x), x)`.
        c_fake: Log-odds of c at :math:`G_h(x)`; None where there is no c.
        h_reverse: Log-odds of h at :math:`(x, G_h(x))`: adds the symmetric term, that x is at least as
            good as :math:`G_h(x)`, with the same weight.

    Example:
        >>> zero = torch.zeros(4)
        >>> round(comparator_loss(zero, zero, None).item(), 4)  # 2 log 2
        1.3863

    Wolf et al. 2019, equation for L_H, and its symmetric variant.
    """
    loss = accepted(h_same).mean() + weighted_rejection(h_fake, c_fake)
    if h_reverse is not None:
        weight = 1.0 if c_fake is None else rejected(c_fake.clamp(-LOGIT_LIMIT, LOGIT_LIMIT))
        loss = loss + (weight * accepted(h_reverse)).mean()
    return loss


def displacement(real: Tensor, fake: Tensor) -> Tensor:
    r"""Return :math:`E_x \lVert x - G_h(x) \rVert`, the plain Euclidean norm of each sample.

    Example:
        >>> displacement(torch.zeros(2, 2), torch.tensor([[3.0, 4.0], [0.0, 1.0]])).item()
        3.0
    """
    return torch.linalg.vector_norm((real - fake).flatten(1), dim=1).mean()


def membership_generator_loss(c_fake: Tensor, h_fake: Tensor | None) -> Tensor:
    """Return what the generator of c minimises: minus the part of L_C that it can change."""
    return -weighted_rejection(c_fake, h_fake)


def comparator_generator_loss(
    real: Tensor,
    fake: Tensor,
    h_fake: Tensor,
    c_fake: Tensor | None,
    h_reverse: Tensor | None = None,
    pull: float = 1.0,
) -> Tensor:
    r"""Return what the generator of h minimises, :math:`\lambda E_x\lVert x - G_h(x)\rVert - L_H`.

    Args:
        real: x.
        fake: :math:`G_h(x)`.
        h_fake: Log-odds of h at :math:`(G_h(x), x)`.
        c_fake: Log-odds of c at :math:`G_h(x)`, or None.
        h_reverse: Log-odds of h at :math:`(x, G_h(x))` for the symmetric loss, or None.
        pull: :math:`\lambda`.
    """
    loss = pull * displacement(real, fake) - weighted_rejection(h_fake, c_fake)
    if h_reverse is not None:
        weight = 1.0 if c_fake is None else rejected(c_fake.clamp(-LOGIT_LIMIT, LOGIT_LIMIT))
        loss = loss - (weight * accepted(h_reverse)).mean()
    return loss
