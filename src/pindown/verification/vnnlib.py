"""VNN-LIB files, versions 1.0 and 2.0: properties as other verifiers read them.

A file asserts what holds where the property is *violated*; see :mod:`pindown.verification.properties`.
All assertions together are written as a union of conjunctions, and bounds of single inputs become the
boxes of the unsafe sets. Read are

* ``declare-const`` and ``declare-fun`` of ``X_0, X_1, ..., Y_0, Y_1, ...``, or ``declare-network`` with
  one input and one output tensor each, ``isomorphic-to`` and ``equal-to``;
* ``assert`` with ``and``, ``or``, ``not``, ``<=``, ``>=``, ``<``, ``>``, ``=``, ``==``, ``!=`` and terms
  that are linear: ``+``, ``-``, ``*``, and ``/`` by numbers; a comparison may also stand between its
  operands.

Inputs of several networks that are asserted to be equal are one free input that they all read.
"""

from __future__ import annotations

import gc
from collections.abc import Iterable, Iterator, Sequence
from contextlib import contextmanager
from fractions import Fraction
from os import PathLike
from pathlib import Path

import numpy as np
from numpy.typing import NDArray

from pindown.errors import ModelFileError, PropertyFileError
from pindown.io.files import read_bytes, read_gzip, require_file
from pindown.text import printable
from pindown.verification._vnnlib.conjunctions import Alternatives, Inequality, conjunctions
from pindown.verification._vnnlib.networks import Network
from pindown.verification._vnnlib.rounded_sets import unsafe_sets
from pindown.verification._vnnlib.syntax import Statements
from pindown.verification.properties import Property

MAX_BYTES = 256 * 2**20  # of a property, unpacked; the largest published ones have tens of megabytes


def read_vnnlib(path: str | PathLike[str]) -> Property:
    """Read a property file, ``.vnnlib`` or ``.vnnlib.gz``.

    Args:
        path: The file.

    Raises:
        PropertyFileError: If it is missing, damaged or too large, if it says what is not read here
            (with line and column), or if an input is not bounded.

    Example:
        >>> from tempfile import TemporaryDirectory
        >>> text = "(declare-const X_0 Real) (declare-const Y_0 Real)"
        >>> text += "(assert (and (>= X_0 0) (<= X_0 1))) (assert (or (<= Y_0 -1) (>= Y_0 (+ X_0 2))))"
        >>> with TemporaryDirectory() as folder:
        ...     _ = Path(folder, "small.vnnlib").write_text(text)
        ...     print(read_vnnlib(Path(folder, "small.vnnlib")))
        for all inputs in a box (0 <= x_1 <= 1): y_1 > -1, y_1 - x_1 < 2
    """
    file = Path(path)
    try:
        return property_of(_text(file))
    except PropertyFileError as error:
        raise PropertyFileError(f"{printable(str(file))}: {error}") from None
    except MemoryError:
        raise PropertyFileError(f"{printable(str(file))}: it needs more memory than there is.") from None


def property_of(text: str) -> Property:
    """Return the property that a text in VNN-LIB states.

    >>> property_of("(declare-const X_0 Real) (declare-const Y_0 Real) (assert (<= X_0 1)")
    Traceback (most recent call last):
    pindown.errors.PropertyFileError: line 1, column 51: this parenthesis is never closed.
    """
    with _nothing_collected():
        return _property_of(Statements(text))


def _property_of(stated: Statements) -> Property:
    networks = stated.networks.finished()
    n_inputs = tuple(each.inputs.size for each in networks)
    n_outputs = tuple(each.outputs.size for each in networks)
    asserted: Iterable[Alternatives] = stated.asserted
    free = list(range(sum(n_inputs)))
    if len(networks) > 1:
        free = _merged(len(free), stated.asserted)
        asserted = ([[_renamed(each, free) for each in part] for part in a] for a in stated.asserted)
    first: dict[int, int] = {}
    for number, place in enumerate(free):
        first.setdefault(place, number)
    base, parts = conjunctions(asserted)
    unsafe = unsafe_sets(
        base, parts, len(first), sum(n_outputs), lambda i: stated.networks.input_name(first[i])
    )
    if len(networks) == 1:
        return Property(unsafe, n_inputs, n_outputs)
    reads = tuple(_numbers(each, free) for each in networks)
    return Property(unsafe, n_inputs, n_outputs, reads, tuple(each.model for each in networks))


@contextmanager
def _nothing_collected() -> Iterator[None]:
    """Pause the search for circles: there are none here, and it takes a third of a large file's time."""
    was_on = gc.isenabled()
    gc.disable()
    try:
        yield
    finally:
        if was_on:
            gc.enable()


def _merged(n: int, asserted: Iterable[Alternatives]) -> list[int]:
    """Return for every input which free input it is: those that are asserted to be equal are one."""
    root = list(range(n))

    def find(i: int) -> int:
        while root[i] != i:
            root[i] = root[root[i]]
            i = root[i]
        return i

    for alternatives in asserted:
        for each in alternatives[0] if len(alternatives) == 1 else ():
            if each.relation == "=" and each.limit == 0 and len(each.terms) == 2:
                (i, a), (j, b) = each.terms.items()
                if i >= 0 and j >= 0 and a == -b:
                    low, high = sorted((find(i), find(j)))
                    root[high] = low
    numbers: dict[int, int] = {}
    return [numbers.setdefault(find(i), len(numbers)) for i in range(n)]


def _renamed(inequality: Inequality, free: Sequence[int]) -> Inequality:
    terms: dict[int, int | Fraction] = {}
    for v, c in inequality.terms.items():
        name = free[v] if v >= 0 else v
        terms[name] = terms.get(name, 0) + c
    return inequality._replace(terms={v: c for v, c in terms.items() if c})


def _numbers(network: Network, free: Sequence[int]) -> NDArray[np.intp]:
    start = network.inputs.start
    return np.array(free[start : start + network.inputs.size], dtype=np.intp)


def _text(file: Path) -> str:
    """Return what a file holds, unpacked; it is refused before it takes more memory than it may."""
    try:
        if file.is_dir():
            raise PropertyFileError("this is a directory; give the path of a property file.")
        if require_file(file) > MAX_BYTES:
            raise PropertyFileError(f"the file has more than {MAX_BYTES / 2**20:,.0f} MB.")
        data = read_gzip(file, MAX_BYTES) if file.name.endswith(".gz") else read_bytes(file)
    except ModelFileError as error:
        raise PropertyFileError(str(error)) from None
    try:
        return data.decode("utf-8-sig")
    except UnicodeDecodeError as error:
        raise PropertyFileError(f"the file is no text: byte {error.start} is not UTF-8.") from None
