"""What training chooses among the solutions of least squares, in closed form.

The least norm, descent and its iterates, early stopping, weight decay, noise, dropout, double descent.
The parts that need no prediction of training live in :mod:`pindown.bias.shrinkage`.
"""

from pindown.bias.least_squares.descent import DescentPrediction, predict_descent
from pindown.bias.least_squares.double_descent import DoubleDescent, double_descent_curve, gaussian_risk
from pindown.bias.least_squares.dropout import DropoutFit, dropout_least_squares
from pindown.bias.least_squares.input_noise import (
    NoiseExpansion,
    jacobian_penalty,
    noise_expansion,
    noise_to_ridge,
    noisy_least_squares,
    noisy_squared_error,
    ridge_to_noise,
)
from pindown.bias.least_squares.single_neuron import (
    SingleNeuron,
    nearest_without_loss,
    single_neuron_flow,
)
from pindown.bias.least_squares.stopping import StoppedDescent, flow_penalty, stopping_as_ridge
from pindown.bias.least_squares.weight_decay import WeightDecay, weight_decay, weight_decay_of_module

__all__ = [
    "DescentPrediction",
    "DoubleDescent",
    "DropoutFit",
    "NoiseExpansion",
    "SingleNeuron",
    "StoppedDescent",
    "WeightDecay",
    "double_descent_curve",
    "dropout_least_squares",
    "flow_penalty",
    "gaussian_risk",
    "jacobian_penalty",
    "nearest_without_loss",
    "noise_expansion",
    "noise_to_ridge",
    "noisy_least_squares",
    "noisy_squared_error",
    "predict_descent",
    "ridge_to_noise",
    "single_neuron_flow",
    "stopping_as_ridge",
    "weight_decay",
    "weight_decay_of_module",
]
