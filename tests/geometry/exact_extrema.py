"""Extrema by definition, in exact arithmetic: no edges, no tolerance, no float64."""

from pindown.geometry.exact.complex import exact_complex


def exact_local_maxima(net, box, output=0):
    """Return {(value, vertices of the maximum)} of one output on a box.

    In each cell the vertices with the largest value hang together. Vertices that hang together are a
    local maximum if each of them has the largest value in all cells that contain it.
    """
    cells = exact_complex(net, box)
    assert cells.complete
    values, parent, beaten = {}, {}, set()

    def root(v):
        while parent[v] != v:
            v = parent[v]
        return v

    for vertices, rows in zip(cells.vertices, cells.maps, strict=True):
        *slope, offset = rows[output]
        heights = [offset + sum(a * x for a, x in zip(slope, v, strict=True)) for v in vertices]
        best = max(heights)
        tops = [v for v, h in zip(vertices, heights, strict=True) if h == best]
        for v, h in zip(vertices, heights, strict=True):
            values[v] = h
            parent.setdefault(v, v)
            if h < best:
                beaten.add(v)
        for v in tops[1:]:
            parent[root(v)] = root(tops[0])
    groups = {}
    for v in parent:
        groups.setdefault(root(v), set()).add(v)
    return {(values[r], frozenset(group)) for r, group in groups.items() if beaten.isdisjoint(group)}


def exact_cell_values(net, box, output=0):
    """For each cell, by pattern, the output at its vertices, in rationals."""
    cells, found = exact_complex(net, box), {}
    for pattern, vertices, rows in zip(cells.patterns, cells.vertices, cells.maps, strict=True):
        *slope, offset = rows[output]
        found[pattern.tobytes()] = [
            offset + sum(a * x for a, x in zip(slope, v, strict=True)) for v in vertices
        ]
    return found
