"""Adaptive gradient methods as their theorems state them: optimisers, step sizes, horizons, checks."""

from pindown.lazy import lazy_names

__getattr__, __dir__, __all__ = lazy_names(__name__)
