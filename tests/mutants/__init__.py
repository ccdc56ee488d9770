"""Faults put into formulas, and the tests that have to notice them: `make mutants`."""
