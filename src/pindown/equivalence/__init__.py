"""WHICH function: what about the weights does not matter to it."""

from pindown.equivalence.unit_relations import LayerRelations, ParallelUnits, unit_relations

__all__ = ["LayerRelations", "ParallelUnits", "unit_relations"]
