"""Orthogonally separable data: the check, two max-margin vectors, the early phase of training."""

from pindown.lazy import lazy_names

__getattr__, __dir__, __all__ = lazy_names(__name__)
