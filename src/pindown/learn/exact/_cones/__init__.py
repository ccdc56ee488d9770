"""Branch and bound for squared loss: cones of units, cut until every product of them is bounded."""

from pathlib import Path

from pindown.compiling import compiler

compiled = compiler(Path(__file__).parent)
