"""Max-pooling networks: they find the pattern that tells two classes apart."""

from importlib import import_module
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from pindown.learn.max_pooling.estimator import MaxPoolClassifier as MaxPoolClassifier
    from pindown.learn.max_pooling.guarantee import PatternGuarantee as PatternGuarantee
    from pindown.learn.max_pooling.schedule import LayerwiseSchedule as LayerwiseSchedule
    from pindown.learn.max_pooling.schedule import layerwise_schedule as layerwise_schedule

# Where each name lives: a module is loaded when something in it is used, not on import.
_NAMES = {
    "estimator": "MaxPoolClassifier",
    "guarantee": "PatternGuarantee",
    "schedule": "LayerwiseSchedule layerwise_schedule",
}
_HOMES = {name: module for module, names in _NAMES.items() for name in names.split()}

__all__ = [*_HOMES]  # noqa: PLE0604 - all are strings


def __getattr__(name: str) -> Any:
    if name in _HOMES:
        return getattr(import_module(f"{__name__}.{_HOMES[name]}"), name)
    raise AttributeError(f"module {__name__!r} has no attribute {name!r}")


def __dir__() -> list[str]:
    return sorted(__all__)
