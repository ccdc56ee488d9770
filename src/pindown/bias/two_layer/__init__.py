"""Two-layer ReLU networks on separable data: where training from small weights ends."""

from pindown.lazy import lazy_names

__getattr__, __dir__, __all__ = lazy_names(__name__)
