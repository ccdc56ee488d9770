# What pindown.circuits offers; lazy.py reads this list. Boolean circuits have their own, in pindown.circuits.boolean.

# piecewise linear functions, in three forms and on the line
from pindown.circuits.lattice import LatticeForm as LatticeForm
from pindown.circuits.max_affine import MaxAffineSum as MaxAffineSum
from pindown.circuits.piecewise import PiecewiseLinear as PiecewiseLinear
from pindown.circuits.piecewise import extract as extract
from pindown.circuits.piecewise import from_triangulation as from_triangulation
from pindown.circuits.piecewise_1d import PiecewiseLinear1D as PiecewiseLinear1D

# compilers: from functions to networks
from pindown.circuits.approximation import Approximation as Approximation
from pindown.circuits.approximation import approximate as approximate
from pindown.circuits.lattice import compile_lattice as compile_lattice
from pindown.circuits.max_affine import compile_max_affine as compile_max_affine
from pindown.circuits.piecewise import compile_function as compile_function
from pindown.circuits.piecewise_1d import compile_1d as compile_1d

# building blocks
from pindown.circuits.blocks import absolute_value as absolute_value
from pindown.circuits.blocks import affine_network as affine_network
from pindown.circuits.blocks import single_filter_network as single_filter_network
from pindown.circuits.blocks import triangle as triangle
from pindown.circuits.blocks import window_matrices as window_matrices
from pindown.circuits.extrema import Extremum as Extremum
from pindown.circuits.extrema import max2 as max2
from pindown.circuits.extrema import maximum as maximum
from pindown.circuits.extrema import min2 as min2
from pindown.circuits.extrema import minimum as minimum

# networks with given local maxima
from pindown.circuits.local_maxima import indicator_network as indicator_network
from pindown.circuits.local_maxima import local_maxima_network as local_maxima_network
from pindown.circuits.local_maxima import smallest_local_maxima_network as smallest_local_maxima_network

# what depth is worth
from pindown.circuits.depth_separation import DepthGap as DepthGap
from pindown.circuits.depth_separation import TelgarskyComparison as TelgarskyComparison
from pindown.circuits.depth_separation import composed_zigzags as composed_zigzags
from pindown.circuits.depth_separation import depth_gap as depth_gap
from pindown.circuits.depth_separation import depth_gaps as depth_gaps
from pindown.circuits.depth_separation import even_sawtooth as even_sawtooth
from pindown.circuits.depth_separation import hard_size as hard_size
from pindown.circuits.depth_separation import l1_distance as l1_distance
from pindown.circuits.depth_separation import l1_lower_bound as l1_lower_bound
from pindown.circuits.depth_separation import pieces_of_zigzags as pieces_of_zigzags
from pindown.circuits.depth_separation import power_gap as power_gap
from pindown.circuits.depth_separation import telgarsky_comparison as telgarsky_comparison
from pindown.circuits.depth_separation import zigzag_function as zigzag_function

# zonotopes, and zigzags after their support functions
from pindown.circuits.zonotopes import is_extremal as is_extremal
from pindown.circuits.zonotopes import sample_extremal as sample_extremal
from pindown.circuits.zonotopes import zonotope_family as zonotope_family
from pindown.circuits.zonotopes import zonotope_network as zonotope_network
from pindown.circuits.zonotopes import zonotope_vertices as zonotope_vertices
