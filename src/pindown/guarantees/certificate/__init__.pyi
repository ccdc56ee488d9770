# What pindown.guarantees.certificate offers; lazy.py reads this list.
from pindown.guarantees.certificate.recipe import certify as certify
from pindown.guarantees.certificate.posterior import WeightPosterior as WeightPosterior
from pindown.guarantees.certificate.recipe import Certificate as Certificate
