# What pindown.geometry offers; lazy.py reads this list.

# Boxes of inputs.
from pindown.box import Box as Box
from pindown.model.operations.operation import Interval as Interval
from pindown.relaxation.intervals import interval_bounds as interval_bounds

# All cells: the polyhedral complex, listed or counted.
from pindown.geometry.complex.polyhedral import PolyhedralComplex as PolyhedralComplex
from pindown.geometry.complex.polyhedral import polyhedral_complex as polyhedral_complex
from pindown.geometry.complex.counting import RegionCount as RegionCount
from pindown.geometry.complex.counting import count_regions as count_regions
from pindown.geometry.complex.counting import region_count as region_count
from pindown.geometry.exact.complex import ExactComplex as ExactComplex
from pindown.geometry.exact.complex import exact_complex as exact_complex

# More cells than memory or one process: sub-box by sub-box, streamed to disk.
from pindown.geometry.subboxes.grid import Grid as Grid
from pindown.geometry.subboxes.grid import split_box as split_box
from pindown.geometry.subboxes.stitching import complex_by_parts as complex_by_parts
from pindown.geometry.subboxes.streaming import stream_complex as stream_complex
from pindown.geometry.subboxes.streamed_complex import StreamedComplex as StreamedComplex
from pindown.geometry.subboxes.streamed_complex import read_complex as read_complex
from pindown.geometry.subboxes.streamed_passes import ComplexStatistics as ComplexStatistics

# One cell and its neighbours, for any number of inputs.
from pindown.geometry.regions.cell import Cell as Cell
from pindown.geometry.regions.region import Region as Region
from pindown.geometry.regions.region import region_at as region_at
from pindown.geometry.regions.neighbours import Exploration as Exploration
from pindown.geometry.regions.neighbours import explore as explore
from pindown.geometry.regions.neighbours import neighbours as neighbours
from pindown.geometry.regions.fold_distance import FoldDistances as FoldDistances
from pindown.geometry.regions.fold_distance import distance_to_nearest_fold as distance_to_nearest_fold

# Along segments and on planes, for any number of inputs.
from pindown.geometry.slices.segment import ManySegmentFolds as ManySegmentFolds
from pindown.geometry.slices.segment import SegmentFolds as SegmentFolds
from pindown.geometry.slices.segment import along_segment as along_segment
from pindown.geometry.slices.segment import count_pieces_on_line as count_pieces_on_line
from pindown.geometry.slices.plane import PlaneSlice as PlaneSlice
from pindown.geometry.slices.plane import on_plane as on_plane
from pindown.geometry.slices.plane import plane_through as plane_through
from pindown.geometry.slices.black_box_kinks import LineKinks as LineKinks
from pindown.geometry.slices.black_box_kinks import kinks_on_line as kinks_on_line

# Facts about the function.
from pindown.geometry.facts.extrema import local_maxima as local_maxima
from pindown.geometry.facts.extrema import local_minima as local_minima
from pindown.geometry.facts.extrema import output_range as output_range
from pindown.geometry.facts.lipschitz import lipschitz_constant as lipschitz_constant
from pindown.geometry.facts.convexity import convexity as convexity
from pindown.geometry.facts.convexity import monotonicity as monotonicity
from pindown.geometry.facts.level_sets import level_set as level_set
from pindown.geometry.facts.level_sets import volume_above as volume_above
from pindown.geometry.facts.decision import decision_regions as decision_regions
from pindown.geometry.facts.data_cells import data_cells as data_cells
from pindown.geometry.facts.data_cells import pieces_between as pieces_between

# Folds, and what their picture tells about the layers.
from pindown.geometry.folds.fold_set import FoldSet as FoldSet
from pindown.geometry.folds.fold_set import fold_set as fold_set
from pindown.geometry.folds.canonical_surface import CanonicalSurface as CanonicalSurface
from pindown.geometry.folds.canonical_surface import canonical_surface as canonical_surface
from pindown.geometry.folds.dependency import attribute_layers as attribute_layers
from pindown.geometry.folds.dependency import dependency_graph as dependency_graph
from pindown.geometry.folds.one_hidden_layer import flatten_to_one_hidden as flatten_to_one_hidden

# Conditions of the identifiability theorem.
from pindown.geometry.conditions.generality import check_generality as check_generality
from pindown.geometry.conditions.transparency import check_transparency as check_transparency
from pindown.geometry.conditions.transparency import dead_zones as dead_zones
