"""Graphs: node order that does not matter, isomorphism, and layers that respect both."""

from pindown.lazy import lazy_names

__getattr__, __dir__, __all__ = lazy_names(__name__)
