"""What users hand in, checked in one wording: what must be, what came.

Every check returns the value in the form that code works with, or raises :class:`ParameterError`, which
is both a ``ValueError`` and a ``TypeError``: whether ``"3"`` is of the wrong type or of the wrong value
is for nobody to guess. Booleans are not numbers here.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterable
from math import inf, isfinite, isnan
from numbers import Integral, Real
from typing import Any, NoReturn, TypeVar

import numpy as np
from numpy.typing import ArrayLike

from pindown.affine import Array
from pindown.errors import ParameterError

T = TypeVar("T")


def refuse(name: str, wanted: str, got: object) -> NoReturn:
    """Raise the error for a parameter: what it must be, and what it is.

    >>> refuse("width", "an integer of at least 1", 0)
    Traceback (most recent call last):
    pindown.errors.ParameterError: width must be an integer of at least 1; got 0.
    """
    raise ParameterError(f"{name} must be {wanted}; got {got!r}.")


def is_integer(value: Any, least: int = 1) -> bool:
    """Return whether the value is an integer of at least ``least``.

    >>> is_integer(3), is_integer(3.0), is_integer(True), is_integer(0)
    (True, False, False, False)
    """
    return isinstance(value, Integral) and not _is_boolean(value) and int(value) >= least


def is_number(value: Any, low: float = -inf, high: float = inf) -> bool:
    """Return whether the value is a finite real number from ``low`` to ``high``.

    >>> is_number(0.5, 0, 1), is_number(np.nan), is_number("1"), is_number(True)
    (True, False, False, False)
    """
    if not isinstance(value, Real) or _is_boolean(value):
        return False
    return isfinite(value) and low <= float(value) <= high


def _is_boolean(value: Any) -> bool:
    return isinstance(value, bool | np.bool_)


def integer(name: str, value: Any, *, least: int = 1, most: int | None = None) -> int:
    """Return an integer from ``least`` to ``most``.

    >>> integer("width", np.int64(3))
    3
    """
    if not is_integer(value, least) or (most is not None and value > most):
        end = "" if most is None else f" and at most {most}"
        refuse(name, f"an integer of at least {least}{end}", value)
    return int(value)


def at_least(least: int, **values: Any) -> None:
    """Refuse, by name, what is not an integer of at least ``least``.

    >>> at_least(1, depth=2, width=0)
    Traceback (most recent call last):
    pindown.errors.ParameterError: width must be an integer of at least 1; got 0.
    """
    for name, value in values.items():
        integer(name, value, least=least)


def number(
    name: str,
    value: Any,
    low: float = -inf,
    high: float = inf,
    *,
    above: bool = False,
    below: bool = False,
    infinite: bool = False,
) -> float:
    """Return a real number of an interval.

    Args:
        name: Name of the parameter.
        value: What was given.
        low: Its least value.
        high: Its largest value.
        above: Whether ``low`` itself is left out.
        below: Whether ``high`` itself is left out.
        infinite: Whether infinity is accepted too.

    >>> number("step", 0.5, 0.0, 1.0)
    0.5
    >>> number("step", 0.0, 0.0, 1.0, above=True)
    Traceback (most recent call last):
    pindown.errors.ParameterError: step must be a number above 0 and at most 1; got 0.0.
    """
    x = float(value) if isinstance(value, Real) and not _is_boolean(value) else float("nan")
    fits = not isnan(x) and low <= x <= high and (infinite or isfinite(x))
    if not fits or (above and x == low) or (below and x == high):
        refuse(name, _numbers_in(low, high, above, below, infinite), value)
    return x


def _numbers_in(low: float, high: float, above: bool, below: bool, infinite: bool) -> str:
    ends = []
    if low > -inf:
        ends.append(f"{'above' if above else 'of at least'} {low:g}")
    if high < inf:
        ends.append(f"{'below' if below else 'at most'} {high:g}")
    kind = "a number" if infinite or (low > -inf and high < inf) else "a finite number"
    return " ".join([kind, " and ".join(ends)]).strip()


def positive(name: str, value: Any, *, zero: bool = False, infinite: bool = False) -> float:
    """Return a number above zero, or not below it.

    >>> positive("gamma", -1)
    Traceback (most recent call last):
    pindown.errors.ParameterError: gamma must be a finite number above 0; got -1.
    """
    return number(name, value, 0.0, above=not zero, infinite=infinite)


def probability(name: str, value: Any) -> float:
    """Return a number strictly between zero and one.

    >>> probability("delta", 0.05)
    0.05
    """
    return number(name, value, 0.0, 1.0, above=True, below=True)


def share(name: str, value: Any) -> float:
    """Return a number from zero to one.

    >>> share("risk", 0)
    0.0
    """
    return number(name, value, 0.0, 1.0)


def choice(name: str, value: Any, options: Collection[str]) -> str:
    """Return one of some words.

    >>> choice("norm", "l3", ("l2", "linf"))
    Traceback (most recent call last):
    pindown.errors.ParameterError: norm must be one of 'l2', 'linf'; got 'l3'.
    """
    if not isinstance(value, str) or value not in options:
        refuse(name, f"one of {', '.join(map(repr, options))}", value)
    return value


def boolean(name: str, value: Any) -> bool:
    """Return a truth value, also NumPy's; numbers are none.

    >>> boolean("verbose", 1)
    Traceback (most recent call last):
    pindown.errors.ParameterError: verbose must be True or False; got 1.
    """
    if not _is_boolean(value):
        refuse(name, "True or False", value)
    return bool(value)


def integers(name: str, values: Any, *, least: int = 1) -> tuple[int, ...]:
    """Return a sequence of integers of at least ``least``, possibly empty.

    >>> integers("hidden", [32, 32])
    (32, 32)
    """
    found = tuple(values) if isinstance(values, Iterable) and not isinstance(values, str) else None
    if found is None or not all(is_integer(value, least) for value in found):
        refuse(name, f"a sequence of integers of at least {least}", values)
    return tuple(int(value) for value in found)


def optional(check: Callable[..., T], name: str, value: Any, **limits: Any) -> T | None:
    """Return None, or what another check makes of the value.

    Args:
        check: One of the checks of this module.
        name: Name of the parameter.
        value: What was given.
        limits: Further arguments of the check.

    >>> optional(integer, "max_iter", None), optional(integer, "max_iter", 3)
    (None, 3)
    >>> optional(integer, "max_iter", 0)
    Traceback (most recent call last):
    pindown.errors.ParameterError: max_iter must be an integer of at least 1, or None; got 0.
    """
    if value is None:
        return None
    try:
        return check(name, value, **limits)
    except ParameterError as error:
        raise ParameterError(str(error).replace("; got", ", or None; got", 1)) from None


def array(name: str, values: Any) -> Array:
    """Return real numbers as float64, those of tensors too; they may be infinite or NaN.

    >>> array("X", [1, 2])
    array([1., 2.])
    """
    if hasattr(values, "detach"):
        values = values.detach().cpu().numpy()
    try:
        return np.asarray(values, dtype=np.float64)
    except (TypeError, ValueError) as error:
        raise ParameterError(f"{name} must hold real numbers: {error}.") from error


def table(X: ArrayLike, name: str = "X") -> Array:
    """Return inputs as a finite matrix (n, d) with at least one row and column.

    >>> table([[1, 2]]).shape
    (1, 2)
    """
    found = array(name, X)
    if found.ndim != 2 or found.size == 0 or not np.isfinite(found).all():
        raise ParameterError(
            f"{name} must be a finite table of samples by features, at least one of each; got shape "
            f"{found.shape}{_not_finite(found)}."
        )
    return found


def vector(name: str, values: ArrayLike, length: int) -> Array:
    """Return finite numbers of a given length.

    >>> vector("start", [1, 2], 2)
    array([1., 2.])
    """
    found = array(name, values)
    if found.shape != (length,) or not np.isfinite(found).all():
        raise ParameterError(
            f"{name} must be {length} finite numbers; got shape {found.shape}{_not_finite(found)}."
        )
    return found


def labelled(X: ArrayLike, y: ArrayLike) -> tuple[Array, Array]:
    """Return inputs (n, d) and one finite target for each.

    >>> [part.shape for part in labelled([[1.0, 2.0]], [3.0])]
    [(1, 2), (1,)]
    """
    found = table(X)
    return found, vector("y", y, len(found))


def _not_finite(values: Array) -> str:
    return "" if np.isfinite(values).all() else " with values that are not finite"
