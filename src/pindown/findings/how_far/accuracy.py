"""How often the network is right, and by how much."""

from __future__ import annotations

import math

import numpy as np
from numpy.typing import NDArray

from pindown.affine import Array
from pindown.evidence import Assumption
from pindown.findings.finding import Entry, Finding, Quantity, Table
from pindown.findings.pictures import Histogram, Mark, drawable
from pindown.findings.question_budget import NotApplicable
from pindown.findings.questions import question
from pindown.findings.samples import Observed, Sample, Targets, margins, predicted_classes
from pindown.findings.subject import Subject
from pindown.findings.tuning import MAX_CLASSES_SHOWN, WORST_ROWS_SHOWN
from pindown.findings.wording import number_text, percent

_Z95 = 1.959963984540054


@question(
    "ACC-01",
    "Accuracy",
    group="how far",
    needs=("labels",),
    about="Accuracy with its standard error and Wilson interval, or RMSE and R² for regression.",
    cost=(0.2, 2),
    place=2,
)
def accuracy(subject: Subject) -> Finding:
    """Compare outputs with labels or values."""
    sample, observed, targets = subject.judged()
    if targets.is_classification:
        return _classification(subject, sample, observed, targets)
    return _regression(sample, observed, targets)


def _classification(subject: Subject, sample: Sample, observed: Observed, targets: Targets) -> Finding:
    predicted = predicted_classes(observed.outputs)
    right = predicted == targets.values
    n, share = len(right), float(right.mean())
    low, high = wilson_interval(int(right.sum()), n)
    base = float(np.bincount(targets.values).max() / n)
    interval = f"95% interval {percent(low)} to {percent(high)}"
    train = _share_on_data(subject)
    beside = "" if train is None else f"; {percent(train)} on the data"
    gap = "" if train is None else f", and on {percent(train)} of the data"
    return Finding(
        verdict=f"{percent(share)} right on {observed.seen} of the {sample.name} ({interval}){beside}",
        number=Quantity(
            share, "estimate", "%", standard_error=math.sqrt(share * (1 - share) / n), n=n, label="right"
        ),
        hypotheses=_sampling_hypotheses(subject, sample),
        reading="The share of rows whose largest output is the right class (for one output: whose sign "
        "is right). The interval says what the accuracy on new rows from the same source may be; it "
        "covers the true value in about 95% of samples.",
        scale=f"Always guessing the most common class is right on {percent(base)}; 100% on data the "
        "network was trained on says little.",
        table=_class_table(predicted, targets),
        facts={"accuracy": share, "low": low, "high": high, "guess": base}
        | ({"guess_over": base - share} if base < 1.0 else {})  # of one class there is nothing to guess
        | ({} if train is None else {"data": train, "gap_surely": train - high}),
        noise=observed.noise,
        sentence=f"It is right on {percent(share)} of {observed.seen} of the {sample.name} "
        f"({interval}){gap}; guessing the most common class would be right on {percent(base)}.",
    )


def _share_on_data(subject: Subject) -> float | None:
    """Return the accuracy on the data, if it is not the sample that is judged."""
    data, judged = subject.data, subject.labelled
    if data is None or data is judged or data.targets is None:
        return None
    if judged is None or judged.targets is None or judged.targets.task != data.targets.task:
        return None
    observed = subject.observe(data)
    right = predicted_classes(observed.outputs) == data.targets.take(observed.rows).values
    return float(right.mean())


def _regression(sample: Sample, observed: Observed, targets: Targets) -> Finding:
    # In units near the largest number squares stay in float64; a power of two rounds nothing.
    largest = max(float(np.abs(values).max()) for values in (observed.outputs, targets.values))
    unit = math.ldexp(1.0, math.frexp(largest)[1] - 1)
    outputs, values = observed.outputs / unit, targets.values / unit
    errors = np.mean((outputs - values) ** 2, axis=1)
    n, mse = len(errors), float(errors.mean())
    rmse = unit * math.sqrt(mse)
    spread = float(np.mean((values - values.mean(axis=0)) ** 2))
    explained = f"R² {1 - mse / spread:.3f}" if spread > 0 else "R² undefined (all values are equal)"
    guess = number_text(unit * math.sqrt(spread))
    error = unit * float(errors.std(ddof=1) / math.sqrt(4 * n * mse)) if n > 1 and mse > 0 else None
    return Finding(
        verdict=f"RMSE {number_text(rmse)}, {explained} on {observed.seen} of the {sample.name}",
        number=Quantity(rmse, "estimate", "RMSE", standard_error=error, n=n),
        hypotheses=(Assumption("rows are independent and like those to come"),),
        reading="The root of the mean squared error, and the share of the variance that the network "
        "explains.",
        scale=f"Always answering the mean has RMSE {guess} and R² 0; R² 1 is a perfect fit.",
        facts={"rmse": rmse}
        | ({"r2": 1 - mse / spread, "unexplained": mse / spread} if spread > 0 else {}),
        noise=observed.noise,
        sentence=f"Its root mean squared error is {number_text(rmse)} ({explained}) on "
        f"{observed.seen} of the {sample.name}.",
    )


@question(
    "ACC-02",
    "Margins",
    group="how far",
    needs=("labels",),
    about="By how much the right output beats the best wrong one: quantiles, histogram, worst rows.",
    cost=(0.05, 0),
    place=12,
)
def margin_distribution(subject: Subject) -> Finding:
    """Describe how decisively the right class wins."""
    sample, observed, targets = subject.judged()
    if not targets.is_classification:
        raise NotApplicable("margins belong to classification and the targets are real values")
    margin = margins(observed.outputs, targets)
    median = float(np.median(margin))
    wrong = float(np.mean(margin <= 0))
    low, high = (float(q) for q in np.quantile(margin, [0.05, 0.95]))
    return Finding(
        verdict=f"median {number_text(median)}, 5% quantile {number_text(low)}, "
        f"not positive on {percent(wrong)} of {observed.seen}",
        number=Quantity(median, "exact", label="median margin"),
        hypotheses=(
            Assumption(f"a statement about {observed.seen} of the {sample.name}", "checked"),
            Assumption("outputs as float64 evaluation gives them"),
        ),
        reading="The margin is the output of the right class minus the largest other output (for one "
        "output: the output, with the sign of the class). Below 0 the row is misclassified; near 0 a "
        "small change of the input decides.",
        scale=f"In units of the outputs: 90% of rows lie between {number_text(low)} and "
        f"{number_text(high)}. How much input change a margin tolerates is said by LIP-01.",
        figure=_histogram(margin, median),
        table=_worst_rows(observed, targets, margin),
        sentence=_won(median),
    )


def _won(median: float) -> str:
    if median == 0.0:
        return "The right class ties with another in the median."
    verb = "wins" if median > 0 else "loses"
    return f"The right class {verb} by {number_text(abs(median))} in the median."


def wilson_interval(successes: int, n: int, z: float = _Z95) -> tuple[float, float]:
    r"""Return the score interval for a share, of z standard errors; by default of 95%.

    .. math::
        \frac{\hat p + z^2 / 2n \pm z \sqrt{\hat p (1 - \hat p) / n + z^2 / 4 n^2}}{1 + z^2 / n}

    >>> low, high = wilson_interval(5, 10)
    >>> round(low, 3), round(high, 3)
    (0.237, 0.763)

    Wilson 1927, "Probable inference, the law of succession, and statistical inference".
    """
    p = successes / n
    center = (p + z**2 / (2 * n)) / (1 + z**2 / n)
    half = z * math.sqrt(p * (1 - p) / n + z**2 / (4 * n**2)) / (1 + z**2 / n)
    low, high = max(0.0, center - half), min(1.0, center + half)
    return 0.0 if successes == 0 else low, 1.0 if successes == n else high  # rounding must not show


def _sampling_hypotheses(subject: Subject, sample: Sample) -> tuple[Assumption, ...]:
    unseen = "rows were not used for training"
    if sample is not subject.test:
        unseen += " (not said; if they were, the interval is too hopeful)"
    return (Assumption("rows are independent and like those to come"), Assumption(unseen))


def _class_table(predicted: NDArray[np.intp], targets: Targets) -> Table:
    rows: list[tuple[Entry, ...]] = []
    for label in np.unique(targets.values).tolist():
        mine = predicted[targets.values == label]
        wrong = mine[mine != label]
        confused = int(np.bincount(wrong).argmax()) if len(wrong) else None
        rows.append((label, len(mine), len(mine) - len(wrong), float(np.mean(mine == label)), confused))
    caption = "By class"
    if len(rows) > MAX_CLASSES_SHOWN:
        caption = f"The {MAX_CLASSES_SHOWN} least accurate of {len(rows)} classes"
        rows = sorted(rows, key=lambda row: row[3] if isinstance(row[3], float) else 0.0)
    columns = ("class", "rows", "right", "share right", "most often taken for")
    return Table(caption, columns, tuple(rows[:MAX_CLASSES_SHOWN]))


def _worst_rows(observed: Observed, targets: Targets, margin: Array) -> Table:
    predicted = predicted_classes(observed.outputs)
    worst = np.argsort(margin, kind="stable")[:WORST_ROWS_SHOWN]
    return Table(
        "Rows with the smallest margins (numbered from 0)",
        ("row", "label", "predicted", "margin"),
        tuple(
            (int(observed.rows[i]), int(targets.values[i]), int(predicted[i]), float(margin[i]))
            for i in worst
        ),
    )


def _histogram(margin: Array, median: float) -> Histogram | None:
    low, high = float(margin.min()), float(margin.max())
    if not drawable((low, high)):
        return None
    if high - low <= 1e-12 * max(1.0, abs(low), abs(high)):
        low, high = low - 0.5, high + 0.5
    bins = min(40, max(5, int(2 * len(margin) ** (1 / 3))))
    counts, edges = np.histogram(margin, bins=bins, range=(low, high))
    return Histogram(
        "Margins of the rows; below 0 the row is misclassified",
        tuple(edges.tolist()),
        tuple(counts.tolist()),
        "margin",
        "rows",
        marks=(Mark(median, "median"),),
        highlight_below=0.0,
    )
