"""Recover a network's weights from its values alone."""

from pindown.equivalence.recover.result import Recovered
from pindown.equivalence.recover.run import recover

__all__ = ["Recovered", "recover"]
