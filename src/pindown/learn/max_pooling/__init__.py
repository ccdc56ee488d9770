"""Max-pooling networks: they find the pattern that tells two classes apart."""

from typing import TYPE_CHECKING

from pindown.lazy import lazy_names

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
__getattr__, __dir__, __all__ = lazy_names(__name__, _NAMES)
