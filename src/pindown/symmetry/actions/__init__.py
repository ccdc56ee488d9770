"""Actions of groups, and of families that form no group, on images, points, sets and graphs."""

from pindown.lazy import lazy_names

__getattr__, __dir__, __all__ = lazy_names(__name__)
