"""Smaller networks with the same function: every lossless reduction that can be proved."""

from pindown.equivalence.shrinking.engine import settle, shrink
from pindown.equivalence.shrinking.result import Shrunk, Step

__all__ = ["Shrunk", "Step", "settle", "shrink"]
