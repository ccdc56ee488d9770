"""Linear separators and their margins: the perceptron, hard and soft margins, duals and losses."""

from pindown.lazy import lazy_names

__getattr__, __dir__, __all__ = lazy_names(__name__)
