"""Pin down the network you trained: which function it is, why training chose it, how far to trust it."""

from typing import TYPE_CHECKING, Any

from pindown import starting

starting.begin()

from pindown.audit import Audit, audit  # noqa: E402 - what takes long to load comes after
from pindown.geometry import Box  # noqa: E402
from pindown.io import load  # noqa: E402
from pindown.network import ReluNetwork  # noqa: E402

if TYPE_CHECKING:
    from pindown.equivalence import Diff, Recovered, Shrunk, canonical, diff, recover, shrink

__version__ = "0.1.0"

# Loaded when they are used: an audit alone needs none of them.
_FROM_EQUIVALENCE = ("Diff", "Recovered", "Shrunk", "canonical", "diff", "recover", "shrink")

__all__ = [
    "Audit",
    "Box",
    "Diff",
    "Recovered",
    "ReluNetwork",
    "Shrunk",
    "audit",
    "canonical",
    "diff",
    "load",
    "recover",
    "shrink",
]


def __getattr__(name: str) -> Any:
    if name in _FROM_EQUIVALENCE:
        from pindown import equivalence

        return getattr(equivalence, name)
    raise AttributeError(f"module {__name__!r} has no attribute {name!r}")


def __dir__() -> list[str]:
    return sorted(__all__)
