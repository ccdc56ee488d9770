"""A smaller network for the same function: every reduction that can be proved, to a fixed point."""

from pindown.equivalence.shrink.engine import shrink
from pindown.equivalence.shrink.result import Shrunk, Step

__all__ = ["Shrunk", "Step", "shrink"]
