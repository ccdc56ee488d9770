"""What augmentation does: invariant losses, gradients that keep orbits, windows as low-pass filters."""

from pindown.lazy import lazy_names

__getattr__, __dir__, __all__ = lazy_names(__name__)
