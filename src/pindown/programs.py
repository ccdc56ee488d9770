r"""One door to linear and integer programs, solved by HiGHS.

.. math::
    \min_x c \cdot x \quad \text{such that} \quad A x \le b, \quad E x = f, \quad l \le x \le u,

and, in an integer program, some of the variables are whole. The solver keeps constraints to a tolerance
only: who proves something with its answer takes :data:`SOLVER_TOLERANCE` off, or proves it anew from the
multipliers.

Huangfu and Hall 2018, "Parallelizing the dual revised simplex method" (HiGHS).
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from math import inf, isfinite
from typing import Any, Literal, NamedTuple, TypeAlias

import numpy as np
from numpy.typing import ArrayLike

from pindown.affine import Array
from pindown.deadline import Deadline

# HiGHS accepts constraints and integers of integer programs that are off by this; SciPy cannot change
# it.
SOLVER_TOLERANCE = 1e-6
# The least that HiGHS takes for linear programs; by default it is 1e-7.
LP_TOLERANCE = 1e-10
# HiGHS takes coefficients of at most this size for zero.
IGNORED_COEFFICIENT = 1e-9
# HiGHS refuses programs with coefficients of 1e15; beyond this its absolute tolerances mean nothing.
MAX_COEFFICIENT = 1e12

Status: TypeAlias = Literal["optimal", "infeasible", "unbounded", "time", "failed"]
Method: TypeAlias = Literal["highs", "highs-ds", "highs-ipm"]

_WORDS: dict[int, Status] = {0: "optimal", 3: "unbounded"}  # of SciPy's numbers
_LIMIT, _INFEASIBLE = 1, 2


class Attempt(NamedTuple):
    """One way to solve a linear program.

    Attributes:
        method: HiGHS's method: ``"highs"`` lets it choose, ``"highs-ds"`` is the dual simplex method,
            whose answer is a vertex, ``"highs-ipm"`` an interior point method.
        tolerance: To which constraints and slopes are kept; None for the solver's own.
        presolve: Whether the program is simplified first.
    """

    method: Method = "highs"
    tolerance: float | None = None
    presolve: bool = True


DEFAULT = Attempt()
# As exactly as HiGHS can.
EXACT = Attempt(tolerance=LP_TOLERANCE)
# Rarely simplifying goes astray, or the tightest tolerances are too tight.
EXACT_OR_ELSE = (EXACT, EXACT._replace(presolve=False), DEFAULT, Attempt(presolve=False))


class Rows(NamedTuple):
    """Constraints ``lower <= matrix @ x <= upper``; the matrix may be sparse."""

    matrix: Any
    lower: ArrayLike
    upper: ArrayLike


@dataclass(frozen=True, eq=False)
class Solution:
    """What the solver says of a program.

    Attributes:
        status: ``"optimal"``, ``"infeasible"`` (proved: programs that the solver cannot read have
            ``"failed"``), ``"unbounded"``, ``"time"`` if a limit was reached, or ``"failed"``.
        x: The variables; None if no point was found. A point of an integer program that was stopped by
            its time fulfils the constraints.
        value: The cost there; NaN without a point.
        bound: No point costs less, up to the tolerance; minus infinity if nothing is known.
        multipliers: For each row of ``A x <= b`` of a linear program what a higher limit would save, not
            negative but for the tolerance; empty if there are none.
        equal_multipliers: The same for the rows of ``E x = f``, of any sign.
        message: Message of the solver.
    """

    status: Status
    x: Array | None
    value: float
    bound: float
    multipliers: Array
    equal_multipliers: Array
    message: str

    @property
    def solved(self) -> bool:
        """Whether an optimum was found."""
        return self.status == "optimal"

    def optimum(self, what: str = "a linear program") -> Array:
        """Return the variables of the optimum.

        Args:
            what: Was to be solved, for the error.

        Raises:
            ArithmeticError: If none was found.
        """
        if self.status != "optimal" or self.x is None:
            raise ArithmeticError(f"{what} was not solved: {self.message}")
        return self.x


def linear_program(
    cost: ArrayLike,
    rows: Any = None,
    limits: ArrayLike | None = None,
    *,
    equal: tuple[Any, ArrayLike] | None = None,
    lower: ArrayLike = -inf,
    upper: ArrayLike = inf,
    attempts: Attempt | Sequence[Attempt] = DEFAULT,
    time: Deadline | float | None = None,
) -> Solution:
    """Minimise ``cost . x`` over ``rows @ x <= limits`` and bounds.

    Args:
        cost: Slopes of the cost, (n,).
        rows: Matrix (m, n), also a sparse one; None for no rows.
        limits: Their limits, (m,).
        equal: A matrix and what ``matrix @ x`` must be.
        lower: Least value of each variable, or of all.
        upper: Largest value of each variable, or of all.
        attempts: How to solve it; several are tried until one finds an optimum, and the last one's word
            counts if none does.
        time: When to stop, or after how many seconds each attempt stops.

    >>> found = linear_program([1.0, 1.0], [[-1.0, -2.0]], [-2.0], lower=0.0)
    >>> found.status, found.x, found.value, found.multipliers
    ('optimal', array([0., 1.]), 1.0, array([0.5]))
    >>> linear_program([1.0]).status
    'unbounded'
    """
    from scipy.optimize import linprog

    cost = np.asarray(cost, dtype=np.float64)
    bounds = np.empty((len(cost), 2))
    bounds[:, 0], bounds[:, 1] = lower, upper
    A_eq, b_eq = (None, None) if equal is None else equal
    result: Any = None
    for attempt in [attempts] if isinstance(attempts, Attempt) else attempts:
        options: dict[str, Any] = {"presolve": attempt.presolve, "time_limit": _seconds(time)}
        if attempt.tolerance is not None:
            options["primal_feasibility_tolerance"] = attempt.tolerance
            options["dual_feasibility_tolerance"] = attempt.tolerance
        result = linprog(
            cost, rows, limits, A_eq, b_eq, bounds=bounds, method=attempt.method, options=options
        )
        if result.status == 0:
            break
    value = _value(result)
    return Solution(
        status=_status(result),
        x=_point(result),
        value=value,
        bound=value if result.status == 0 else -inf,
        multipliers=_savings(result.ineqlin),
        equal_multipliers=_savings(result.eqlin),
        message=str(result.message),
    )


def integer_program(
    cost: ArrayLike,
    constraints: Rows | Sequence[Rows],
    integrality: ArrayLike,
    *,
    lower: ArrayLike = -inf,
    upper: ArrayLike = inf,
    time: Deadline | float | None = None,
) -> Solution:
    """Minimise ``cost . x`` over rows and bounds, where some variables are whole.

    The search goes on until the cost of the best point equals its bound, to the solver's tolerance.

    Args:
        cost: Slopes of the cost, (n,).
        constraints: What must hold.
        integrality: 1 for variables that are whole, 0 for others, (n,).
        lower: Least value of each variable, or of all.
        upper: Largest value of each variable, or of all.
        time: When to stop, or after how many seconds.

    >>> knapsack = Rows([[3.0, 4.0]], -inf, 5.0)
    >>> found = integer_program([-2.0, -3.0], knapsack, [1, 1], lower=0.0, upper=1.0)
    >>> found.x, found.value, found.bound
    (array([0., 1.]), -3.0, -3.0)
    """
    from scipy.optimize import Bounds, LinearConstraint, milp

    rows = [constraints] if isinstance(constraints, Rows) else constraints
    options: dict[str, Any] = {"mip_rel_gap": 0.0}
    seconds = _seconds(time)
    if seconds is not None:
        options["time_limit"] = seconds
    result = milp(
        np.asarray(cost, dtype=np.float64),
        integrality=np.asarray(integrality),
        bounds=Bounds(lower, upper),
        constraints=[LinearConstraint(*part) for part in rows],
        options=options,
    )
    value, dual = _value(result), result.mip_dual_bound
    if dual is None and result.status == 0:  # no variable is whole: the optimum is its own bound
        dual = value
    return Solution(
        status=_status(result),
        x=_point(result),
        value=value,
        bound=float(dual) if dual is not None and isfinite(dual) else -inf,
        multipliers=np.zeros(0),
        equal_multipliers=np.zeros(0),
        message=str(result.message),
    )


def _status(result: Any) -> Status:
    """Translate SciPy's number; it gives unreadable programs the number of infeasible ones."""
    if result.status == _INFEASIBLE and "infeasible" in result.message:
        return "infeasible"
    if result.status == _LIMIT:
        return "time"
    return _WORDS.get(result.status, "failed")


def _seconds(time: Deadline | float | None) -> float | None:
    seconds = time.left if isinstance(time, Deadline) else time
    return None if seconds is None or seconds == inf else max(float(seconds), 0.0)


def _point(result: Any) -> Array | None:
    return None if result.x is None else np.asarray(result.x, dtype=np.float64)


def _value(result: Any) -> float:
    return float("nan") if result.fun is None else float(result.fun)


def _savings(rows: Any) -> Array:
    return np.zeros(0) if rows.marginals is None else -np.asarray(rows.marginals, dtype=np.float64)
