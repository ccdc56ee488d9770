# What pindown.bias.margins offers; lazy.py reads this list.

# the largest margin, in l1, l2 and linf
from pindown.bias.margins.hard_margin import MaxMargin as MaxMargin
from pindown.bias.margins.hard_margin import NoMarginError as NoMarginError
from pindown.bias.margins.hard_margin import max_margin as max_margin
from pindown.bias.margins.hard_margin import signed_labels as signed_labels

# and in frequencies
from pindown.bias.margins.fourier import FourierMargin as FourierMargin
from pindown.bias.margins.fourier import fourier_norm as fourier_norm
from pindown.bias.margins.fourier import fourier_radius as fourier_radius
from pindown.bias.margins.fourier import fourier_stationarity as fourier_stationarity
from pindown.bias.margins.fourier import max_fourier_margin as max_fourier_margin
from pindown.bias.margins.fourier import spectrum as spectrum
from pindown.bias.margins.fourier import worst_fourier_perturbation as worst_fourier_perturbation

# training that goes there
from pindown.bias.margins.linear_networks import LinearLimit as LinearLimit
from pindown.bias.margins.linear_networks import LinearRun as LinearRun
from pindown.bias.margins.linear_networks import linear_network_limit as linear_network_limit
from pindown.bias.margins.linear_networks import train_linear_network as train_linear_network
from pindown.bias.margins.steepest import SteepestDescent as SteepestDescent
from pindown.bias.margins.steepest import steepest_descent as steepest_descent

# the most robust linear classifier
from pindown.bias.margins.robust_linear import RobustLinear as RobustLinear
from pindown.bias.margins.robust_linear import RobustnessTable as RobustnessTable
from pindown.bias.margins.robust_linear import change_length as change_length
from pindown.bias.margins.robust_linear import linear_robustness as linear_robustness
from pindown.bias.margins.robust_linear import most_robust_classifier as most_robust_classifier
from pindown.bias.margins.robust_linear import robustness_table as robustness_table
from pindown.bias.margins.robust_linear import worst_change as worst_change
