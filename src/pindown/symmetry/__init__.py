"""Symmetry: groups and their actions, how far a model keeps them, and models that keep them exactly."""

from pindown.lazy import lazy_names

__getattr__, __dir__, __all__ = lazy_names(__name__)
