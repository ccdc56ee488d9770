"""One door to parallel work: one process, threads, many processes, or a cluster that joblib knows.

Every loop whose turns do not need each other goes through :func:`each`. Where its tasks run is said
once, outside, by :func:`workers`; what comes out does not depend on it.
"""

from pindown.parallel.door import each
from pindown.parallel.places import n_workers, workers
from pindown.parallel.seeds import task_seeds
from pindown.parallel.thread_limits import few_threads, one_thread

__all__ = ["each", "few_threads", "n_workers", "one_thread", "task_seeds", "workers"]
