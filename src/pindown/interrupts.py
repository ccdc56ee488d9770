"""Ctrl-C while the command line is still loading: one line and exit code 130, not a traceback.

Loading takes most of a second, all of it before :func:`pindown.cli.main.main` could catch anything, and
there is nothing to lose or to save. As a library pindown leaves signals alone.
"""

from __future__ import annotations

import os
import signal
import sys
from pathlib import PurePath
from typing import NoReturn

INTERRUPTED = 130  # exit code, as shells have it
_MODULES = ("pindown", "pindown.__main__", "pindown.cli.main")


def begin() -> None:
    """Leave at once at Ctrl-C, if this process was started as the command and nobody ignores it."""
    if _is_command(sys.orig_argv) and signal.getsignal(signal.SIGINT) is signal.default_int_handler:
        signal.signal(signal.SIGINT, _leave)


def end() -> None:
    """Turn Ctrl-C into an exception again: from here on it is handled where it comes."""
    if signal.getsignal(signal.SIGINT) is _leave:
        signal.signal(signal.SIGINT, signal.default_int_handler)


def _is_command(words: list[str]) -> bool:
    """Return whether a command line is that of pindown.

    >>> _is_command(["python", "-m", "pindown", "demo"]), _is_command(["python", "/usr/bin/pindown"])
    (True, True)
    >>> _is_command(["python", "-m", "pytest", "pindown"]), _is_command(["python"])
    (False, False)
    """
    if "-m" in words:
        return words[words.index("-m") + 1 :][:1] in [[module] for module in _MODULES]
    return any(PurePath(word).stem == "pindown" for word in words[1:2])


def _leave(*_: object) -> NoReturn:
    os.write(2, b"pindown: interrupted.\n")
    os._exit(INTERRUPTED)  # an import that is under way may swallow exceptions
