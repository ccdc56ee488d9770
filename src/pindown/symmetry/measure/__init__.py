"""How far a model keeps a symmetry: errors with a scale, selectivity, labels, parameters."""

from pindown.lazy import lazy_names

__getattr__, __dir__, __all__ = lazy_names(__name__)
