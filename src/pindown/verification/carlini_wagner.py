r"""Changes with a price: the regularised attack, and Carlini and Wagner's search for the price.

With the score s of a class, the right output minus the best other one, or of a target, the best other
one minus the target's, the regularised attack looks for

.. math::
    \min_r \; \tfrac12 \|r\|_p^2 + \lambda\, s(x + r) .

If s is affine with the slope g, the minimum is :math:`r = -\lambda \|g\|_q\, v(g)`, with the dual norm q
and the step v of length 1 for which :math:`g \cdot v = \|g\|_q`. Of other scores the slopes met so far
are averaged, later ones with more weight,

.. math::
    \bar g \leftarrow (1 - \rho_k)\, \bar g + \rho_k\, \nabla s(x + r), \qquad
    r \leftarrow -\lambda \|\bar g\|_q\, v(\bar g), \qquad \rho_k = \frac{2}{k + 2},

which is the conditional gradient method on the dual: one step is exact for affine scores, in every norm
and with no step size to choose.

**Carlini and Wagner** let the score count only as long as it is above zero, :math:`\max(s, 0)`, and look
for the smallest price :math:`\lambda` that still changes the class: it grows until one does, then the
interval is halved on a logarithmic scale. What is found is an upper end of the distance.

Carlini and Wagner 2017, "Towards evaluating the robustness of neural networks"; Lecture course, section
on adversarial attacks (regularisation-based attack, with the half).
"""

from __future__ import annotations

from collections.abc import Callable, Iterator

import numpy as np

from pindown.affine import Array
from pindown.box import Box
from pindown.deadline import NEVER, Deadline
from pindown.model.gradients import gradients, outputs
from pindown.model.graph import Model
from pindown.relaxation.lp_balls import DUALS, Norm, lengths, steepest_step
from pindown.verification.counterexamples import Asked, AttackResult, judged
from pindown.verification.tuning import (
    CW_FIRST_PRICE,
    CW_PRICE_GROWTH,
    CW_PRICES,
    CW_STEPS,
    MAX_CHANGE,
    REGULARISED_START,
)


def regularised_attack(
    model: Model,
    asked: Asked,
    norm: Norm,
    strength: Array,
    *,
    steps: int = CW_STEPS,
    restarts: int = 3,
    seed: int = 0,
    deadline: Deadline = NEVER,
) -> AttackResult:
    r"""Lower :math:`\tfrac12 \|r\|^2 + \lambda s(x + r)`, from the inputs and from points beside them.

    Args:
        model: The classifier.
        asked: Inputs, classes to leave or to reach, box.
        norm: In which changes are measured.
        strength: Prices :math:`\lambda \ge 0`, one for each input, (n,).
        steps: Steps from each start.
        restarts: Starts; the first is the input itself.
        seed: Seed of the other starts.
        deadline: When to stop.

    Returns:
        For each input the change of the smallest sum that was met; no change is one of them.
    """
    rng, n = np.random.default_rng(seed), len(asked.rows)
    best = asked.rows.copy()
    cost = strength * asked.margins(asked.outputs)
    used = 0
    for start in range(restarts):
        if deadline.passed or not n:
            break
        offset = _offset(asked, norm, strength, best, rng) if start else np.zeros_like(asked.rows)
        for points, made in _slopes_averaged(model, asked, norm, strength, offset, steps, deadline):
            used += 1
            margins = asked.margins(made)
            with np.errstate(over="ignore", invalid="ignore"):
                sums = 0.5 * lengths(points - asked.rows, norm) ** 2 + strength * margins
            better = sums < cost
            best[better], cost[better] = points[better], sums[better]
    by = "the price of a change"
    return judged(model, asked, best, norm, used, (by,) * n)


def _offset(asked: Asked, norm: Norm, strength: Array, best: Array, rng: np.random.Generator) -> Array:
    """Return a random change about as long as the best one so far."""
    length = lengths(best - asked.rows, norm)
    length = np.where(length > 0, length, REGULARISED_START * np.minimum(strength, 1.0))
    steps = steepest_step(rng.standard_normal(asked.rows.shape), norm)
    return np.asarray(length[:, None] * steps)


def carlini_wagner(
    model: Model,
    asked: Asked,
    norm: Norm,
    tried: Callable[[Array], object],
    *,
    prices: int = CW_PRICES,
    steps: int = CW_STEPS,
    deadline: Deadline = NEVER,
) -> int:
    """Look for short changes by searching for the price, and hand all that succeed to ``tried``.

    Args:
        model: The classifier.
        asked: Inputs, classes to leave or to reach, box.
        norm: In which changes are measured.
        tried: Called with points (n, d), one for each input, as they are met: the shortest successful
            ones of each price, and the input itself where there is none.
        prices: How many prices to try for each input.
        steps: Steps for each.
        deadline: When to stop.

    Returns:
        Gradients computed for each input.
    """
    price, used = _first_prices(model, asked, norm), 1
    low, high = np.zeros(len(price)), np.full(len(price), np.inf)
    for _ in range(prices):
        if deadline.passed:
            break
        shortest, length = asked.rows.copy(), np.full(len(price), np.inf)
        start = np.zeros_like(asked.rows)
        for points, made in _slopes_averaged(
            model, asked, norm, price, start, steps, deadline, hinge=True
        ):
            used += 1
            reached = asked.reached(made)
            size = np.where(reached, lengths(points - asked.rows, norm), np.inf)
            better = size < length
            shortest[better], length[better] = points[better], size[better]
        tried(shortest)
        hit = np.isfinite(length)
        high, low = np.where(hit, price, high), np.where(hit, low, price)
        with np.errstate(over="ignore", invalid="ignore"):
            middle = np.sqrt(np.where(low > 0, low, high / CW_PRICE_GROWTH) * high)
        price = np.where(np.isfinite(high), middle, np.minimum(low * CW_PRICE_GROWTH, 1e300))
    return used


def _first_prices(model: Model, asked: Asked, norm: Norm) -> Array:
    """Return the prices at which a linear model with the same slopes would reach its boundary."""
    made, slopes = gradients(model, asked.rows, asked.forms)
    with np.errstate(all="ignore"):
        price = np.maximum(asked.margins(made), 0.0) / lengths(slopes, DUALS[norm]) ** 2
    return np.where(np.isfinite(price) & (price > 0), price, CW_FIRST_PRICE)


def _slopes_averaged(
    model: Model,
    asked: Asked,
    norm: Norm,
    price: Array,
    offset: Array,
    steps: int,
    deadline: Deadline,
    hinge: bool = False,
) -> Iterator[tuple[Array, Array]]:
    """Yield points (n, d) and their outputs, each from the slopes met so far."""
    box = asked.box

    def forms(made: Array, part: slice) -> Array:
        rows = asked.forms(made, part)
        if hinge:
            rows[asked.pick(part).reached(made)] = 0.0
        return rows

    points, mean = _inside(asked.rows + offset, box), np.zeros_like(asked.rows)
    for k in range(steps):
        if deadline.passed:
            return
        made, slopes = gradients(model, points, forms)
        yield points, made
        mean += 2.0 / (k + 2.0) * (slopes - mean)
        with np.errstate(over="ignore", invalid="ignore"):
            length = np.minimum(price * lengths(mean, DUALS[norm]), MAX_CHANGE)
            step = length[:, None] * steepest_step(mean, norm)
        points = _inside(asked.rows - np.nan_to_num(step), box)
    yield points, outputs(model, points)


def _inside(points: Array, box: Box | None) -> Array:
    return points if box is None else np.clip(points, box.lower, box.upper)
