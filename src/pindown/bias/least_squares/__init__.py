"""What training chooses among the solutions of least squares, in closed form.

The least norm, descent and its iterates, early stopping, weight decay, noise, dropout, double descent.
"""

from pindown.lazy import lazy_names

__getattr__, __dir__, __all__ = lazy_names(__name__)
