# What pindown.geometry.exact offers; lazy.py reads this list.

# Cells in rational arithmetic; exact_complex is in pindown.geometry.
from pindown.geometry.exact.complex import exact_cells_within as exact_cells_within
from pindown.geometry.exact.complex import exact_count as exact_count

# How many faces of each dimension.
from pindown.geometry.exact.polytope import face_numbers as face_numbers
