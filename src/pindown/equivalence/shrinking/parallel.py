r"""Units of one layer whose rows :math:`(W_i, b_i)` are exact multiples of each other.

Most multiples in practice are :math:`\pm 2^k`: copies and opposites. Scaled by a power of two to size
one, with the first non-zero made positive, their rows hold the same bits, so a dictionary finds them
in one pass; only one unit of each such family enters the search for other multiples.

Phuong and Lampert 2020, "Functional vs. parametric equivalence of ReLU networks".
"""

from __future__ import annotations

import numpy as np
import scipy.sparse as sp

from pindown.affine import Affine, Array
from pindown.equivalence.shrinking.columns import rows_of, used_rows
from pindown.equivalence.unit_relations import unit_relations
from pindown.network import ReluNetwork

Sides = tuple[list[int], list[int]]


def parallel_units(layer: Affine) -> list[Sides]:
    """Return groups of two or more exact multiples, each as (same direction, opposite direction).

    >>> layer = Affine.of([[1.0], [3.0], [-1.0], [2.0]], [1, 3, -1, 5])
    >>> parallel_units(layer)
    [([0, 1], [2])]
    """
    families = _families(layer)
    firsts = [same[0] for same, _ in families]
    if len(firsts) < 2:
        return [family for family in families if len(family[0]) + len(family[1]) > 1]
    some = Affine.of(rows_of(layer.weight, np.array(firsts)), layer.bias[firsts])
    read = Affine.of(np.ones((1, len(firsts))), [0.0])
    (relations,) = unit_relations(ReluNetwork((some, read)), relative=0.0)
    joined: set[int] = set()
    groups: list[Sides] = []
    for group in relations.parallel:
        members = [(families[i], t > 0) for i, t, same in zip(*_fields(group), strict=True) if same]
        if len(members) > 1:
            joined.update(family[0][0] for family, _ in members)
            same = [unit for family, forward in members for unit in family[0 if forward else 1]]
            other = [unit for family, forward in members for unit in family[1 if forward else 0]]
            groups.append((sorted(same), sorted(other)))
    alone = [family for family in families if family[0][0] not in joined]
    groups += [family for family in alone if len(family[0]) + len(family[1]) > 1]
    return sorted(groups)


def _fields(group: object) -> tuple[tuple[int, ...], tuple[float, ...], tuple[bool, ...]]:
    return group.units, group.factors, group.exact  # type: ignore[attr-defined]


def _families(layer: Affine) -> list[Sides]:
    """Group rows that differ by a sign and a power of two only; rows without weights belong nowhere."""
    keys, signs = _row_keys(layer)
    families: dict[bytes, Sides] = {}
    for unit in np.flatnonzero(used_rows(layer.weight)).tolist():
        same, other = families.setdefault(keys[unit], ([], []))
        forward = not same or signs[unit] == signs[same[0]]
        (same if forward else other).append(unit)
    return list(families.values())


def _row_keys(layer: Affine) -> tuple[list[bytes], Array]:
    """Return for each row bytes that are equal for multiples by powers of two, and its sign."""
    if sp.issparse(layer.weight):
        return _sparse_row_keys(layer)
    rows = np.column_stack([layer.weight, layer.bias])
    first = np.argmax(rows != 0.0, axis=1)
    signs = np.where(rows[np.arange(len(rows)), first] < 0.0, -1.0, 1.0)
    powers = np.frexp(np.abs(rows).max(axis=1))[1]
    scaled = np.ldexp(rows * signs[:, None], -powers[:, None]) + 0.0
    # Where scaling lost bits (entries 300 digits apart) the row's number makes its key its own.
    lossless = (np.ldexp(scaled, powers[:, None]) == rows * signs[:, None]).all(axis=1)
    own = np.where(lossless, -1, np.arange(len(rows)))
    return [scaled[i].tobytes() + own[i].tobytes() for i in range(len(rows))], signs


def _sparse_row_keys(layer: Affine) -> tuple[list[bytes], Array]:
    W, b = layer
    keys, signs = [], np.ones(len(b))
    for unit, (start, end) in enumerate(zip(W.indptr[:-1].tolist(), W.indptr[1:].tolist(), strict=True)):
        row = np.append(W.data[start:end], b[unit])
        signs[unit] = -1.0 if row[0] < 0.0 else 1.0
        power = int(np.frexp(np.abs(row).max())[1])
        scaled = np.ldexp(row * signs[unit], -power) + 0.0
        lossless = (np.ldexp(scaled, power) == row * signs[unit]).all()
        keys.append(
            b"%d" % (-1 if lossless else unit) + W.indices[start:end].tobytes() + scaled.tobytes()
        )
    return keys, signs
