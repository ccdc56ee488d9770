"""Data: files that users bring, the sources' generators, public data sets."""

from pindown.lazy import lazy_names

__getattr__, __dir__, __all__ = lazy_names(__name__)
