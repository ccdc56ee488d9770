"""Mukherjee 2020, a thesis on the mathematics of ReLU networks: its figures, tables and horizons."""
