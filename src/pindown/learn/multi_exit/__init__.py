"""Networks that can answer early: several exits, trained by their own last one."""

from pindown.lazy import lazy_names

__getattr__, __dir__, __all__ = lazy_names(__name__)
