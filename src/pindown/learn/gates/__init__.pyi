# What pindown.learn.gates offers; lazy.py reads this list.

# Estimators.
from pindown.learn.gates.glmtron import GLMTron as GLMTron
from pindown.learn.gates.modified_sgd import ModifiedSGDRegressor as ModifiedSGDRegressor
from pindown.learn.gates.noisy_gd import NoisyGDRegressor as NoisyGDRegressor
from pindown.learn.gates.single_filter import SingleFilterRegressor as SingleFilterRegressor

# Links, and what a fit promises.
from pindown.learn.gates.gate import GateGuarantee as GateGuarantee
from pindown.learn.gates.gate import Link as Link
from pindown.learn.gates.gate import as_link as as_link
from pindown.evidence import Assumption as Assumption

# GLM-Tron: its horizon and the risk within it.
from pindown.learn.gates.glmtron_horizons import benign_risk as benign_risk
from pindown.learn.gates.glmtron_horizons import glmtron_excess as glmtron_excess
from pindown.learn.gates.glmtron_horizons import glmtron_gain as glmtron_gain
from pindown.learn.gates.glmtron_horizons import glmtron_horizon as glmtron_horizon
from pindown.learn.gates.glmtron_horizons import one_step_bound as one_step_bound

# Modified SGD: constants of the data and the number of steps.
from pindown.learn.gates.modified_sgd_bounds import GateMoments as GateMoments
from pindown.learn.gates.modified_sgd_bounds import RecursionSolution as RecursionSolution
from pindown.learn.gates.modified_sgd_bounds import gate_moments as gate_moments
from pindown.learn.gates.modified_sgd_bounds import solve_recursion as solve_recursion
from pindown.learn.gates.modified_sgd_bounds import start_distance_bound as start_distance_bound

# Noisy gradient descent: the ball that it stays in.
from pindown.learn.gates.noisy_gd import gate_gradient as gate_gradient
from pindown.learn.gates.noisy_gd_confinement import Confinement as Confinement
from pindown.learn.gates.noisy_gd_confinement import best_radius as best_radius
from pindown.learn.gates.noisy_gd_confinement import confinement as confinement
from pindown.learn.gates.noisy_gd_confinement import gaussian_tail as gaussian_tail
from pindown.learn.gates.noisy_gd_confinement import largest_step as largest_step
