"""Scores in the terminal: the answer, and the rows that are least typical."""

from __future__ import annotations

from typing import TYPE_CHECKING

from pindown.findings.wording import number_text
from pindown.visible_text import printable

if TYPE_CHECKING:
    from rich.console import Console

    from pindown.report.detect_result import Detection

_MOST_ROWS = 8


def print_detection(detection: Detection, console: Console | None = None) -> None:
    """Print the answer, with colours if the terminal has them."""
    from rich.text import Text

    from pindown.report.terminal import Screen

    out = console or Screen()
    flagged = int(detection.flagged.sum())
    style = "bold green" if flagged == 0 else "bold red" if detection.purpose == "score" else "bold"
    word = "FITTED" if detection.purpose == "fit" else "OUTLIERS" if flagged else "NO OUTLIERS"
    out.print(Text.assemble((word, style), f"  {printable(detection.verdict)}"), soft_wrap=True)
    for line in plain_lines(detection):
        out.print(Text(line[:14], style="dim") + Text(line[14:]), soft_wrap=True)


def plain_lines(detection: Detection) -> list[str]:
    """Return what there is to say after the verdict, line by line."""
    lines = [f"threshold     {detection.offset:.4g} (scores are log-odds; below it a row is an outlier)"]
    lines += [f"{name:<14}{value}" for name, value in detection.settings.items() if value is not None]
    if detection.auc is not None:
        lines.append(f"AUROC         {100 * detection.auc:.1f} % by the 0/1 labels of the file")
    if detection.table.left_out:
        lines.append(f"left out      {printable(', '.join(map(repr, detection.table.left_out)))}")
    lines += [f"note          {printable(note)}" for note in detection.table.notes]
    lines.append(f"took          {detection.seconds:.1f} s of CPU")
    for row in detection.order[:_MOST_ROWS].tolist():
        where = (
            f"{'line' if '.csv' in detection.table.file.lower() else 'row'} {detection.table.lines[row]}"
        )
        lines.append(f"{where:<14}score {detection.scores[row]:.3g}, {reasons(detection, row)}")
    if detection.interrupted:
        lines.append("interrupted   training was stopped: this is what was learned until then")
    return lines


def reasons(detection: Detection, row: int) -> str:
    """Return in which features a row is unusual; a hint, not the detector's own reason."""
    if detection.image_shape:
        return f"quality {detection.quality[row]:.3g}"
    found = [
        f"{printable(name)} {number_text(value)} ({distance:+.1f} sd)"
        for name, value, distance in detection.stands_out(row)
    ]
    return "; ".join(found) or "no feature away from the middle"
