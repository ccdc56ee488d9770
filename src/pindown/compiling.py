"""Inner loops by two routes: as plain Python at once, as machine code when the work is worth a compiler.

Both run the same source. A loop is first run as Python, in which it takes some fifty times as long: what
a small problem needs is over before Numba would be loaded, let alone before a compiler (4 to 40 s) would
be done. Iterations are counted on the way. A call that takes too many is given up, its arguments are
put back, and machine code does it: soon if that is on disk from an earlier run, later if it has to be
compiled, and never while :func:`time_limit` says that a compiler would not finish in time. Where the
time is over a plain loop is given up too, if :func:`cut_at` says so.
"""

from __future__ import annotations

import builtins
import math
import os
import threading
import warnings
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from contextvars import ContextVar
from functools import cache, cached_property
from importlib.util import find_spec
from math import inf
from pathlib import Path
from types import FunctionType
from typing import Any, Literal, get_args

import numpy as np

from pindown.deadline import NEVER, Deadline
from pindown.extras import install_command
from pindown.machine_code import dispatcher, package_of

# Iterations of plain Python, about a microsecond each: before machine code is looked for on disk (Numba
# takes half a second to load), and before it is compiled.
BEFORE_LOADING = 300_000
BEFORE_COMPILING = 5_000_000
BETWEEN_LOOKS = 2_000  # at the clock; an iteration may call others, and then takes ten microseconds
# Arguments of more bytes are not put aside, to be put back: the work is not small.
_MAX_PUT_ASIDE = 50_000_000
# About what compiling takes, of all that one call needs, on one busy core.
COMPILE_SECONDS = {
    "pindown.geometry._compiled": 30.0,
    "pindown.learn.exact._compiled": 36.0,
    "pindown.learn.exact._cones": 12.0,
    "pindown.learn.segmented._compiled": 40.0,
    "pindown.learn.gates": 3.0,
}
VARIABLE = "PINDOWN_LOOPS"  # of the environment: "plain" or "compiled" allows one route alone

# How much longer a plain loop takes than machine code; to guess what work is worth.
PLAIN_SLOWNESS = 50.0

Route = Literal["plain", "compiled"]
_deadline: ContextVar[Deadline] = ContextVar("deadline", default=NEVER)
_cut: ContextVar[Deadline] = ContextVar("cut", default=NEVER)
_only: ContextVar[Route | None] = ContextVar("only", default=None)


# Functions that raise where machine code gives infinity, and those that give it too.
_SAFE: dict[Any, Any] = {math.log2: np.log2, math.ldexp: np.ldexp}


class _TooLongError(Exception):
    """Raised inside a loop that has taken all the iterations it was granted."""


class _Meter(threading.local):
    """Iterations of the plain loops of a thread."""

    used = 0
    granted: float = inf
    next_look: float = inf
    deadline = NEVER

    def grant(self, limit: float, deadline: Deadline) -> None:
        """Allow so many more iterations, until a deadline."""
        self.granted, self.deadline = self.used + limit, deadline
        self._look()

    def range(self, *limits: Any) -> range:
        """Return a range, and count its members; they are taken even if the loop is left early."""
        numbers = builtins.range(*limits)
        self.used += len(numbers) + 1
        if self.used > self.next_look:
            self._look()
        return numbers

    def _look(self) -> None:
        if self.used > self.granted:
            raise _TooLongError
        self.deadline.check()
        step = inf if self.deadline.end == inf else BETWEEN_LOOKS
        self.next_look = min(self.granted, self.used + step)


_meter = _Meter()
_namespaces: dict[str, dict[str, Any]] = {}  # of modules, with plain functions in place of loops


class Family:
    """The loops of one folder, which are compiled for one purpose.

    Attributes:
        name: The folder as a package.
        seconds: About what compiling all that one call needs takes.
        loops: The loops, in the order in which they were defined.
        used: Iterations of their plain forms so far.
    """

    known: dict[str, Family] = {}  # noqa: RUF012 - one for the process

    def __init__(self, name: str, seconds: float) -> None:
        self.name, self.seconds = name, seconds
        self.loops: list[Loop] = []
        self.used = 0


class Loop:
    """A function over arrays that runs as Python or as machine code."""

    def __init__(self, function: FunctionType, family: Family, options: dict[str, Any]) -> None:
        self._function, self.family, self._options = function, family, options
        self._direct: dict[tuple[bool, ...], Any] = {}
        self.__name__, self.__doc__ = function.__name__, function.__doc__
        self.__module__, self.__wrapped__ = function.__module__, function
        family.loops.append(self)

    def __call__(self, *args: Any) -> Any:
        """Run it by the route that the work so far, and the time, call for."""
        kind = tuple(arg is None for arg in args)  # loops are compiled apart for what is left out
        direct = self._direct.get(kind)
        if direct is not None and only_route() != "plain":
            return direct(*args)
        while not self._compiles_now(args):
            limit = self._granted(args)
            aside = None if limit == inf else _copied(args)
            used = _meter.used
            try:
                _meter.grant(limit, _cut.get())
                with np.errstate(all="ignore"):
                    return _as_compiled(self.plain(*map(_as_float64, args)))
            except _TooLongError:
                _put_back(args, aside)
            finally:
                _meter.grant(inf, NEVER)
                self.family.used += _meter.used - used
        self._direct[kind] = self.dispatcher
        return self.dispatcher(*args)

    def _compiles_now(self, args: tuple[Any, ...]) -> bool:
        """Whether the plain route has been used up."""
        if only := only_route():
            return only == "compiled"
        if self.family.used < BEFORE_LOADING and _bytes(args) <= _MAX_PUT_ASIDE:
            return False
        if not has_compiler():
            if self.family.used >= BEFORE_COMPILING:
                _advise(self.family)
            return False
        if self.is_compiled(args):
            return True
        worth_it = self.family.used >= BEFORE_COMPILING or _bytes(args) > _MAX_PUT_ASIDE
        return worth_it and _deadline.get().left > self.family.seconds

    def _granted(self, args: tuple[Any, ...]) -> float:
        """How many iterations the next call may take before other routes are looked at again."""
        if only_route() or not has_compiler():
            return inf
        if self.family.used < BEFORE_LOADING:
            return BEFORE_LOADING - self.family.used
        if _deadline.get().left <= self.family.seconds or _bytes(args) > _MAX_PUT_ASIDE:
            return inf
        return max(BEFORE_COMPILING - self.family.used, 1)

    def is_compiled(self, args: tuple[Any, ...]) -> bool:
        """Whether machine code for such arguments is in memory or on disk."""
        kinds = tuple(map(self.dispatcher.typeof_pyval, args))
        return kinds in self.signatures()

    def signatures(self) -> list[tuple[Any, ...]]:
        """Return the argument types for which there is machine code, in memory or on disk."""
        found = [tuple(kinds) for kinds in self.dispatcher.overloads]
        files: Any = getattr(getattr(self.dispatcher, "_cache", None), "_cache_file", None)
        return [*found, *files.signatures()] if hasattr(files, "signatures") else found

    @cached_property
    def dispatcher(self) -> Any:
        """The function as Numba compiles it."""
        return dispatcher(self._function, self._options)

    @cached_property
    def plain(self) -> Any:
        """The function as Python, calling others of its kind as Python too."""
        function = self._function
        names = _plain_names(function.__module__, function.__globals__)
        return FunctionType(
            function.__code__, names, function.__name__, function.__defaults__, function.__closure__
        )

    @property
    def _numba_type_(self) -> Any:
        """What Numba takes a loop for that is called by another."""
        return self.dispatcher._numba_type_


def _plain_names(module: str, names: dict[str, Any]) -> dict[str, Any]:
    """Return the names of a module, each loop among them in its plain form."""
    if module not in _namespaces:
        known = _namespaces[module] = {**names, "range": _meter.range}
        known.update({name: value.plain for name, value in names.items() if isinstance(value, Loop)})
        known.update({name: _SAFE[value] for name, value in names.items() if _is_unsafe(value)})
    return _namespaces[module]


def _is_unsafe(value: Any) -> bool:
    return callable(value) and any(value is function for function in _SAFE)


def compiler(folder: Path, **options: Any) -> Callable[[Callable[..., Any]], Any]:
    """Return a decorator for inner loops.

    Args:
        folder: Where the loops that call each other live; an edit of any of its files compiles anew.
        options: Further options of ``numba.njit``.
    """
    name = package_of(folder)
    family = Family.known.setdefault(name, Family(name, COMPILE_SECONDS.get(name, 0.0)))

    def made(function: Callable[..., Any]) -> Any:
        assert isinstance(function, FunctionType)
        return Loop(function, family, options)

    return made


@contextmanager
def time_limit(deadline: Deadline) -> Iterator[None]:
    """Start no compiler within that would not be done by a deadline."""
    earlier = _deadline.get()
    token = _deadline.set(min(earlier, deadline, key=lambda moment: moment.end))
    try:
        yield
    finally:
        _deadline.reset(token)


@contextmanager
def cut_at(deadline: Deadline) -> Iterator[None]:
    """Give up plain loops within that are not done by a deadline.

    What they were to write is then half written: for callers that throw it away.

    Raises:
        OutOfTime: From within. Machine code is not given up; it has fifty times less to do.
    """
    token = _cut.set(min(_cut.get(), deadline, key=lambda moment: moment.end))
    try:
        yield
    finally:
        _cut.reset(token)


@contextmanager
def by(route: Route) -> Iterator[None]:
    """Take one route within, whatever it costs."""
    token = _only.set(route)
    try:
        yield
    finally:
        _only.reset(token)


def only_route() -> Route | None:
    """Return the one route that is allowed, None if there is a choice."""
    named = _only.get() or os.environ.get(VARIABLE)
    return next((route for route in get_args(Route) if route == named), None)


@cache
def has_compiler() -> bool:
    """Whether Numba is installed; it is not loaded to find out."""
    try:
        return find_spec("numba") is not None
    except ImportError:
        return False


def slowness() -> float:
    """Return how much longer work that is not small takes here than where Numba is installed."""
    return 1.0 if has_compiler() else PLAIN_SLOWNESS


@cache
def _advise(family: Family) -> None:
    warnings.warn(
        f"this is much work for loops that are not compiled ({family.name}); "
        f"some fifty times faster: {install_command('fast')}",
        RuntimeWarning,
        stacklevel=4,
    )


def _as_float64(value: Any) -> Any:
    """Return an argument whose divisions by zero give infinity, as in machine code."""
    return np.float64(value) if isinstance(value, float) else value


def _as_compiled(value: Any) -> Any:
    """Return a result as Numba would: numbers as those of Python."""
    if isinstance(value, np.generic):
        return value.item()
    if isinstance(value, tuple):
        made = tuple(map(_as_compiled, value))
        return type(value)(*made) if hasattr(value, "_fields") else made
    return value


def _copied(value: Any) -> Any:
    """Copy all arrays in nested tuples."""
    if isinstance(value, np.ndarray):
        return value.copy()
    return tuple(map(_copied, value)) if isinstance(value, tuple) else None


def _put_back(value: Any, aside: Any) -> None:
    """Write what was copied back to where it came from."""
    if isinstance(value, np.ndarray):
        if value.flags.writeable:
            value[...] = aside
    elif isinstance(value, tuple):
        for part, copy in zip(value, aside, strict=True):
            _put_back(part, copy)


def _bytes(value: Any) -> int:
    if isinstance(value, np.ndarray):
        return value.nbytes
    return sum(map(_bytes, value)) if isinstance(value, tuple) else 0
