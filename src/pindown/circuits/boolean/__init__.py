"""Boolean circuits: functions on the cube as networks, threshold circuits, and what they cannot do."""

from pindown.lazy import lazy_names

__getattr__, __dir__, __all__ = lazy_names(__name__)
