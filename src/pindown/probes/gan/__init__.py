"""Generative adversarial networks: the value of the game, its exact optimum, and training."""

from pindown.lazy import lazy_names

__getattr__, __dir__, __all__ = lazy_names(__name__)
