"""Recover a network's weights from its values alone."""

from pindown.equivalence.recovery.recovering import Recovered, recover

__all__ = ["Recovered", "recover"]
