# What pindown.verification offers; lazy.py reads this list.

# properties that hold on a whole box
from pindown.verification.acas_xu import acas_xu_property as acas_xu_property
from pindown.verification.verification import Verification as Verification
from pindown.verification.verification import verify as verify

# classes that hold around inputs
from pindown.verification.accuracy import CertifiedAccuracy as CertifiedAccuracy
from pindown.verification.accuracy import certified_accuracy as certified_accuracy
from pindown.verification.certificates import certified as certified
from pindown.verification.distance import MinimumDistance as MinimumDistance
from pindown.verification.distance import minimum_distance as minimum_distance
from pindown.verification.radii import certified_radii as certified_radii

# counterexamples
from pindown.verification.attack_result import AttackResult as AttackResult
from pindown.verification.linearised_steps import deepfool as deepfool
from pindown.verification.linearised_steps import deepfool_binary as deepfool_binary
from pindown.verification.projected_gradient import gradient_attack as gradient_attack
