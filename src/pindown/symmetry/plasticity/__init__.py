"""Plasticity: local learning rules on data with a symmetry, and what they are bound to find."""

from pindown.lazy import lazy_names

__getattr__, __dir__, __all__ = lazy_names(__name__)
