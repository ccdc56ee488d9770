"""How much a report shows: more rows, points or letters would make it slow or hard to read."""

from __future__ import annotations

# Pages. A page of a very deep network must still open on a phone.
MAX_TABLE_ROWS = 200
MAX_KEY_NUMBERS = 6
MIN_KEY_NUMBERS = 4
# A square of fewer inputs is rather a table than an image.
MIN_SQUARE_SIDE = 8
# How large a table may be below a picture and beside words, in rows and letters.
MAX_ROWS_BELOW_PICTURE = 7
MAX_LETTERS_BELOW_PICTURE = 54
MAX_LETTERS_BESIDE_WORDS = 68

# Pictures. More corners would hide a curve; more letters below an axis would run into each other.
MAX_BARS = 24
MAX_CORNERS = 60
MAX_TICK_LETTERS = 34
MAX_LEGEND_ENTRIES = 12
MAX_LARGE_DOTS = 10

# Comparing two networks: outputs and inputs of a witness on the page, numbers and steps in a terminal.
MAX_OUTPUTS_SHOWN = 12
MAX_INPUTS_SHOWN = 24
MAX_NUMBERS_PRINTED = 6
MAX_STEPS_PRINTED = 8
# Of data: rows in the table, those that matter first.
MAX_ROWS_SHOWN = 25
MAX_BLAMED = 3

# Verifying. A large image is drawn with every k-th pixel, so that three of them fit into a page; more
# steps than this would not be told apart in the picture of a search.
MAX_IMAGE_SIDE = 96
MAX_HISTORY_STEPS = 120

# Detecting. Rows of the most and of the least typical ones; points per colour, of which more would only
# fill the plane; quantiles at which axes end, so that a few far values do not press all others together.
ROWS_SCORED_AT_ONCE = 20_000
ROWS_AT_EACH_END = 12
# Columns of a row that are explained by the score, each by scoring the row without it.
MAX_COLUMNS_EXPLAINED = 200
MAX_ROWS_PRINTED = 8
MAX_NAME_LETTERS = 60
HISTOGRAM_BINS = 40
HISTOGRAM_ENDS = (0.001, 0.999)
MAX_POINTS = 2_000
SCATTER_ENDS = (0.002, 0.998)
