"""Two-layer ReLU networks on separable data: where training from small weights ends."""

from typing import TYPE_CHECKING

from pindown.lazy import lazy_names

if TYPE_CHECKING:
    from pindown.bias.two_layer.certificate import MarginCertificate as MarginCertificate
    from pindown.bias.two_layer.certificate import margin_certificate as margin_certificate
    from pindown.bias.two_layer.estimator import TwoNeuronMaxMargin as TwoNeuronMaxMargin
    from pindown.bias.two_layer.invariants import InvariantMonitor as InvariantMonitor
    from pindown.bias.two_layer.limit import TwoLayerLimit as TwoLayerLimit
    from pindown.bias.two_layer.limit import two_layer_limit as two_layer_limit
    from pindown.bias.two_layer.merging import Alignment as Alignment
    from pindown.bias.two_layer.merging import Collapse as Collapse
    from pindown.bias.two_layer.merging import alignment as alignment
    from pindown.bias.two_layer.merging import collapse as collapse
    from pindown.bias.two_layer.model import Neurons as Neurons
    from pindown.bias.two_layer.model import balanced_neurons as balanced_neurons
    from pindown.bias.two_layer.training import TwoLayerRun as TwoLayerRun
    from pindown.bias.two_layer.training import train_two_layer as train_two_layer

__getattr__, __dir__, __all__ = lazy_names(
    __name__,
    {
        "certificate": "MarginCertificate margin_certificate",
        "merging": "Alignment Collapse alignment collapse",
        "estimator": "TwoNeuronMaxMargin",
        "invariants": "InvariantMonitor",
        "limit": "TwoLayerLimit two_layer_limit",
        "model": "Neurons balanced_neurons",
        "training": "TwoLayerRun train_two_layer",
    },
)
