"""HOW FAR to trust the network: bounds that are proved, and what they rest on."""

from pindown.lazy import lazy_names

__getattr__, __dir__, __all__ = lazy_names(__name__)
