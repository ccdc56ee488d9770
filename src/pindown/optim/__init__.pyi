# What pindown.optim offers; lazy.py reads this list.

# optimisers for torch
from pindown.optim.adam import Adam as Adam
from pindown.optim.momentum import HeavyBall as HeavyBall
from pindown.optim.momentum import NAG as NAG
from pindown.optim.rmsprop import RMSProp as RMSProp

# settings with a promise
from pindown.optim.adam_theorem import AdamPlan as AdamPlan
from pindown.optim.interpolation import StochasticRMSPropConditions as StochasticRMSPropConditions
from pindown.optim.rmsprop_theorems import PreconditionedDescent as PreconditionedDescent
from pindown.optim.rmsprop_theorems import RMSPropPlan as RMSPropPlan
from pindown.optim.rmsprop_theorems import SignConstrainedPlan as SignConstrainedPlan
from pindown.optim.rmsprop_theorems import UnshiftedPlan as UnshiftedPlan
from pindown.optim.adam_theorem import adam_plan as adam_plan
from pindown.optim.interpolation import dynamic_shift_holds as dynamic_shift_holds
from pindown.optim.interpolation import stochastic_rmsprop_conditions as stochastic_rmsprop_conditions
from pindown.optim.rmsprop_theorems import preconditioned_descent as preconditioned_descent
from pindown.optim.rmsprop_theorems import rmsprop_plan as rmsprop_plan
from pindown.optim.rmsprop_theorems import rmsprop_unshifted_plan as rmsprop_unshifted_plan
from pindown.optim.rmsprop_theorems import sign_constrained_plan as sign_constrained_plan

# interpolation
from pindown.optim.interpolation import Interpolation as Interpolation
from pindown.optim.interpolation import interpolating_oracle_floor as interpolating_oracle_floor
from pindown.optim.interpolation import interpolating_oracle_holds as interpolating_oracle_holds
from pindown.optim.interpolation import interpolation_diagnostic as interpolation_diagnostic

# functions with known constants, and the methods in NumPy
from pindown.optim.reference import AdamRule as AdamRule
from pindown.optim.problems import Constants as Constants
from pindown.optim.reference import HeavyBallRule as HeavyBallRule
from pindown.optim.reference import NAGRule as NAGRule
from pindown.optim.problems import Problem as Problem
from pindown.optim.reference import RMSPropRule as RMSPropRule
from pindown.optim.reference import Trace as Trace
from pindown.optim.problems import bounded_well as bounded_well
from pindown.optim.problems import estimate_constants as estimate_constants
from pindown.optim.problems import finite_sum as finite_sum
from pindown.optim.problems import log_cosh as log_cosh
from pindown.optim.reference import minimize as minimize
from pindown.optim.reference import one_term as one_term

# Hessians
from pindown.optim.hessian import HessianSpectrum as HessianSpectrum
from pindown.optim.hessian import hessian_operator as hessian_operator
from pindown.optim.hessian import hessian_spectrum as hessian_spectrum

# the path of training
from pindown.optim.path_geometry import Dispersion as Dispersion
from pindown.optim.path_geometry import PathReport as PathReport
from pindown.optim.path_geometry import TrainingPathGeometry as TrainingPathGeometry
from pindown.affine import angle as angle
from pindown.optim.path_geometry import angle_density as angle_density
from pindown.optim.path_geometry import dispersion as dispersion
