"""One module per published result: what was claimed, the run that checks it, and the comparison.

To add one: write a module with ``EXPERIMENT = Experiment(...)`` and name it here.
"""

from pindown.experiments import identifiability, inverse_stability, typical_networks
from pindown.experiments.declaration import Experiment, Outcome
from pindown.experiments.runner import Reproduction, reproduce

EXPERIMENTS: dict[str, Experiment] = {
    module.EXPERIMENT.id: module.EXPERIMENT
    for module in (identifiability, inverse_stability, typical_networks)
}

__all__ = ["EXPERIMENTS", "Experiment", "Outcome", "Reproduction", "reproduce"]
