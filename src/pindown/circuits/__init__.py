"""Constructions: networks built for a purpose, with the number of units that theory says.

Names are imported when they are asked for: some need SciPy or the exact geometry, which take time.
"""

from pindown.lazy import lazy_names

__getattr__, __dir__, __all__ = lazy_names(__name__)
