"""Gates learned with a promise: how near the true weights, after how many steps, under which noise."""

from pindown.learn.gates.confinement import (
    Confinement,
    best_radius,
    confinement,
    gaussian_tail,
    largest_step,
)
from pindown.learn.gates.glmtron import GLMTron
from pindown.learn.gates.glmtron_bounds import (
    benign_risk,
    glmtron_excess,
    glmtron_gain,
    glmtron_horizon,
    one_step_bound,
)
from pindown.learn.gates.guarantee import Assumption, GateGuarantee
from pindown.learn.gates.links import Link, as_link
from pindown.learn.gates.modified_sgd import ModifiedSGDRegressor
from pindown.learn.gates.moments import GateMoments, gate_moments, start_distance_bound
from pindown.learn.gates.noisy_gd import NoisyGDRegressor, gate_gradient
from pindown.learn.gates.recursion import RecursionSolution, solve_recursion
from pindown.learn.gates.single_filter import SingleFilterRegressor

__all__ = [
    "Assumption",
    "Confinement",
    "GLMTron",
    "GateGuarantee",
    "GateMoments",
    "Link",
    "ModifiedSGDRegressor",
    "NoisyGDRegressor",
    "RecursionSolution",
    "SingleFilterRegressor",
    "as_link",
    "benign_risk",
    "best_radius",
    "confinement",
    "gate_gradient",
    "gate_moments",
    "gaussian_tail",
    "glmtron_excess",
    "glmtron_gain",
    "glmtron_horizon",
    "largest_step",
    "one_step_bound",
    "solve_recursion",
    "start_distance_bound",
]
