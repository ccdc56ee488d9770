"""The same in exact rational arithmetic: slow, and right whatever the weights."""

from pindown.lazy import lazy_names

__getattr__, __dir__, __all__ = lazy_names(__name__)
