# What pindown.learn.max_pooling offers; lazy.py reads this list.

# The estimator, what it promises, and the constants of the theorem.
from pindown.learn.max_pooling.estimator import MaxPoolClassifier as MaxPoolClassifier
from pindown.learn.max_pooling.layerwise import PatternGuarantee as PatternGuarantee
from pindown.learn.max_pooling.layerwise import LayerwiseSchedule as LayerwiseSchedule
from pindown.learn.max_pooling.layerwise import layerwise_schedule as layerwise_schedule
from pindown.learn.max_pooling.layerwise import class_share_failure as class_share_failure
