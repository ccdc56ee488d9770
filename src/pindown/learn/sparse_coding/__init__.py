"""Sparse coding by tied ReLU autoencoders: support recovery with its certificate, gradients, descent."""

from pindown.lazy import lazy_names

__getattr__, __dir__, __all__ = lazy_names(__name__)
