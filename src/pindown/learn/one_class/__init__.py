"""Learning what belongs from examples alone: a membership score and a quality score."""

from pindown.lazy import lazy_names

__getattr__, __dir__, __all__ = lazy_names(__name__)
