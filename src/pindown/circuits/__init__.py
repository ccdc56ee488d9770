"""Constructions: networks built for a purpose, with the number of units that theory says.

Names are imported when they are asked for: some need SciPy or the exact geometry, which take time.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from pindown.lazy import lazy_names

if TYPE_CHECKING:
    from pindown.circuits.approximation import Approximation as Approximation
    from pindown.circuits.approximation import approximate as approximate
    from pindown.circuits.blocks import absolute_value as absolute_value
    from pindown.circuits.blocks import affine_network as affine_network
    from pindown.circuits.blocks import triangle as triangle
    from pindown.circuits.compilers import compile_function as compile_function
    from pindown.circuits.depth_separation import DepthGap as DepthGap
    from pindown.circuits.depth_separation import depth_gap as depth_gap
    from pindown.circuits.depth_separation import depth_gaps as depth_gaps
    from pindown.circuits.depth_separation import power_gap as power_gap
    from pindown.circuits.extrema import Extremum as Extremum
    from pindown.circuits.extrema import max2 as max2
    from pindown.circuits.extrema import maximum as maximum
    from pindown.circuits.extrema import min2 as min2
    from pindown.circuits.extrema import minimum as minimum
    from pindown.circuits.hard_functions import composed_zigzags as composed_zigzags
    from pindown.circuits.hard_functions import even_sawtooth as even_sawtooth
    from pindown.circuits.hard_functions import pieces_of_zigzags as pieces_of_zigzags
    from pindown.circuits.hard_functions import zigzag_function as zigzag_function
    from pindown.circuits.l1_hardness import hard_size as hard_size
    from pindown.circuits.l1_hardness import l1_distance as l1_distance
    from pindown.circuits.l1_hardness import l1_lower_bound as l1_lower_bound
    from pindown.circuits.l1_hardness import telgarsky_comparison as telgarsky_comparison
    from pindown.circuits.lattice import LatticeForm as LatticeForm
    from pindown.circuits.lattice import compile_lattice as compile_lattice
    from pindown.circuits.local_maxima import indicator_network as indicator_network
    from pindown.circuits.local_maxima import local_maxima_network as local_maxima_network
    from pindown.circuits.local_maxima import (
        smallest_local_maxima_network as smallest_local_maxima_network,
    )
    from pindown.circuits.max_affine import MaxAffineSum as MaxAffineSum
    from pindown.circuits.max_affine import compile_max_affine as compile_max_affine
    from pindown.circuits.one_variable import compile_1d as compile_1d
    from pindown.circuits.piecewise import PiecewiseLinear as PiecewiseLinear
    from pindown.circuits.piecewise import extract as extract
    from pindown.circuits.piecewise import from_triangulation as from_triangulation
    from pindown.circuits.piecewise_1d import PiecewiseLinear1D as PiecewiseLinear1D

# Where each name lives: a module is loaded when something in it is used, not on import.
_NAMES = {
    "approximation": "Approximation approximate",
    "one_variable": "compile_1d",
    "blocks": "absolute_value affine_network triangle",
    "compilers": "compile_function",
    "depth_separation": "DepthGap depth_gap depth_gaps power_gap",
    "hard_functions": "composed_zigzags even_sawtooth pieces_of_zigzags zigzag_function",
    "l1_hardness": "hard_size l1_distance l1_lower_bound telgarsky_comparison",
    "lattice": "LatticeForm compile_lattice",
    "local_maxima": "indicator_network local_maxima_network smallest_local_maxima_network",
    "max_affine": "MaxAffineSum compile_max_affine",
    "extrema": "Extremum max2 maximum min2 minimum",
    "piecewise": "PiecewiseLinear extract from_triangulation",
    "piecewise_1d": "PiecewiseLinear1D",
}
__getattr__, __dir__, __all__ = lazy_names(__name__, _NAMES)
