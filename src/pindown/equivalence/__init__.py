"""WHICH function: are two networks the same, how small can one be, what pins its weights down."""

from pindown.lazy import lazy_names

__getattr__, __dir__, __all__ = lazy_names(__name__)
