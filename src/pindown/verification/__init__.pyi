# What pindown.verification offers; lazy.py reads this list.

# properties that hold on a whole box
from pindown.verification.portfolio import verify as verify
from pindown.verification.output_ranges import output_range as output_range
from pindown.verification.verdicts import Verification as Verification

# what properties say
from pindown.verification.properties import Property as Property
from pindown.verification.properties import UnsafeSet as UnsafeSet
from pindown.verification.vnnlib import read_vnnlib as read_vnnlib

# classes that hold around inputs
from pindown.verification.accuracy_curves import CertifiedAccuracy as CertifiedAccuracy
from pindown.verification.certificates import certified as certified
from pindown.verification.accuracy_curves import certified_accuracy as certified_accuracy
from pindown.verification.certificates import certified_radii as certified_radii
from pindown.verification.distance import MinimumDistance as MinimumDistance
from pindown.verification.distance import minimum_distance as minimum_distance

# counterexamples; pindown.probes.attack looks for those of classes
from pindown.verification.falsification import Falsifier as Falsifier
from pindown.verification.falsification import find_violation as find_violation
from pindown.verification.witnesses import Witness as Witness
