"""Gates learned with a promise: how near the true weights, after how many steps, under which noise."""

from pindown.lazy import lazy_names

__getattr__, __dir__, __all__ = lazy_names(__name__)
