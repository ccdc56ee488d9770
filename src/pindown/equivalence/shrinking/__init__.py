"""Smaller networks with the same function: every lossless reduction that can be proved."""

from pindown.lazy import lazy_names

__getattr__, __dir__, __all__ = lazy_names(__name__)
