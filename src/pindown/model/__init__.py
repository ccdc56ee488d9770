"""The model at the door: a graph of operations in float64, as its author wrote it."""

from pindown.lazy import lazy_names

__getattr__, __dir__, __all__ = lazy_names(__name__)
