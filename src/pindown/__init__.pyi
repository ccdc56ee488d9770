# What pindown offers; lazy.py reads this list.

# a model
from pindown.io import load as load
from pindown.model import Model as Model
from pindown.network import ReluNetwork as ReluNetwork
from pindown.box import Box as Box

# questions about it
from pindown._audit import Audit as Audit
from pindown._audit import audit as audit
from pindown._audit import compare_audits as compare_audits
from pindown.equivalence import Diff as Diff
from pindown.equivalence import Recovered as Recovered
from pindown.equivalence import Shrunk as Shrunk
from pindown.equivalence import canonical as canonical
from pindown.equivalence import diff as diff
from pindown.equivalence import recover as recover
from pindown.equivalence import shrink as shrink
from pindown.verification import Property as Property
from pindown.verification import Verification as Verification
from pindown.verification import verify as verify

# the rooms
from pindown import bias as bias
from pindown import circuits as circuits
from pindown import datasets as datasets
from pindown import equivalence as equivalence
from pindown import findings as findings
from pindown import geometry as geometry
from pindown import guarantees as guarantees
from pindown import io as io
from pindown import learn as learn
from pindown import model as model
from pindown import optim as optim
from pindown import parallel as parallel
from pindown import probes as probes
from pindown import relaxation as relaxation
from pindown import report as report
from pindown import symmetry as symmetry
from pindown import theorems as theorems
from pindown import verification as verification

__version__: str
