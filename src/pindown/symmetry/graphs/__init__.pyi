# What pindown.symmetry.graphs offers; lazy.py reads this list.

# Graphs
from pindown.symmetry.graphs.data import Graph as Graph
from pindown.symmetry.graphs.data import GraphBatch as GraphBatch
from pindown.symmetry.graphs.data import block_diagonal as block_diagonal
from pindown.symmetry.graphs.data import from_edges as from_edges
from pindown.symmetry.graphs.data import from_networkx as from_networkx
from pindown.symmetry.graphs.data import from_pyg as from_pyg
from pindown.symmetry.graphs.data import padded as padded
from pindown.symmetry.graphs.data import relabel as relabel

# Names of nodes that do not matter
from pindown.symmetry.graphs.isomorphism import GraphContract as GraphContract
from pindown.symmetry.graphs.isomorphism import colour_refinement as colour_refinement
from pindown.symmetry.graphs.isomorphism import find_isomorphism as find_isomorphism
from pindown.symmetry.graphs.isomorphism import graph_contract_error as graph_contract_error
from pindown.symmetry.graphs.isomorphism import isomorphisms as isomorphisms

# Graph neural networks
from pindown.symmetry.graphs.networks import EdgeHead as EdgeHead
from pindown.symmetry.graphs.networks import GraphAttention as GraphAttention
from pindown.symmetry.graphs.networks import GraphConvolution as GraphConvolution
from pindown.symmetry.graphs.networks import GraphNetwork as GraphNetwork
from pindown.symmetry.graphs.networks import GraphReadout as GraphReadout
from pindown.symmetry.graphs.networks import MessagePassing as MessagePassing
