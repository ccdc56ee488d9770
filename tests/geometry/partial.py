"""Complexes of which only some cells are known."""

from dataclasses import replace


def first_cells(cx, n):
    """The complex as it would be if the search had stopped after n cells."""
    cells = cx.cells
    v, f = cells.vertex_starts[n], cells.facet_starts[n]
    part = replace(
        cells,
        vertex_starts=cells.vertex_starts[: n + 1],
        facet_starts=cells.facet_starts[: n + 1],
        coords=cells.coords[:v],
        facets=cells.facets[:f],
        masks=None if cells.masks is None else cells.masks[:v],
        patterns=cells.patterns[:n],
        keys=cells.keys[:n],
        maps=cells.maps[:n],
    )
    return replace(cx, cells=part, complete=False)
