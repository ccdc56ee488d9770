"""Names that go away: they work for one minor release more, and say what to use instead."""

from __future__ import annotations

import functools
import warnings
from collections.abc import Callable
from typing import ParamSpec, TypeVar

P = ParamSpec("P")
R = TypeVar("R")


def deprecated(*, instead: str, removed_in: str) -> Callable[[Callable[P, R]], Callable[P, R]]:
    """Return a decorator for a function that will be removed.

    Args:
        instead: What to use, as a user would write it.
        removed_in: The version without it.

    >>> @deprecated(instead="abs(x)", removed_in="0.3")
    ... def size(x):
    ...     return abs(x)
    >>> with warnings.catch_warnings(record=True) as said:
    ...     size(-2), str(said[0].message)
    (2, 'size will be removed in pindown 0.3; use abs(x).')
    """

    def decorator(function: Callable[P, R]) -> Callable[P, R]:
        name = function.__qualname__
        message = f"{name} will be removed in pindown {removed_in}; use {instead}."

        @functools.wraps(function)
        def warned(*args: P.args, **kwargs: P.kwargs) -> R:
            warnings.warn(message, FutureWarning, stacklevel=2)
            return function(*args, **kwargs)

        return warned

    return decorator
