r"""What GLM-Tron promises: one step, a horizon, and the risk under adversarial or benign noise.

Inputs have norm at most one, the link :math:`\sigma` is non-decreasing and L-Lipschitz, labels are
:math:`y_i = \sigma(\langle w_*, x_i \rangle) + \xi_i`, and a step of size :math:`s < 2/L` is

.. math:: w_{t+1} = w_t + \frac{s}{S} \sum_{i=1}^S (y_i - \sigma(\langle w_t, x_i \rangle))\, x_i.

:math:`\tilde L(w) = \frac1S \sum_i (\sigma(\langle w, x_i \rangle) - \sigma(\langle w_*, x_i
\rangle))^2` is the effective risk: how far the answers are from the clean ones. The source has
:math:`s = 1` and therefore :math:`L < 2`.
"""

from __future__ import annotations

import math

from pindown.validation import positive


def glmtron_horizon(norm: float, eps: float) -> int:
    r"""Return :math:`\lceil \lVert w_* \rVert^2 / \epsilon \rceil`, steps in which some iterate is good.

    Every step that starts at a bad iterate lowers the *squared* distance to :math:`w_*` by
    :math:`\epsilon`.

    Args:
        norm: :math:`\lVert w_* \rVert`, or a bound on it, for inputs of norm at most one.
        eps: :math:`\epsilon > 0`.

    Returns:
        The number of steps; the iterates before, between and after them count.

    Example:
        >>> glmtron_horizon(3.0, 0.5)
        18

    Mukherjee 2020, Theorem 3.5.2, with the norm squared.
    """
    return math.ceil(positive("norm", norm, zero=True) ** 2 / positive("eps", eps))


def glmtron_gain(lipschitz: float, step: float = 1.0) -> float:
    r"""Return :math:`2 s / L - s^2`: the share of the risk that a step takes off the squared distance.

    Raises:
        ValueError: If the step is not below :math:`2 / L`; then nothing is promised.

    Example:
        >>> glmtron_gain(1.0), glmtron_gain(0.25, step=4.0)
        (1.0, 16.0)

    Mukherjee 2020, Lemma 3.5.1.
    """
    L, s = positive("lipschitz", lipschitz), positive("step", step)
    if s * L >= 2:
        raise ValueError(
            f"GLM-Tron needs step < 2 / lipschitz = {2 / L:.6g}; got step={step!r}: "
            f"pass step={1 / L:.6g}."
        )
    return 2 * s / L - s * s


def noise_term(noise: float, distance: float, lipschitz: float, step: float = 1.0) -> float:
    r"""Return :math:`s^2 \eta^2 + 2 s \eta W (1 + s L)`, what noise can add to the squared distance.

    Args:
        noise: :math:`\eta = \lVert \frac1S \sum_i \xi_i x_i \rVert`, at most the largest
            :math:`|\xi_i|`.
        distance: :math:`W \ge \lVert w_t - w_* \rVert`.
        lipschitz: L.
        step: s.

    Example:
        >>> noise_term(0.5, 1.0, 1.0)
        2.25

    Mukherjee 2020, Lemma 3.5.1.
    """
    return step**2 * noise**2 + 2 * step * noise * distance * (1 + step * lipschitz)


def one_step_bound(
    squared_distance: float,
    effective_risk: float,
    *,
    noise: float,
    distance: float,
    lipschitz: float,
    step: float = 1.0,
) -> float:
    r"""Bound :math:`\lVert w_{t+1} - w \rVert^2` by what is known at step t.

    .. math:: \lVert w_{t+1} - w \rVert^2 \le \lVert w_t - w \rVert^2
              - \Big(\frac{2 s}{L} - s^2\Big) \tilde L(w_t) + s^2 \eta^2 + 2 s \eta W (1 + s L)

    Args:
        squared_distance: :math:`\lVert w_t - w \rVert^2`, for any w.
        effective_risk: :math:`\tilde L(w_t)` with respect to that w.
        noise: :math:`\eta = \lVert \frac1S \sum_i (y_i - \sigma(\langle w, x_i \rangle)) x_i \rVert`.
        distance: :math:`W \ge \lVert w_t - w \rVert`.
        lipschitz: L.
        step: s.

    Example:
        >>> one_step_bound(4.0, 1.0, noise=0.0, distance=2.0, lipschitz=1.0)
        3.0

    Mukherjee 2020, Lemma 3.5.1.
    """
    gain = glmtron_gain(lipschitz, step)
    return squared_distance - gain * effective_risk + noise_term(noise, distance, lipschitz, step)


def glmtron_excess(
    eps: float, *, noise_bound: float, norm: float, lipschitz: float = 1.0, step: float = 1.0
) -> float:
    r"""Bound the effective risk of the best iterate within the horizon, for adversarial noise.

    .. math:: \tilde L(w_t) \le \frac{\epsilon + s^2 \theta^2 + 2 s \theta W (1 + s L)}{2 s / L - s^2}
              \quad \text{for some } t \text{ within } \lceil W^2/\epsilon \rceil \text{ steps}

    Args:
        eps: :math:`\epsilon`.
        noise_bound: :math:`\theta \ge |\xi_i|`; the norm of :math:`\frac1S \sum_i \xi_i x_i` is enough,
            if known.
        norm: :math:`W \ge \lVert w_* \rVert`, for inputs of norm at most one.
        lipschitz: L.
        step: s.

    Returns:
        The bound.

    Example:
        >>> glmtron_excess(0.25, noise_bound=0.5, norm=1.0)
        2.5

    Mukherjee 2020, Theorem 3.5.2.
    """
    theta, W = positive("noise_bound", noise_bound, zero=True), positive("norm", norm, zero=True)
    added = noise_term(theta, W, lipschitz, step)
    return (positive("eps", eps, zero=True) + added) / glmtron_gain(lipschitz, step)


def benign_risk(excess: float, noise_variance: float, *, independent: bool = False) -> float:
    r"""Bound the mean squared training error of an iterate whose effective risk is at most an excess B.

    Always :math:`(\sqrt B + \sqrt v)^2`, by the triangle inequality. The source prints :math:`B + v`,
    which drops the product of the noise with the answers' error. That product has mean zero only if the
    noise is independent of the iterate, and the iterate was trained on it.

    Args:
        excess: B.
        noise_variance: :math:`v = E[\xi^2]`.
        independent: Whether the labels are fresh, so that the printed sum holds.

    Returns:
        The bound on :math:`E[\frac1S \sum_i (y_i - \sigma(\langle w, x_i \rangle))^2]`.

    Example:
        >>> benign_risk(0.25, 1.0), benign_risk(0.25, 1.0, independent=True)
        (2.25, 1.25)

    Mukherjee 2020, Theorem 3.5.3, corrected.
    """
    B, v = positive("excess", excess, zero=True), positive("noise_variance", noise_variance, zero=True)
    return B + v if independent else (math.sqrt(B) + math.sqrt(v)) ** 2
