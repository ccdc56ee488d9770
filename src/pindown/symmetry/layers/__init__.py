"""Layers that keep a symmetry by construction: every linear map that commutes with a group, in torch."""

from pindown.lazy import lazy_names

__getattr__, __dir__, __all__ = lazy_names(__name__)
