"""What a model looks at: attacks, Fourier masks, activation maps, texture and shape, neural fit."""

from pindown.lazy import lazy_names

__getattr__, __dir__, __all__ = lazy_names(__name__)
