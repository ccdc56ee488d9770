"""Norms of weight matrices, proved, and the scaling of units that makes them small."""
