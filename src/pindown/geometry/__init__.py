"""WHICH function: where its inputs live, the cells it is affine on, and what follows from them.

Names are imported when they are asked for: most need SciPy or compiled kernels, which take time.
"""

from __future__ import annotations

from importlib import import_module
from typing import TYPE_CHECKING, Any

from pindown.geometry.box import Box
from pindown.geometry.intervals import Interval, interval_bounds

if TYPE_CHECKING:
    from pindown.geometry.complex import PolyhedralComplex as PolyhedralComplex
    from pindown.geometry.complex import polyhedral_complex as polyhedral_complex
    from pindown.geometry.counting import RegionCount as RegionCount
    from pindown.geometry.counting import count_regions as count_regions
    from pindown.geometry.counting import region_count as region_count
    from pindown.geometry.folds import FoldSet as FoldSet
    from pindown.geometry.folds import fold_set as fold_set

_HOMES = {
    "PolyhedralComplex": "complex",
    "polyhedral_complex": "complex",
    "RegionCount": "counting",
    "count_regions": "counting",
    "region_count": "counting",
    "FoldSet": "folds",
    "fold_set": "folds",
}

__all__ = ["Box", "Interval", "interval_bounds", *_HOMES]  # noqa: PLE0604 - all are strings


def __getattr__(name: str) -> Any:
    if name in _HOMES:
        return getattr(import_module(f"{__name__}.{_HOMES[name]}"), name)
    raise AttributeError(f"module {__name__!r} has no attribute {name!r}")


def __dir__() -> list[str]:
    return sorted(__all__)
