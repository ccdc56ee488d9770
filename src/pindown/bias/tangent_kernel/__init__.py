"""The kernel view of training: what a network does while its tangent kernel stays what it was."""

from pindown.lazy import lazy_names

__getattr__, __dir__, __all__ = lazy_names(__name__)
