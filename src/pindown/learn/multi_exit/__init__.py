"""Networks that can answer early: several exits, trained by their own last one."""

from typing import TYPE_CHECKING

from pindown.lazy import lazy_names

if TYPE_CHECKING:
    from pindown.learn.multi_exit.annealing import TemperatureAnnealer as TemperatureAnnealer
    from pindown.learn.multi_exit.costs import ExitCosts as ExitCosts
    from pindown.learn.multi_exit.costs import exit_costs as exit_costs
    from pindown.learn.multi_exit.costs import measured_costs as measured_costs
    from pindown.learn.multi_exit.distiller import MultiExitDistiller as MultiExitDistiller
    from pindown.learn.multi_exit.early import anytime as anytime
    from pindown.learn.multi_exit.early import early_exit as early_exit
    from pindown.learn.multi_exit.estimator import MultiExitClassifier as MultiExitClassifier
    from pindown.learn.multi_exit.export import export_prefixes as export_prefixes
    from pindown.learn.multi_exit.model import MultiExitModel as MultiExitModel
    from pindown.learn.multi_exit.msdnet import MSDNet as MSDNet
    from pindown.learn.multi_exit.policy import ExitPolicy as ExitPolicy
    from pindown.learn.multi_exit.policy import budget_policy as budget_policy
    from pindown.learn.multi_exit.policy import confidence_policy as confidence_policy
    from pindown.learn.multi_exit.profiling import LatencyCurve as LatencyCurve
    from pindown.learn.multi_exit.profiling import latency_curve as latency_curve
    from pindown.learn.multi_exit.profiling import profile_exits as profile_exits
    from pindown.learn.multi_exit.timed import timed_policy as timed_policy

_NAMES = {
    "annealing": "TemperatureAnnealer",
    "costs": "ExitCosts exit_costs measured_costs",
    "distiller": "MultiExitDistiller",
    "early": "anytime early_exit",
    "estimator": "MultiExitClassifier",
    "export": "export_prefixes",
    "model": "MultiExitModel",
    "msdnet": "MSDNet",
    "policy": "ExitPolicy budget_policy confidence_policy",
    "profiling": "LatencyCurve latency_curve profile_exits",
    "timed": "timed_policy",
}
__getattr__, __dir__, __all__ = lazy_names(__name__, _NAMES)
