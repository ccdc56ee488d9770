"""Compiled search over tuples of cells: bounds, cone programs, descent."""

from pathlib import Path

from pindown.compiling import compiler

compiled = compiler(Path(__file__).parent)
