"""Error rates of detectors: conformal p-values, false discoveries, and whether they may be believed."""

from pindown.lazy import lazy_names

__getattr__, __dir__, __all__ = lazy_names(__name__)
