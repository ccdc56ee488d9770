"""Adaptive gradient methods as their theorems state them: optimisers, step sizes, horizons, checks."""

from typing import TYPE_CHECKING

from pindown.lazy import lazy_names

if TYPE_CHECKING:
    from pindown.optim.adam import Adam as Adam
    from pindown.optim.adam_theorem import AdamPlan as AdamPlan
    from pindown.optim.adam_theorem import adam_plan as adam_plan
    from pindown.optim.hessian import HessianSpectrum as HessianSpectrum
    from pindown.optim.hessian import hessian_operator as hessian_operator
    from pindown.optim.hessian import hessian_spectrum as hessian_spectrum
    from pindown.optim.interpolating_theorem import FastRMSProp as FastRMSProp
    from pindown.optim.interpolating_theorem import dynamic_shift_holds as dynamic_shift_holds
    from pindown.optim.interpolating_theorem import fast_rmsprop as fast_rmsprop
    from pindown.optim.interpolation import Interpolation as Interpolation
    from pindown.optim.interpolation import interpolating_oracle_floor as interpolating_oracle_floor
    from pindown.optim.interpolation import interpolating_oracle_holds as interpolating_oracle_holds
    from pindown.optim.interpolation import interpolation_diagnostic as interpolation_diagnostic
    from pindown.optim.momentum import NAG as NAG
    from pindown.optim.momentum import HeavyBall as HeavyBall
    from pindown.optim.path_geometry import Dispersion as Dispersion
    from pindown.optim.path_geometry import PathReport as PathReport
    from pindown.optim.path_geometry import TrainingPathGeometry as TrainingPathGeometry
    from pindown.optim.path_geometry import angle as angle
    from pindown.optim.path_geometry import angle_density as angle_density
    from pindown.optim.path_geometry import dispersion as dispersion
    from pindown.optim.problems import Constants as Constants
    from pindown.optim.problems import Problem as Problem
    from pindown.optim.problems import bounded_well as bounded_well
    from pindown.optim.problems import estimate_constants as estimate_constants
    from pindown.optim.problems import finite_sum as finite_sum
    from pindown.optim.problems import log_cosh as log_cosh
    from pindown.optim.reference import AdamRule as AdamRule
    from pindown.optim.reference import HeavyBallRule as HeavyBallRule
    from pindown.optim.reference import NAGRule as NAGRule
    from pindown.optim.reference import RMSPropRule as RMSPropRule
    from pindown.optim.reference import Trace as Trace
    from pindown.optim.reference import minimize as minimize
    from pindown.optim.reference import one_term as one_term
    from pindown.optim.rmsprop import RMSProp as RMSProp
    from pindown.optim.rmsprop_theorems import RMSPropPlan as RMSPropPlan
    from pindown.optim.rmsprop_theorems import rmsprop_plan as rmsprop_plan
    from pindown.optim.rmsprop_unshifted import UnshiftedPlan as UnshiftedPlan
    from pindown.optim.rmsprop_unshifted import rmsprop_unshifted_plan as rmsprop_unshifted_plan
    from pindown.optim.sign_constrained import PreconditionedDescent as PreconditionedDescent
    from pindown.optim.sign_constrained import SignConstrainedPlan as SignConstrainedPlan
    from pindown.optim.sign_constrained import preconditioned_descent as preconditioned_descent
    from pindown.optim.sign_constrained import sign_constrained_plan as sign_constrained_plan

# Where each name lives: a module is loaded when something in it is used, not on import.
_NAMES = {
    "adam": "Adam",
    "adam_theorem": "AdamPlan adam_plan",
    "interpolating_theorem": "FastRMSProp dynamic_shift_holds fast_rmsprop",
    "hessian": "HessianSpectrum hessian_operator hessian_spectrum",
    "interpolation": "Interpolation interpolating_oracle_floor interpolating_oracle_holds "
    "interpolation_diagnostic",
    "momentum": "HeavyBall NAG",
    "path_geometry": "Dispersion PathReport TrainingPathGeometry angle angle_density dispersion",
    "problems": "Constants Problem bounded_well estimate_constants finite_sum log_cosh",
    "reference": "AdamRule HeavyBallRule NAGRule RMSPropRule Trace minimize one_term",
    "rmsprop": "RMSProp",
    "rmsprop_theorems": "RMSPropPlan rmsprop_plan",
    "rmsprop_unshifted": "UnshiftedPlan rmsprop_unshifted_plan",
    "sign_constrained": "PreconditionedDescent SignConstrainedPlan preconditioned_descent "
    "sign_constrained_plan",
}
__getattr__, __dir__, __all__ = lazy_names(__name__, _NAMES)
