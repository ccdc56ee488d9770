# What pindown.symmetry.actions offers; lazy.py reads this list.

# Families and flat rows
from pindown.symmetry.families import Transformations as Transformations
from pindown.symmetry.families import flattened as flattened

# Images: exact, and by interpolation
from pindown.symmetry.actions.images import image_dihedral as image_dihedral
from pindown.symmetry.actions.images import image_reflection as image_reflection
from pindown.symmetry.actions.images import image_rotations as image_rotations
from pindown.symmetry.actions.images import image_translations as image_translations
from pindown.symmetry.actions.interpolation import act_images as act_images
from pindown.symmetry.actions.interpolation import affine_images as affine_images
from pindown.symmetry.actions.interpolation import image_scalings as image_scalings
from pindown.symmetry.actions.interpolation import image_turns as image_turns
from pindown.symmetry.actions.interpolation import smooth_displacement as smooth_displacement
from pindown.symmetry.actions.interpolation import smooth_warps as smooth_warps
from pindown.symmetry.actions.interpolation import warp as warp

# Light
from pindown.symmetry.actions.images import contrast_changes as contrast_changes
from pindown.symmetry.actions.images import gamma_changes as gamma_changes
from pindown.symmetry.actions.images import illumination as illumination

# Points, sets and graphs
from pindown.symmetry.actions.interpolation import act_points as act_points
from pindown.symmetry.actions.interpolation import planar_rotations as planar_rotations
from pindown.symmetry.actions.interpolation import se2 as se2
from pindown.symmetry.actions.permutations import graph_permutations as graph_permutations
from pindown.symmetry.actions.permutations import pack_graphs as pack_graphs
from pindown.symmetry.actions.permutations import set_permutations as set_permutations
from pindown.symmetry.actions.permutations import set_shuffles as set_shuffles
from pindown.symmetry.actions.permutations import unpack_graphs as unpack_graphs
