"""Pin down the network you trained: which function it is, why training chose it, how far to trust it."""

from pindown.audit import Audit, audit
from pindown.geometry import Box
from pindown.io import load
from pindown.network import ReluNetwork

__version__ = "0.1.0"

__all__ = ["Audit", "Box", "ReluNetwork", "audit", "load"]
