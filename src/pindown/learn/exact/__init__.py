"""Exact empirical risk minimisation: the best small network there is, and the proof."""

from pindown.lazy import lazy_names

__getattr__, __dir__, __all__ = lazy_names(__name__)
