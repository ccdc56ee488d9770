"""Properties in words: inputs x_1, x_2, ..., outputs y_1, y_2, ...; a prime is the second network."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, NamedTuple

import numpy as np

from pindown.affine import Array

if TYPE_CHECKING:
    from pindown.verification.properties import Property, UnsafeSet

_SHOWN = 3  # bounds, rows or sets; terms of a row twice as many
_PRIME = "'"
_FEW = 1_000_000  # numbers in corners that are compared to count boxes
_FLIPPED = {"<=": ">=", "<": ">", ">=": "<=", ">": "<"}
_OTHERWISE = {"<=": ">", "<": ">=", ">=": "<", ">": "<="}


class _Names(NamedTuple):
    inputs: Sequence[str]
    outputs: Sequence[str]


def described(prop: Property) -> str:
    """Return in a sentence for which inputs a property says what about the outputs."""
    if not prop.unsafe:
        return f"{prop.text or 'it holds'}: no input can violate it, whatever the outputs are"
    names, first, n = _names(prop), prop.unsafe[0], len(prop.unsafe)
    lower, upper = first.lower.copy(), first.upper.copy()
    for each in prop.unsafe:
        np.minimum(lower, each.lower, out=lower)
        np.maximum(upper, each.upper, out=upper)
    count = f"{prop.n_free:,} inputs" if prop.n_free > 1 else "inputs"
    if len(prop.n_inputs) > 1:
        count += f" of {len(prop.n_inputs)} networks"
    bounds = _bounds(lower, upper, names)
    n_boxes = _count_boxes(prop.unsafe)
    if n_boxes == 1:
        demands = [_demand(each, names) for each in prop.unsafe[:_SHOWN]]
        ways = f"; {n} ways to violate it" if n > _SHOWN and not prop.text else ""
        return f"for all {count} in a box ({bounds}): {prop.text or _listed(demands, n)}{ways}"
    where = f"for all {count} in {n_boxes:,} boxes (within {bounds})"
    if prop.text:
        return f"{where}: {prop.text}"
    own = _bounds(first.lower, first.upper, names)
    return f"{where}: {n:,} ways to violate it, the first: {_violation(first, names)} where {own}"


def named(prop: Property) -> tuple[Sequence[str], Sequence[str]]:
    """Return the names of the free inputs and of the outputs."""
    names = _names(prop)
    return names.inputs, names.outputs


def conditions(prop: Property, index: int) -> list[str]:
    """Return in words what holds in an unsafe set, row by row."""
    part, names = prop.unsafe[index], _names(prop)
    rows = (_row(part, i, names) for i in range(len(part.limits)))
    return [f"{left or 0} {relation} {right}" for left, relation, right in rows]


def _names(prop: Property) -> _Names:
    outputs = [
        f"y{_PRIME * network}_{j + 1}" for network, k in enumerate(prop.n_outputs) for j in range(k)
    ]
    reads = [np.arange(prop.n_free)] if prop.reads is None else prop.reads
    inputs = [""] * prop.n_free
    for network, read in reversed(list(enumerate(reads))):
        for place, i in reversed(list(enumerate(read))):
            inputs[i] = f"x{_PRIME * network}_{place + 1}"
    return _Names(inputs, outputs)


def _count_boxes(sets: Sequence[UnsafeSet]) -> int:
    different = {(id(each.lower), id(each.upper)): each for each in sets}
    if len(different) * sets[0].lower.size > _FEW:
        return len(different)
    corners = [np.concatenate([each.lower, each.upper]).tobytes() for each in different.values()]
    return len(set(corners))


def _bounds(lower: Array, upper: Array, names: _Names) -> str:
    shown = [
        f"{name} = {low:g}" if f"{low:g}" == f"{high:g}" else f"{low:g} <= {name} <= {high:g}"
        for name, low, high in zip(names.inputs[:_SHOWN], lower, upper, strict=False)
    ]
    return _listed(shown, len(lower))


def _demand(part: UnsafeSet, names: _Names) -> str:
    """Return what an unsafe set forbids, as a demand."""
    if len(part.limits) > 1:
        return f"never ({_violation(part, names)})"
    left, relation, right = _row(part, 0, names)
    return f"{left} {_OTHERWISE[relation]} {right}" if left else "no input may lie there"


def _violation(part: UnsafeSet, names: _Names) -> str:
    """Return what holds of outputs in an unsafe set."""
    rows = [_row(part, i, names) for i in range(min(len(part.limits), _SHOWN))]
    shown = [f"{left or 0} {relation} {right}" for left, relation, right in rows]
    more = len(part.limits) - len(rows)
    return " and ".join([*shown, f"{more:,} more"] if more else shown)


def _row(part: UnsafeSet, i: int, names: _Names) -> tuple[str, str, str]:
    """Return a row as left side, relation and right side."""
    terms = _terms(part.rows[i], names.outputs)
    if part.input_rows is not None:
        terms += _terms(part.input_rows[i], names.inputs)
    limit = float(part.limits[i])
    relation = "<" if part.strict is not None and part.strict[i] else "<="
    if not terms:
        return "", relation, f"{limit:g}"
    if all(c < 0 for _, c in terms) or (terms[0][1] < 0 and limit <= 0):
        terms, limit, relation = [(v, -c) for v, c in terms], 0.0 - limit, _FLIPPED[relation]
    if len(terms) == 1:
        return terms[0][0], relation, f"{limit / terms[0][1]:g}"
    if len(terms) == 2 and limit == 0 and terms[0][1] == -terms[1][1]:
        (a, sign), (b, _) = terms
        return (a, relation, b) if sign > 0 else (a, _FLIPPED[relation], b)
    return _sum(terms), relation, f"{limit:g}"


def _terms(row: Array, names: Sequence[str]) -> list[tuple[str, float]]:
    return [(names[int(j)], float(row[j])) for j in np.flatnonzero(row)]


def _sum(terms: Sequence[tuple[str, float]]) -> str:
    text = ""
    for name, c in terms[: 2 * _SHOWN]:
        size = "" if abs(c) == 1 else f"{abs(c):g} "
        text += (" - " if c < 0 else " + ") + size + name
    text = text[3:] if text[1] == "+" else f"-{text[3:]}"
    more = len(terms) - 2 * _SHOWN
    return f"{text} + {more:,} more terms" if more > 0 else text


def _listed(parts: Sequence[str], n: int) -> str:
    more = n - len(parts)
    return ", ".join(parts) + (f", and {more:,} more" if more else "")
