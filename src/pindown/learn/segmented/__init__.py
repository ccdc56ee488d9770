"""Globally optimal continuous piecewise-linear regression in one variable."""

from pindown.lazy import lazy_names

__getattr__, __dir__, __all__ = lazy_names(__name__)
