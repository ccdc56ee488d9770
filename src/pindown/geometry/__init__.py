"""WHICH function: where its inputs live, the cells it is affine on, and what follows from them."""

from pindown.lazy import lazy_names

__getattr__, __dir__, __all__ = lazy_names(__name__)
