# What pindown.equivalence.recovery offers; lazy.py reads this list.
from pindown.equivalence.recovery.recovering import Recovered as Recovered
from pindown.equivalence.recovery.recovering import recover as recover
