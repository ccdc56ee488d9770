# What pindown.io offers; lazy.py reads this list.
from pindown.io.any_model import as_model as as_model
from pindown.io.any_model import as_network as as_network
from pindown.io.any_model import load as load
from pindown.io.any_model import save as save
