# What pindown.model offers; lazy.py reads this list.
from pindown.model.graph import Model as Model
from pindown.model.graph import Node as Node
from pindown.model.builder import Builder as Builder
from pindown.model.operations.operation import Interval as Interval
from pindown.model.operations.operation import Operation as Operation
