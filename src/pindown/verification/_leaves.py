r"""Parts in which every ReLU has its sign: the network is affine there, and a linear program decides.

With the forms f_r of the goal and the units' inputs z_j affine in x, and scales :math:`\kappa_j > 0`,

.. math::
    t = \max_{l \le x \le u} \; \min\bigl(\min_r f_r(x),\; \min_j \kappa_j s_j z_j(x)\bigr)

is negative if and only if no x with the signs s has all forms non-negative. The program's multipliers
are weights of the forms and multipliers of the signs; what they prove is computed with outward rounding,
so the solver need not be trusted.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from pindown.affine import Array, is_finite
from pindown.deadline import Deadline
from pindown.programs import EXACT_OR_ELSE, linear_program
from pindown.relaxation.relaxed_model import RelaxedModel
from pindown.verification.tuning import LEAF_MAX_ENTRIES

if TYPE_CHECKING:
    from pindown.verification.unit_splitting import Part, UnitSplitting


@np.errstate(all="ignore")  # what leaves float64 proves nothing
def leaf(search: UnitSplitting, part: Part, deadline: Deadline) -> tuple[float, Array | None]:
    """Return a proved upper bound on the smallest form of a part, and a point to try.

    Args:
        search: The search that the part belongs to.
        part: Signs of all units of open sign.
        deadline: When to stop.

    Returns:
        The bound that the part has, or a negative number if it is proved; and where the program has its
        optimum, (d,), None if there was no program.
    """
    relaxed = search.descent([part]).relaxed
    low, high = (end.ravel() for end in relaxed.values[0])
    r, m, d = len(search.goal.rows), len(part.units), len(low)
    if (r + m) * (d + 1) > LEAF_MAX_ENTRIES or deadline.passed:
        return part.bound, None
    at_input = None if search.goal.at_input is None else search.goal.at_input[None]
    forms, offsets = relaxed.upper_forms(search.index, search.goal.rows[None], None, at_input)
    slopes, shifts = _signed_units(search, part, relaxed)
    slopes = np.concatenate([forms.reshape(r, d), slopes])
    shifts = np.concatenate([offsets[0] + search.goal.constant, shifts])
    scale = np.abs(slopes) @ np.maximum(np.abs(low), np.abs(high)) + np.abs(shifts)
    scale = np.where(scale > 0, scale, 1.0)
    rows, limits = np.column_stack([-slopes, scale]) / scale[:, None], shifts / scale
    if not (is_finite(rows) and is_finite(limits)):
        return part.bound, None
    cost = np.append(np.zeros(d), -1.0)
    lower, upper = np.append(low, -2.0), np.append(high, 2.0)
    found = linear_program(
        cost, rows, limits, lower=lower, upper=upper, attempts=EXACT_OR_ELSE, time=deadline
    )
    if not found.solved or found.x is None:
        return part.bound, None
    point = np.clip(found.x[:d], low, high)
    if found.x[d] >= 0.0:
        return part.bound, point
    return min(part.bound, _proved(search, part, np.maximum(found.multipliers, 0.0) / scale)), point


def _signed_units(search: UnitSplitting, part: Part, relaxed: RelaxedModel) -> tuple[Array, Array]:
    """Return ``s_j z_j`` as affine functions of the input, (m, d) and (m,), in the units' order."""
    d = relaxed.values[0].lower.size
    slopes, shifts = np.zeros((len(part.units), d)), np.zeros(len(part.units))
    for layer, j in enumerate(search.tensors):
        here = np.flatnonzero(search.layer_of[part.units] == layer)
        if not len(here):
            continue
        shape = relaxed.values[j].lower.shape[1:]
        form = np.zeros((len(here), int(np.prod(shape))))
        form[np.arange(len(here)), search.places[layer][part.units[here] - search.starts[layer]]] = 1.0
        slope, offset = relaxed.upper_forms(j, form.reshape(1, len(here), *shape))
        slopes[here] = slope.reshape(len(here), d) * part.signs[here, None]
        shifts[here] = offset[0] * part.signs[here]
    return slopes, shifts


def _proved(search: UnitSplitting, part: Part, multipliers: Array) -> float:
    """Return what weights of the forms and multipliers of the signs prove."""
    r = len(search.goal.rows)
    weights, signs = multipliers[:r], multipliers[r:]
    total = float(weights.sum())
    best = np.inf
    # Where nothing has the signs the forms need no weight: a little of it does no harm.
    for share in (total, 1e-3 * float(signs.max(initial=0.0)), 1e-6 * float(signs.max(initial=0.0))):
        if share > 0.0:
            held = weights / total if total > 0.0 else np.full(r, 1.0 / r)
            scaled = part._replace(weights=held, multipliers=part.signs * (signs / share))
            descent = search.descent([scaled])
            bounds = search.proved(descent)
            best = min(best, float(bounds[0]))
            if best < 0.0:
                search.told(search.kept([scaled], descent, bounds))
                break
    return best
