"""Autoencoders with a dial for how many nats the code carries."""

from pindown.lazy import lazy_names

__getattr__, __dir__, __all__ = lazy_names(__name__)
