"""Max-pooling networks: they find the pattern that tells two classes apart."""

from pindown.lazy import lazy_names

__getattr__, __dir__, __all__ = lazy_names(__name__)
