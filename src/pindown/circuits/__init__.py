"""Constructions: networks built for a purpose, with the number of units that theory says."""
