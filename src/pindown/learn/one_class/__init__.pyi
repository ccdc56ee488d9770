# What pindown.learn.one_class offers; lazy.py reads this list.
from pindown.learn.one_class.detector import LocalMaximaDetector as LocalMaximaDetector
from pindown.learn.one_class.improvement import Path as Path
from pindown.learn.one_class.report import DetectorReport as DetectorReport
