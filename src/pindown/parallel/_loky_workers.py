"""Processes of this machine behind joblib, none of which outlives the process that asked for them."""

from __future__ import annotations

import multiprocessing
import os
import threading
import time
from typing import Any

from joblib._parallel_backends import LokyBackend

from pindown.parallel.tuning import PARENT_LOOK

_ORPHANED = 1  # exit code


class OwnLokyBackend(LokyBackend):  # type: ignore[misc]
    """joblib's backend, whose workers end with this process: joblib's own stay for minutes, or for ever.

    A process that is killed cannot stop its workers, and they hold each other's pipes open.
    """

    def configure(self, *args: Any, **settings: Any) -> int:
        """Start workers that watch over this process from their first moment, and return how many."""
        return int(super().configure(*args, initializer=end_with_parent, **settings))


def end_with_parent() -> None:
    """See to it that a worker ends when its parent has, whatever it is doing then."""
    threading.Thread(target=_watch, name="pindown: end with parent", daemon=True).start()


def _watch() -> None:
    parent: Any = multiprocessing.parent_process()
    if getattr(parent, "_sentinel", None) is not None:
        parent.join()
    else:  # loky sets none except on Windows; elsewhere an orphan gets another parent
        while os.getppid() == parent.pid:
            time.sleep(PARENT_LOOK)
    os._exit(_ORPHANED)
