"""What is said about data is true of the numbers behind it."""

from dataclasses import replace

import numpy as np

from pindown import ReluNetwork, diff
from pindown.report.rows import open_words, rows_answer, rows_lines, rows_word


def compared(biases, data, **options):
    a, b = (ReluNetwork.from_layers([([[1.0], [-1.0]], c)]) for c in ([0, 0], biases))
    return diff(a, b, data=data, budget=3, **options)


def test_the_first_word_is_the_worst_that_is_known():
    cases = [
        ({"data": [[1.0]]}, "NO FLIPS"),
        ({"data": [[0.2]]}, "FLIPS"),
        ({"data": [[-0.1]], "radius": 0.2, "labels": True}, "FLIPS NEARBY"),
        ({"data": [[1.0]], "radius": 0.2, "labels": True}, "NO FLIPS"),
    ]
    for options, word in cases:
        answer = compared([-0.5, 0.5], **options)
        assert rows_word(answer.rows)[0] == word


def test_open_rows_are_told_with_the_margin_that_proves_them():
    options = {"data": [[0.0]], "radius": 0.5}
    rows = replace(compared([-1e-9, 1e-9], labels=True, **options).rows, same_label=("open",))
    assert rows_word(rows)[0] == "NO FLIPS FOUND"
    margin = float(open_words(rows).split("margin of ")[1].split(":")[0])
    again = compared([-1e-9, 1e-9], labels=margin, **options)
    assert again.rows.same_label == ("proved",) and open_words(again.rows) == ""


def test_lines_name_rows_and_stay_upper_ends():
    answer = compared([-0.5, 0.5], np.linspace(-1, 1, 100)[:, None], radius=0.01)
    text = " ".join(rows_lines(answer, answer.rows))
    flips = int(answer.rows.flipped.sum())
    assert rows_answer(answer, answer.rows).startswith(f"{flips} of 100 rows flipped")
    said = float(text.split("at most ")[1].split(" %")[0])
    assert said >= 100 * answer.flip_rate > 100 * flips / 100
    assert f"row {answer.rows.flips[0]} (0 to 1" in text
