# What pindown.bias.two_layer offers; lazy.py reads this list.

# orthogonally separable data
from pindown.bias.two_layer.orthogonal import OrthogonalSeparability as OrthogonalSeparability
from pindown.bias.two_layer.orthogonal import layer_separability as layer_separability
from pindown.bias.two_layer.orthogonal import orthogonal_separability as orthogonal_separability

# the early phase: where neurons turn
from pindown.bias.two_layer.early_phase import Extremes as Extremes
from pindown.bias.two_layer.early_phase import early_potential as early_potential
from pindown.bias.two_layer.early_phase import extremal_directions as extremal_directions
from pindown.bias.two_layer.early_phase import search_extremal_directions as search_extremal_directions
from pindown.bias.two_layer.early_phase import sector as sector

# the limit: two max-margin neurons
from pindown.bias.two_layer.limit import ClassMargins as ClassMargins
from pindown.bias.two_layer.limit import TwoLayerLimit as TwoLayerLimit
from pindown.bias.two_layer.limit import class_margins as class_margins
from pindown.bias.two_layer.limit import two_layer_limit as two_layer_limit
from pindown.bias.two_layer.estimator import TwoNeuronMaxMargin as TwoNeuronMaxMargin

# training, and how near a network came to the limit
from pindown.bias.two_layer.training import Neurons as Neurons
from pindown.bias.two_layer.training import TwoLayerRun as TwoLayerRun
from pindown.bias.two_layer.training import balanced_neurons as balanced_neurons
from pindown.bias.two_layer.training import train_two_layer as train_two_layer
from pindown.bias.two_layer.diagnostics import Alignment as Alignment
from pindown.bias.two_layer.diagnostics import Collapse as Collapse
from pindown.bias.two_layer.diagnostics import InvariantMonitor as InvariantMonitor
from pindown.bias.two_layer.diagnostics import alignment as alignment
from pindown.bias.two_layer.diagnostics import collapse as collapse
from pindown.bias.two_layer.kkt import MarginCertificate as MarginCertificate
from pindown.bias.two_layer.kkt import margin_certificate as margin_certificate
