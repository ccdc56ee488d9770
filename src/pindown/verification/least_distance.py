r"""The point of a polyhedron that is nearest to a given one.

.. math::
    \min_{x'} \|x' - x\|_p \quad \text{such that} \quad G x' \le h.

In l2 this is a least-distance problem, solved through its dual, a least-squares problem with signs. In
l1 and linf it is a linear program.

Lawson and Hanson 1974, "Solving Least Squares Problems", chapter 23 (least distance programming).
"""

from __future__ import annotations

from math import inf
from typing import NamedTuple

import numpy as np

from pindown.affine import Array
from pindown.programs import EXACT, linear_program
from pindown.relaxation.lp_balls import Norm, lengths
from pindown.verification.tuning import NEAREST_REFINEMENTS

# A row may be violated by this share of the distance or of its own terms: what the solvers leave.
FEASIBLE = 1e-8
# The squared residual of the dual is 1 / (1 + distance^2), in units of the worst violation; at 0 the
# rows contradict each other, and below this float64 cannot tell that from a distance of a million.
_NO_SOLUTION = 1e-12
# The solver of linear programs takes entries below 1e-9 for zero; what it leaves out may move a row by
LEFT_OUT, LEFT_OUT_MOVES = 2e-9, 1e-9  # this much, in units of the worst violation.


class Nearest(NamedTuple):
    """The nearest point (d,), its distance, and the multipliers of the rows that hold it there, (m,)."""

    point: Array
    distance: float
    weights: Array


@np.errstate(over="ignore", invalid="ignore")  # what leaves float64 is no answer, and said so
def nearest_point(G: Array, h: Array, x: Array, norm: Norm, *, limit: float = inf) -> Nearest | None:
    """Return the nearest point with ``G x' <= h``, or None if there is none.

    Args:
        G: Rows of the polyhedron, (m, d).
        h: Their limits, (m,).
        x: The point to be near to, (d,).
        norm: In which nearness is measured.
        limit: Points farther than this do not matter: None may be returned for them, too.

    Raises:
        ArithmeticError: If the solver cannot tell.

    >>> corner = nearest_point(-np.eye(2), -np.ones(2), np.zeros(2), "l2")
    >>> corner.point, round(corner.distance, 9)
    (array([1., 1.]), 1.414213562)
    """
    sizes = lengths(G, "l2")
    flat = sizes == 0.0
    if np.any(h[flat] < 0.0):
        return None
    rows, limits = G[~flat] / sizes[~flat, None], h[~flat] / sizes[~flat]
    room = limits - rows @ x
    weights = np.zeros(len(G))
    if not len(room) or room.min() >= 0.0:
        return Nearest(x.copy(), 0.0, weights)
    unit = -float(room.min())  # in l2 it is no nearer than that: a length to measure in
    if norm == "l2":
        scaled = _least_length(rows, room / unit, limit / unit)
    else:
        scaled = _least_program(rows, room / unit, norm, limit / unit)
    if scaled is None:
        return None
    change = unit * scaled[0]
    weights[~flat] = scaled[1] / sizes[~flat]
    excess = rows @ change - room
    scale = float(np.max(np.abs(change))) + np.abs(room)
    if not np.all(excess <= FEASIBLE * scale):
        raise ArithmeticError("the nearest point of a polyhedron was not found to float64 accuracy.")
    return Nearest(x + change, float(lengths(change, norm)), weights)


def contradiction(G: Array, h: Array, x: Array) -> Array:
    """Return about the multipliers with which rows contradict each other, (m,), if they do.

    >>> contradiction(np.array([[1.0], [-1.0]]), np.array([0.0, -1.0]), np.zeros(1)).round(6)
    array([1., 1.])

    Farkas 1902.
    """
    sizes = lengths(G, "l2")
    scale = np.where(sizes > 0, sizes, 1.0)
    with np.errstate(over="ignore", invalid="ignore"):
        rows = G / scale[:, None]
        room = h / scale - rows @ x
        worst = float(room.min(initial=0.0))
        if not worst < 0.0:
            return np.zeros(len(G))
        return _dual_weights(rows, -room / worst)[0] / scale


def _dual_weights(rows: Array, room: Array) -> tuple[Array, Array]:
    """Return the multipliers of the least-distance problem, and what they leave."""
    from scipy.optimize import nnls

    dual = np.concatenate([-rows.T, -room[None]])
    goal = np.zeros(len(dual))
    goal[-1] = 1.0
    if not np.isfinite(dual).all():
        raise ArithmeticError("rows of a polyhedron leave float64.")
    try:
        weights, _ = nnls(dual, goal, maxiter=20 * max(dual.shape))
    except RuntimeError:  # it cycles where rows coincide
        raise ArithmeticError("a least-squares problem with signs did not converge.") from None
    return weights, dual @ weights - goal


def _least_length(rows: Array, room: Array, limit: float) -> tuple[Array, Array] | None:
    """Return the shortest r with ``rows @ r <= room`` in l2, and multipliers."""
    weights, residual = _dual_weights(rows, room)
    if -residual[-1] <= _NO_SOLUTION:
        far = limit**2 > 1.0 / _NO_SOLUTION  # then a point so far away would matter
        if far and _least_program(rows, room, "linf", limit) is not None:
            raise ArithmeticError("rows contradict each other almost; float64 cannot tell.")
        return None
    change = np.asarray(-residual[:-1] / residual[-1])
    return _refined(change, rows[weights > 0], room[weights > 0]), weights


def _refined(change: Array, rows: Array, room: Array) -> Array:
    """Put a change exactly on its active rows: the shortest change that fulfils them as equations."""
    for _ in range(NEAREST_REFINEMENTS):
        step, *_ = np.linalg.lstsq(rows, room - rows @ change, rcond=None)
        change = change + step
    return change


def _least_program(rows: Array, room: Array, norm: Norm, limit: float) -> tuple[Array, Array] | None:
    """Return the shortest r with ``rows @ r <= room`` in l1 or linf, and multipliers."""
    if not np.isfinite(room).all():
        raise ArithmeticError("limits of a polyhedron leave float64.")
    lost = np.where(np.abs(rows) < LEFT_OUT, np.abs(rows), 0.0).sum(axis=1).max()
    if lost > 0.0 and not lost * limit <= LEFT_OUT_MOVES:
        raise ArithmeticError("a linear program has entries too small for its solver.")
    m, d = rows.shape
    if norm == "linf":  # variables r and their largest size
        eye, ones = np.eye(d), np.ones((d, 1))
        A = np.block([[rows, np.zeros((m, 1))], [eye, -ones], [-eye, -ones]])
        b = np.concatenate([room, np.zeros(2 * d)])
        cost, lower = np.eye(1, d + 1, d)[0], np.append(np.full(d, -inf), 0.0)
    else:  # variables are the positive and negative parts of r
        A, b = np.concatenate([rows, -rows], axis=1), room
        cost, lower = np.ones(2 * d), np.zeros(2 * d)
    found = linear_program(cost, A, b, lower=lower, attempts=EXACT)
    if found.status == "infeasible":
        return None
    x = found.optimum()
    change = x[:d] if norm == "linf" else x[:d] - x[d:]
    return change, np.maximum(found.multipliers[:m], 0.0)
