# What pindown.learn.max_pooling offers; lazy.py reads this list.
from pindown.learn.max_pooling.estimator import MaxPoolClassifier as MaxPoolClassifier
from pindown.learn.max_pooling.guarantee import PatternGuarantee as PatternGuarantee
from pindown.learn.max_pooling.schedule import LayerwiseSchedule as LayerwiseSchedule
from pindown.learn.max_pooling.schedule import layerwise_schedule as layerwise_schedule
