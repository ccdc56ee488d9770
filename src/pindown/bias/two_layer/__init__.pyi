# What pindown.bias.two_layer offers; lazy.py reads this list.
from pindown.bias.two_layer.certificate import MarginCertificate as MarginCertificate
from pindown.bias.two_layer.certificate import margin_certificate as margin_certificate
from pindown.bias.two_layer.merging import Alignment as Alignment
from pindown.bias.two_layer.merging import Collapse as Collapse
from pindown.bias.two_layer.merging import alignment as alignment
from pindown.bias.two_layer.merging import collapse as collapse
from pindown.bias.two_layer.estimator import TwoNeuronMaxMargin as TwoNeuronMaxMargin
from pindown.bias.two_layer.invariants import InvariantMonitor as InvariantMonitor
from pindown.bias.two_layer.limit import TwoLayerLimit as TwoLayerLimit
from pindown.bias.two_layer.limit import two_layer_limit as two_layer_limit
from pindown.bias.two_layer.model import Neurons as Neurons
from pindown.bias.two_layer.model import balanced_neurons as balanced_neurons
from pindown.bias.two_layer.training import TwoLayerRun as TwoLayerRun
from pindown.bias.two_layer.training import train_two_layer as train_two_layer
