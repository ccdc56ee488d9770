"""What ``diff`` found on data: in the terminal, on the page, as JSON, and as a pipeline's report."""

from __future__ import annotations

from collections.abc import Sequence
from math import isfinite
from typing import TYPE_CHECKING, Any

import numpy as np

from pindown.equivalence.comparison.gates import CONDITIONS, failing_rows
from pindown.equivalence.comparison.graphs import LayerBlame
from pindown.findings.wording import at_most, count, percent
from pindown.report.junit import Case, junit_document
from pindown.report.pages import image_of, png_of
from pindown.report.tuning import MAX_BLAMED, MAX_INPUTS_SHOWN, MAX_ROWS_PRINTED, MAX_ROWS_SHOWN
from pindown.text import printable, rounded_up

if TYPE_CHECKING:
    from pindown.affine import Array
    from pindown.equivalence.comparison import Diff, RowDiff


def rows_word(rows: RowDiff) -> tuple[str, str]:
    """Return the first word of an answer on data, and whether it is good, bad or neither."""
    kinds = {"flips": "different", "flips nearby": "different", "no flips found": "undecided"}
    return rows.verdict.upper(), kinds.get(rows.verdict, "same")


def rows_answer(diff: Diff, rows: RowDiff) -> str:
    """Return the answer on data in a sentence or two."""
    said = []
    if rows.classified:
        flips = int(rows.flipped.sum())
        said.append(f"{flips:,} of {count(len(rows), 'row')} flipped")
    said.append(f"outputs differ by at most {rounded_up(float(rows.gap.max()))} on the rows")
    text = ", ".join(said) + "."
    if rows.margin is not None:
        text += f" Within {rows.radius:g} of them {_counts(rows)}."
    return text


def _counts(rows: RowDiff) -> str:
    return (
        f"{rows.count('proved'):,} are proved to keep one class in both, {rows.count('refuted'):,} are "
        f"refuted by an input, {rows.count('open'):,} are open"
    )


def open_words(rows: RowDiff) -> str:
    """Return at which margin the open rows are proved; nothing if none is open, or none is known."""
    left = rows.gap_upper[np.array([known == "open" for known in rows.same_label])]
    if not len(left) or not isfinite(left.max()):
        return ""
    return (
        f"those that are open are proved at a margin of {rounded_up(float(left.max()))}: no two classes "
        "there differ with both models surer than that"
    )


def new_rows_words(rows: RowDiff) -> str:
    """Return what holds for new rows, with its kind and assumption."""
    parts = []
    if rows.classified:
        parts.append(f"at most {_percent_up(rows.flip_rate)} flip")
    if isfinite(rows.gap_quantile):
        parts.append(f"95 % of the gaps are at most {rounded_up(rows.gap_quantile)}")
    else:
        parts.append("too few rows for the 95 % quantile of the gap (59 are needed)")
    return (
        f"{'; '.join(parts)}: each with {percent(1 - rows.delta)} confidence, if "
        f"{rows.assumptions[0].text} ({rows.kind})"
    )


def _percent_up(share: float) -> str:
    return f"{rounded_up(100.0 * share)} %"


def rows_lines(diff: Diff, rows: RowDiff) -> list[str]:
    """Return what there is to say about data in a terminal, line by line."""
    middle, high = np.quantile(rows.gap, [0.5, 0.99])
    lines = [
        f"on the rows   gap: median {middle:.3g}, 99 % {high:.3g}, largest {rows.gap.max():.3g}; "
        f"tolerance {diff.allowed:.3g}"
    ]
    if rows.classified:
        lines[0] += f"; ties {int(rows.tied.sum()):,}"
    lines.append(f"new rows      {new_rows_words(rows)}")
    if rows.margin is not None:
        lines.append(f"around rows   within {rows.radius:g}: {_counts(rows)}")
        if open_words(rows):
            lines.append(f"              {open_words(rows)}")
    if rows.radius > 0.0:
        lines.append(f"              {_gap_words(rows)} ({rows.seconds:.1f} s)")
    if rows.classified and rows.flipped.any():
        lines.append(f"flipped       {_listed(rows, rows.flips)}")
    lines.append(f"worst rows    {_listed(rows, rows.worst)}")
    # Equal functions may have other layers: then none is to blame.
    blame = diff.blame if rows.gap.max() > diff.allowed or rows.flipped.any() else ()
    lines += [
        f"{'to blame' if not i else '':<14}{_blamed(layer)}: changed alone it makes a gap of "
        f"{layer.alone:.3g}, changed back it leaves {layer.without:.3g}"
        for i, layer in enumerate(blame[:MAX_BLAMED])
    ]
    most = rows.gaps.max(axis=0)
    top = np.argsort(-most, kind="stable")[:MAX_ROWS_PRINTED]
    shown = ", ".join(f"{k}: {most[k]:.3g}" for k in top.tolist())
    lines.append(f"outputs       largest gap of output {shown}")
    return lines


def _gap_words(rows: RowDiff) -> str:
    bounded = np.isfinite(rows.gap_upper)
    if not bounded.any():
        return "no gap around a row was bounded in the time given"
    text = (
        f"gap around a row proved at most {at_most(float(np.median(rows.gap_upper[bounded])))} in the "
        f"median, {at_most(float(rows.gap_upper[bounded].max()))} at most"
    )
    return text + ("" if bounded.all() else f"; {int((~bounded).sum()):,} rows not bounded")


def _listed(rows: RowDiff, numbers: Sequence[int] | Any) -> str:
    shown = [_row_words(rows, row) for row in np.asarray(numbers)[:MAX_ROWS_PRINTED].tolist()]
    more = len(numbers) - len(shown)
    return ", ".join(shown) + (f" and {more:,} more" if more > 0 else "")


def _row_words(rows: RowDiff, row: int) -> str:
    if rows.classified and rows.flipped[row]:
        return f"row {row} ({rows.labels[0][row]} to {rows.labels[1][row]}, gap {rows.gap[row]:.3g})"
    return f"row {row} (gap {rows.gap[row]:.3g})"


# ---------------------------------------------------------------------- the page


def rows_page(diff: Diff, rows: RowDiff) -> dict[str, Any]:
    """Return what the page shows of data."""
    word, state = rows_word(rows)
    first = [*rows.flips.tolist(), *rows.witnesses, *rows.worst.tolist()]
    numbers = list(dict.fromkeys(first))[:MAX_ROWS_SHOWN]
    names = ("row", "first", "second", "gap", "gap near it, at least", "at most", "class near it")
    return {
        "word": word.capitalize(),
        "state": state,
        "answer": rows_answer(diff, rows),
        "new_rows": new_rows_words(rows),
        "flips": f"{int(rows.flipped.sum()):,} of {len(rows):,}" if rows.classified else "",
        "rate": _percent_up(rows.flip_rate) if rows.classified else "",
        "largest": f"{rows.gap.max():.3g}",
        "proved": f"{rows.count('proved'):,} of {len(rows):,}" if rows.margin is not None else "",
        "refuted": f"{rows.count('refuted'):,}",
        "open": f"{rows.count('open'):,}",
        "around": "; ".join(part for part in (_gap_words(rows), open_words(rows)) if part)
        if rows.radius > 0.0
        else "",
        "columns": names,
        "table": [_table_row(rows, row) for row in numbers],
        "classes": ["largest" if rows.flipped[row] else "" for row in numbers],
        "outputs": [
            (k, f"{rows.gaps[:, k].max():.3g}", f"{rows.gaps[:, k].mean():.3g}")
            for k in range(min(rows.gaps.shape[1], MAX_ROWS_SHOWN))
        ],
        "blame": [
            (_blamed(layer), f"{layer.alone:.3g}", f"{layer.without:.3g}", f"{layer.change:.3g}")
            for layer in diff.blame[:MAX_ROWS_SHOWN]
        ],
        "shown": [_shown(diff, rows, row) for row in list(rows.witnesses)[:MAX_ROWS_PRINTED]],
    }


def _blamed(layer: LayerBlame) -> str:
    """Name a layer, and how its weight is stored if that is special."""
    return printable(layer.layer) + (f" ({layer.stored})" if layer.stored else "")


def _table_row(rows: RowDiff, row: int) -> tuple[str, ...]:
    labels = [f"{side[row]}" if rows.classified else "–" for side in rows.labels]
    upper = rows.gap_upper[row]
    return (
        f"{row:,}",
        *labels,
        f"{rows.gap[row]:.3g}",
        f"{rows.gap_lower[row]:.3g}",
        at_most(float(upper)) if isfinite(upper) else "–",
        rows.same_label[row] if rows.margin is not None else "–",
    )


def _shown(diff: Diff, rows: RowDiff, row: int) -> dict[str, Any]:
    """Return a witness beside its row: images, or numbers; and the classes there."""
    x = rows.witnesses[row]
    return {
        "row": f"{row:,}",
        "labels": [int(np.argmax(net(x))) for net in (diff.first, diff.second)],
        "images": [_image(diff, rows.X[row]), _image(diff, x)],
        "numbers": [_numbers(rows.X[row]), _numbers(x)],
        "distance": f"{np.abs(x - rows.X[row]).max():.3g}",
    }


def _image(diff: Diff, x: Array) -> str | None:
    picture = image_of(x, diff.first.input_shape)
    return None if picture is None else png_of(picture)


def _numbers(x: Array) -> str:
    more = ", ..." if x.size > MAX_INPUTS_SHOWN else ""
    return ", ".join(f"{value:.6g}" for value in x[:MAX_INPUTS_SHOWN]) + more


# ---------------------------------------------------------------------- for machines


def rows_as_dict(rows: RowDiff) -> dict[str, Any]:
    """Return the answer on data as dictionaries and lists, as the schema says."""
    return {
        "verdict": rows.verdict,
        "n": len(rows),
        "radius": rows.radius,
        "margin": rows.margin,
        "flips": rows.flips.tolist() if rows.classified else None,
        "ties": np.flatnonzero(rows.tied).tolist(),
        "labels": [side.tolist() for side in rows.labels] if rows.classified else None,
        "gap": rows.gap.tolist(),
        "gap_of_outputs": rows.gaps.max(axis=0).tolist(),
        "flip_rate": rows.flip_rate if rows.classified else None,
        "gap_quantile": rows.gap_quantile,
        "gap_quantiles": [
            {"share": share, "at_most": limit} for share, limit in rows.gap_quantiles.items()
        ],
        "kind": rows.kind,
        "delta": rows.delta,
        "assumptions": [str(assumption) for assumption in rows.assumptions],
        "gap_lower": rows.gap_lower.tolist(),
        "gap_upper": rows.gap_upper.tolist(),
        "same_label": None if rows.margin is None else list(rows.same_label),
        "witnesses": [{"row": row, "input": x.tolist()} for row, x in rows.witnesses.items()],
        "seconds": rows.seconds,
    }


def render_junit(diff: Diff, conditions: Sequence[str]) -> str:
    """Return a test report in the form of JUnit: one case for each condition, with the rows that fail.

    >>> from pindown import ReluNetwork, diff
    >>> a, b = (ReluNetwork.from_layers([([[1.0], [-1.0]], c)]) for c in ([0, 0], [-0.5, 0.5]))
    >>> "1 of 2 rows: 1" in render_junit(diff(a, b, data=[[-2.0], [0.25]]), ["flips"])
    True
    """
    cases = []
    for condition in conditions:
        failing = failing_rows(diff, condition)
        name = f"{diff.names[0]} against {diff.names[1]}: {CONDITIONS[condition]}"  # type: ignore[index]
        n = 0 if diff.rows is None else len(diff.rows)
        words = f"{len(failing):,} of {n:,} rows" if len(failing) else ""
        numbers = ", ".join(map(str, failing.tolist()))
        cases.append(Case(name, words, f"{words}: {numbers}"))
    return junit_document("diff", cases, diff.seconds)
