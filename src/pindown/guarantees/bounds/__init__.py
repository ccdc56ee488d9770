"""Probability statements: how often a network is wrong on new examples, and how sure that is.

Every bound is a :class:`Bound` with its terms and assumptions. Names are imported when they are asked
for.
"""

from pindown.lazy import lazy_names

__getattr__, __dir__, __all__ = lazy_names(__name__)
