# What pindown.theorems offers; lazy.py reads this list.
from pindown.theorems.tables import Chapter as Chapter
from pindown.theorems.tables import Erratum as Erratum
from pindown.theorems.tables import Result as Result
from pindown.theorems.tables import Source as Source
from pindown.theorems.tables import errata as errata
from pindown.theorems.tables import results as results
from pindown.theorems.tables import sources as sources
from pindown.theorems.search import find as find
