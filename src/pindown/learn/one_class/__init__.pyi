# What pindown.learn.one_class offers; lazy.py reads this list.

# The detector
from pindown.learn.one_class.detector import LocalMaximaDetector as LocalMaximaDetector

# What it returns
from pindown.learn.one_class.scoring import Path as Path
from pindown.learn.one_class.report import DetectorReport as DetectorReport
from pindown.learn.one_class.ensemble import HeldOutLosses as HeldOutLosses
