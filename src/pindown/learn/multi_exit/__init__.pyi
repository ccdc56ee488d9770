# What pindown.learn.multi_exit offers; lazy.py reads this list.

# The classifier
from pindown.learn.multi_exit.estimator import MultiExitClassifier as MultiExitClassifier

# Networks with exits
from pindown.learn.multi_exit.model import MultiExitModel as MultiExitModel
from pindown.learn.multi_exit.model import export_prefixes as export_prefixes
from pindown.learn.multi_exit.networks import MSDNet as MSDNet
from pindown.learn.multi_exit.networks import multi_exit_mlp as multi_exit_mlp
from pindown.learn.multi_exit.networks import multi_exit_cnn as multi_exit_cnn

# The source's two settings
from pindown.learn.multi_exit.protocol import ExitProtocol as ExitProtocol
from pindown.learn.multi_exit.protocol import LabelSplit as LabelSplit

# Training
from pindown.learn.multi_exit.self_distillation import MultiExitDistiller as MultiExitDistiller
from pindown.learn.multi_exit.self_distillation import TemperatureAnnealer as TemperatureAnnealer
from pindown.learn.multi_exit.training import History as History
from pindown.learn.multi_exit.training import train as train
from pindown.learn.multi_exit.training import make_optimiser as make_optimiser
from pindown.learn.multi_exit.training import crop_and_flip as crop_and_flip

# Answering early
from pindown.learn.multi_exit.inference import EarlyAnswers as EarlyAnswers
from pindown.learn.multi_exit.inference import early_exit as early_exit
from pindown.learn.multi_exit.inference import anytime as anytime
from pindown.learn.multi_exit.policy import ExitPolicy as ExitPolicy
from pindown.learn.multi_exit.policy import budget_policy as budget_policy
from pindown.learn.multi_exit.policy import confidence_policy as confidence_policy
from pindown.learn.multi_exit.calibration import timed_policy as timed_policy

# What exits cost
from pindown.learn.multi_exit.costs import ExitCosts as ExitCosts
from pindown.learn.multi_exit.costs import exit_costs as exit_costs
from pindown.learn.multi_exit.costs import measured_costs as measured_costs
from pindown.learn.multi_exit.latency import LatencyCurve as LatencyCurve
from pindown.learn.multi_exit.latency import ExitTimes as ExitTimes
from pindown.learn.multi_exit.latency import latency_curve as latency_curve
from pindown.learn.multi_exit.latency import profile_exits as profile_exits
