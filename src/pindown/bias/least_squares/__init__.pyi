# What pindown.bias.least_squares offers; lazy.py reads this list.

# the solution of least norm, and gradient descent
from pindown.bias.least_squares.gradient_descent import DescentPrediction as DescentPrediction
from pindown.bias.least_squares.gradient_descent import LeastNorm as LeastNorm
from pindown.bias.least_squares.gradient_descent import descent_iterate as descent_iterate
from pindown.bias.least_squares.gradient_descent import descent_limit as descent_limit
from pindown.bias.least_squares.gradient_descent import largest_step as largest_step
from pindown.bias.least_squares.gradient_descent import least_norm_solution as least_norm_solution
from pindown.bias.least_squares.gradient_descent import null_projector as null_projector
from pindown.bias.least_squares.gradient_descent import predict_descent as predict_descent

# early stopping as ridge regression
from pindown.bias.least_squares.early_stopping import EquivalentPenalty as EquivalentPenalty
from pindown.bias.least_squares.early_stopping import StoppedDescent as StoppedDescent
from pindown.bias.least_squares.early_stopping import descent_shrinkage as descent_shrinkage
from pindown.bias.least_squares.early_stopping import equivalent_penalty as equivalent_penalty
from pindown.bias.least_squares.early_stopping import equivalent_steps as equivalent_steps
from pindown.bias.least_squares.early_stopping import flow_penalty as flow_penalty
from pindown.bias.least_squares.early_stopping import ridge_shrinkage as ridge_shrinkage
from pindown.bias.least_squares.early_stopping import stopping_as_ridge as stopping_as_ridge

# penalties: weight decay, ridge, lasso
from pindown.bias.least_squares.penalties import PolynomialFit as PolynomialFit
from pindown.bias.least_squares.penalties import WeightDecay as WeightDecay
from pindown.bias.least_squares.penalties import fit_polynomial as fit_polynomial
from pindown.bias.least_squares.penalties import loss_surface as loss_surface
from pindown.bias.least_squares.penalties import weight_decay as weight_decay
from pindown.bias.least_squares.penalties import weight_decay_of_module as weight_decay_of_module

# noise on the inputs and dropout
from pindown.bias.least_squares.noise import DropoutFit as DropoutFit
from pindown.bias.least_squares.noise import DropoutPrediction as DropoutPrediction
from pindown.bias.least_squares.noise import NoiseExpansion as NoiseExpansion
from pindown.bias.least_squares.noise import dropout_least_squares as dropout_least_squares
from pindown.bias.least_squares.noise import dropout_predict as dropout_predict
from pindown.bias.least_squares.noise import dropout_squared_error as dropout_squared_error
from pindown.bias.least_squares.noise import jacobian_penalty as jacobian_penalty
from pindown.bias.least_squares.noise import mask_average as mask_average
from pindown.bias.least_squares.noise import noise_expansion as noise_expansion
from pindown.bias.least_squares.noise import noise_to_ridge as noise_to_ridge
from pindown.bias.least_squares.noise import noisy_least_squares as noisy_least_squares
from pindown.bias.least_squares.noise import noisy_squared_error as noisy_squared_error
from pindown.bias.least_squares.noise import ridge_to_noise as ridge_to_noise

# more features than samples
from pindown.bias.least_squares.double_descent import DoubleDescent as DoubleDescent
from pindown.bias.least_squares.double_descent import double_descent_curve as double_descent_curve
from pindown.bias.least_squares.double_descent import gaussian_risk as gaussian_risk

# one neuron
from pindown.bias.least_squares.single_neuron import SingleNeuron as SingleNeuron
from pindown.bias.least_squares.single_neuron import nearest_without_loss as nearest_without_loss
from pindown.bias.least_squares.single_neuron import single_neuron_flow as single_neuron_flow
