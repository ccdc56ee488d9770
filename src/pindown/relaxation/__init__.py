"""Proved bounds of a network on boxes and balls: intervals, linear bounds, programs, norms."""

from pindown.lazy import lazy_names

__getattr__, __dir__, __all__ = lazy_names(__name__)
