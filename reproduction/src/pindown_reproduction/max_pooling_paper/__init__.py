"""Brutzkus and Globerson 2021, an optimisation and generalisation analysis of max-pooling networks."""
