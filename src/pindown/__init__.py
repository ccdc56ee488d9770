"""Pin down the network you trained: which function it is, why training chose it, how far to trust it."""

from importlib.metadata import version as _version

from pindown.audit import Audit, audit
from pindown.geometry import Box
from pindown.io import load
from pindown.network import ReluNetwork

__version__ = _version("pindown")

__all__ = ["Audit", "Box", "ReluNetwork", "audit", "load"]
