"""Recover a network's weights from its values alone."""

from pindown.equivalence.recovery.result import Recovered
from pindown.equivalence.recovery.run import recover

__all__ = ["Recovered", "recover"]
