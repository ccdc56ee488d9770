# What pindown.geometry.counts offers; lazy.py reads this list.

# Bounds on cells and pieces, and on the size they need.
from pindown.geometry.counts.bounds import max_pieces as max_pieces
from pindown.geometry.counts.bounds import max_pieces_1d as max_pieces_1d
from pindown.geometry.counts.bounds import max_regions as max_regions
from pindown.geometry.counts.bounds import min_size as min_size
from pindown.geometry.counts.bounds import zaslavsky as zaslavsky

# Families that reach them.
from pindown.geometry.counts.piece_families import FamilySizes as FamilySizes
from pindown.geometry.counts.piece_families import compare_families as compare_families
from pindown.geometry.counts.piece_families import montufar as montufar
from pindown.geometry.counts.piece_families import telgarsky as telgarsky
from pindown.geometry.counts.piece_families import zigzags_to_beat_folding as zigzags_to_beat_folding
from pindown.geometry.counts.piece_families import zonotope_min_size as zonotope_min_size
from pindown.geometry.counts.piece_families import zonotope_pieces as zonotope_pieces
from pindown.geometry.counts.piece_families import zonotope_vertex_count as zonotope_vertex_count
