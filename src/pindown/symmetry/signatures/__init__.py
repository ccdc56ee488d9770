"""Signatures: numbers that all samples of one orbit share, and what they can and cannot tell apart."""

from pindown.lazy import lazy_names

__getattr__, __dir__, __all__ = lazy_names(__name__)
