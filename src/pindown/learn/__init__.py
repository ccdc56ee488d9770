"""Estimators whose answer is pinned down by construction: fit, and know what was found."""

from importlib import import_module
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from pindown.learn.exact import ExactReluClassifier as ExactReluClassifier
    from pindown.learn.exact import ExactReluRegressor as ExactReluRegressor
    from pindown.learn.reliable import Reliability as Reliability
    from pindown.learn.reliable import is_reliable as is_reliable
    from pindown.learn.segmented import SegmentedRegressor as SegmentedRegressor

# Where each name lives: a module is loaded when something in it is used, not on import.
_NAMES = {
    "exact": "ExactReluClassifier ExactReluRegressor",
    "reliable": "Reliability is_reliable",
    "segmented": "SegmentedRegressor",
}
_HOMES = {name: module for module, names in _NAMES.items() for name in names.split()}

__all__ = [*_HOMES]  # noqa: PLE0604 - all are strings


def __getattr__(name: str) -> Any:
    if name in _HOMES:
        return getattr(import_module(f"{__name__}.{_HOMES[name]}"), name)
    raise AttributeError(f"module {__name__!r} has no attribute {name!r}")


def __dir__() -> list[str]:
    return sorted(__all__)
