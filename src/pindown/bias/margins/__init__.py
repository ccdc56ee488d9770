"""Separable data: the classifier of largest margin in each norm, and how training gets there."""

from pindown.lazy import lazy_names

__getattr__, __dir__, __all__ = lazy_names(__name__)
