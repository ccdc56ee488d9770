"""How much a data file may hold, and how much of one is quoted in a message.

A data file is untrusted: what it claims is checked against these before memory is taken.
"""

from __future__ import annotations

MAX_BYTES = 8 * 2**30  # one array
MAX_CSV_CHARACTERS = 2**30  # as text in memory a number takes ten times its eight bytes
MAX_NUMBERS = 2**27  # of a table of features: a gigabyte of float64
MAX_FIRST_LINE = 2**20  # characters of the first line that are looked at for what parts the cells
MAX_AXES = 4  # of an IDX file
ROWS_AT_ONCE = 10_000  # text never takes more memory than the numbers do
MAX_CELL = 60  # characters of a cell worth showing in a message
MAX_NAMED = 5  # names worth listing in a message
