"""WHICH function: where its inputs live and what it can do there."""

from pindown.geometry.box import Box
from pindown.geometry.intervals import Interval, interval_bounds

__all__ = ["Box", "Interval", "interval_bounds"]
