"""How many cells or pieces there can be: bounds, and the families that reach them."""

from pindown.lazy import lazy_names

__getattr__, __dir__, __all__ = lazy_names(__name__)
