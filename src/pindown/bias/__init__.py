"""Why this function: what training is predicted to choose, and how close a network came to it."""

from pindown.lazy import lazy_names

__getattr__, __dir__, __all__ = lazy_names(__name__)
