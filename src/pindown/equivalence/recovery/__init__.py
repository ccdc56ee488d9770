"""Recover a network's weights from its values alone."""

from pindown.lazy import lazy_names

__getattr__, __dir__, __all__ = lazy_names(__name__)
