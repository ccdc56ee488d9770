"""Pin down the network you trained: which function it is, why training chose it, how far to trust it."""

from pindown.network import ReluNetwork

__all__ = ["ReluNetwork"]
