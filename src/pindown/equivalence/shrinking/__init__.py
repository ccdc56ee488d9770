"""Smaller networks with the same function: every lossless reduction that can be proved."""

from pindown.equivalence.shrinking.engine import shrink, shrink_and_settle
from pindown.equivalence.shrinking.result import Shrunk, Step

__all__ = ["Shrunk", "Step", "shrink", "shrink_and_settle"]
