# What pindown.equivalence.shrinking offers; lazy.py reads this list.
from pindown.equivalence.shrinking.models import shrink as shrink
from pindown.equivalence.shrinking.engine import shrink_and_settle as shrink_and_settle
from pindown.equivalence.shrinking.result import Shrunk as Shrunk
from pindown.equivalence.shrinking.result import Step as Step
