"""Does any input of this set reach that set? Properties, counterexamples, distances."""

from pindown.lazy import lazy_names

__getattr__, __dir__, __all__ = lazy_names(__name__)
