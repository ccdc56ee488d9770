"""WHICH function: where its inputs live, the cells it is affine on, and what follows from them.

Names are imported when they are asked for: most need SciPy or compiled kernels, which take time.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from pindown.geometry.box import Box as Box
from pindown.geometry.intervals import Interval as Interval
from pindown.geometry.intervals import interval_bounds as interval_bounds
from pindown.lazy import lazy_names

if TYPE_CHECKING:
    from pindown.geometry.complex.counting import RegionCount as RegionCount
    from pindown.geometry.complex.counting import count_regions as count_regions
    from pindown.geometry.complex.counting import region_count as region_count
    from pindown.geometry.complex.polyhedral import PolyhedralComplex as PolyhedralComplex
    from pindown.geometry.complex.polyhedral import polyhedral_complex as polyhedral_complex
    from pindown.geometry.conditions.generality import check_generality as check_generality
    from pindown.geometry.conditions.transparency import check_transparency as check_transparency
    from pindown.geometry.conditions.transparency import dead_zones as dead_zones
    from pindown.geometry.counts.bounds import max_pieces as max_pieces
    from pindown.geometry.counts.bounds import max_pieces_1d as max_pieces_1d
    from pindown.geometry.counts.bounds import max_regions as max_regions
    from pindown.geometry.counts.bounds import min_size as min_size
    from pindown.geometry.counts.bounds import zaslavsky as zaslavsky
    from pindown.geometry.counts.piece_families import montufar as montufar
    from pindown.geometry.counts.piece_families import telgarsky as telgarsky
    from pindown.geometry.counts.piece_families import zonotope_pieces as zonotope_pieces
    from pindown.geometry.counts.piece_families import zonotope_vertex_count as zonotope_vertex_count
    from pindown.geometry.counts.zonotope import zonotope_family as zonotope_family
    from pindown.geometry.counts.zonotope import zonotope_network as zonotope_network
    from pindown.geometry.counts.zonotope import zonotope_vertices as zonotope_vertices
    from pindown.geometry.exact.complex import ExactComplex as ExactComplex
    from pindown.geometry.exact.complex import exact_complex as exact_complex
    from pindown.geometry.facts.data_cells import data_cells as data_cells
    from pindown.geometry.facts.data_paths import pieces_between as pieces_between
    from pindown.geometry.facts.decision import decision_regions as decision_regions
    from pindown.geometry.facts.extrema import output_range as output_range
    from pindown.geometry.facts.level_sets import level_set as level_set
    from pindown.geometry.facts.level_sets import volume_above as volume_above
    from pindown.geometry.facts.lipschitz import lipschitz_constant as lipschitz_constant
    from pindown.geometry.facts.local_extrema import local_maxima as local_maxima
    from pindown.geometry.facts.local_extrema import local_minima as local_minima
    from pindown.geometry.facts.shape import convexity as convexity
    from pindown.geometry.facts.shape import monotonicity as monotonicity
    from pindown.geometry.folds.dependency import attribute_layers as attribute_layers
    from pindown.geometry.folds.dependency import dependency_graph as dependency_graph
    from pindown.geometry.folds.fold_set import FoldSet as FoldSet
    from pindown.geometry.folds.fold_set import fold_set as fold_set
    from pindown.geometry.folds.representability import flatten_to_one_hidden as flatten_to_one_hidden
    from pindown.geometry.folds.surface import CanonicalSurface as CanonicalSurface
    from pindown.geometry.folds.surface import canonical_surface as canonical_surface
    from pindown.geometry.regions.cell import Cell as Cell
    from pindown.geometry.regions.explore import Exploration as Exploration
    from pindown.geometry.regions.explore import explore as explore
    from pindown.geometry.regions.fold_distance import FoldDistances as FoldDistances
    from pindown.geometry.regions.fold_distance import (
        distance_to_nearest_fold as distance_to_nearest_fold,
    )
    from pindown.geometry.regions.neighbours import neighbours as neighbours
    from pindown.geometry.regions.region import Region as Region
    from pindown.geometry.regions.region import region_at as region_at
    from pindown.geometry.slices.march import LineKinks as LineKinks
    from pindown.geometry.slices.march import kinks_on_line as kinks_on_line
    from pindown.geometry.slices.plane import on_plane as on_plane
    from pindown.geometry.slices.plane import through as through
    from pindown.geometry.slices.plane_slice import PlaneSlice as PlaneSlice
    from pindown.geometry.slices.segment import along_segment as along_segment
    from pindown.geometry.slices.segment import count_pieces_on_line as count_pieces_on_line
    from pindown.geometry.slices.segment_folds import ManySegmentFolds as ManySegmentFolds
    from pindown.geometry.slices.segment_folds import SegmentFolds as SegmentFolds
    from pindown.geometry.subboxes.grid import Grid as Grid
    from pindown.geometry.subboxes.grid import split_box as split_box
    from pindown.geometry.subboxes.reading import StreamedComplex as StreamedComplex
    from pindown.geometry.subboxes.reading import read_complex as read_complex
    from pindown.geometry.subboxes.statistics import ComplexStatistics as ComplexStatistics
    from pindown.geometry.subboxes.stitching import complex_by_parts as complex_by_parts
    from pindown.geometry.subboxes.streaming import stream_complex as stream_complex

_NAMES = {
    "complex.polyhedral": "PolyhedralComplex polyhedral_complex",
    "complex.counting": "RegionCount count_regions region_count",
    "regions.cell": "Cell",
    "regions.region": "Region region_at",
    "regions.neighbours": "neighbours",
    "regions.explore": "Exploration explore",
    "regions.fold_distance": "FoldDistances distance_to_nearest_fold",
    "slices.segment": "along_segment count_pieces_on_line",
    "slices.segment_folds": "ManySegmentFolds SegmentFolds",
    "slices.march": "LineKinks kinks_on_line",
    "slices.plane": "on_plane through",
    "slices.plane_slice": "PlaneSlice",
    "folds.fold_set": "FoldSet fold_set",
    "folds.surface": "CanonicalSurface canonical_surface",
    "folds.dependency": "attribute_layers dependency_graph",
    "folds.representability": "flatten_to_one_hidden",
    "conditions.generality": "check_generality",
    "conditions.transparency": "check_transparency dead_zones",
    "facts.extrema": "output_range",
    "facts.local_extrema": "local_maxima local_minima",
    "facts.lipschitz": "lipschitz_constant",
    "facts.shape": "convexity monotonicity",
    "facts.level_sets": "level_set volume_above",
    "facts.decision": "decision_regions",
    "facts.data_cells": "data_cells",
    "facts.data_paths": "pieces_between",
    "counts.bounds": "max_pieces max_pieces_1d max_regions min_size zaslavsky",
    "counts.piece_families": "montufar telgarsky zonotope_pieces zonotope_vertex_count",
    "counts.zonotope": "zonotope_family zonotope_network zonotope_vertices",
    "exact.complex": "ExactComplex exact_complex",
    "subboxes.grid": "Grid split_box",
    "subboxes.stitching": "complex_by_parts",
    "subboxes.streaming": "stream_complex",
    "subboxes.reading": "StreamedComplex read_complex",
    "subboxes.statistics": "ComplexStatistics",
}
__getattr__, __dir__, __all__ = lazy_names(
    __name__,
    _NAMES,
    (
        "Box",
        "Interval",
        "interval_bounds",
    ),
)
