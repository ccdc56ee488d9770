"""Published results run again: what was claimed, the run that checks it, and the comparison.

There is a folder for each source, and a module in it for each result. To add one, write a module with
``EXPERIMENT = Experiment(...)`` whose id is the module's name with hyphens; modules that begin with an
underscore hold what several share. Modules are imported when their experiments are used. What is
published but not run is in ``not_run.py``; :func:`write_ledger` puts all of it on one page.
"""

from pindown_reproduction.experiment import Cause, Declared, Experiment, Outcome, Power
from pindown_reproduction.judgement import judge
from pindown_reproduction.ledger import Ledger, read_ledger
from pindown_reproduction.ledger_page import write_ledger
from pindown_reproduction.not_run import DECLARED
from pindown_reproduction.register import EXPERIMENTS
from pindown_reproduction.run_all import Finished, reproduce_all
from pindown_reproduction.runner import Reproduction, reproduce

__version__ = "0.1.0"

__all__ = [
    "DECLARED",
    "EXPERIMENTS",
    "Cause",
    "Declared",
    "Experiment",
    "Finished",
    "Ledger",
    "Outcome",
    "Power",
    "Reproduction",
    "judge",
    "read_ledger",
    "reproduce",
    "reproduce_all",
    "write_ledger",
]
