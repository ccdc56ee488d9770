"""One way to parallel work: one process, threads, many processes, or a cluster that joblib knows.

Every loop whose turns do not need each other goes through :func:`each`. Where its tasks run is said
once, outside, by :func:`workers`; what comes out does not depend on it.
"""

from pindown.lazy import lazy_names

__getattr__, __dir__, __all__ = lazy_names(__name__)
