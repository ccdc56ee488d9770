"""Learning a symmetry: the group whose orbits the data are made of, judged on held-out orbits."""

from pindown.lazy import lazy_names

__getattr__, __dir__, __all__ = lazy_names(__name__)
