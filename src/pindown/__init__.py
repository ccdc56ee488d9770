"""Pin down the network you trained: which function it is, why training chose it, how far to trust it."""

from pindown import interrupts

interrupts.begin()

from pindown.lazy import lazy_names  # noqa: E402 - what takes long to load comes after

__version__ = "0.1.0"

__getattr__, __dir__, __all__ = lazy_names(__name__)
