"""Estimators whose answer is pinned down by construction: fit, and know what was found."""

from pindown.lazy import lazy_names

__getattr__, __dir__, __all__ = lazy_names(__name__)
