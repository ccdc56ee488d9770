"""Commands about which rows belong: ``detect fit`` and ``detect score``."""

from __future__ import annotations

import warnings
from collections.abc import Callable, Sequence
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any, Literal

import typer

from pindown.atomic_files import together
from pindown.cli.completion import complete_detector, complete_table
from pindown.cli.options import (
    Html,
    Json,
    Seed,
    check_outputs,
    check_writable,
    reader_may_leave,
    say,
)
from pindown.interrupts import INTERRUPTED
from pindown.validation import probability

if TYPE_CHECKING:
    from pindown.datasets.feature_files import FeatureTable
    from pindown.datasets.mixed_tables import TableEncoding
    from pindown.learn.one_class import LocalMaximaDetector
    from pindown.report.detection import Detection

_MODEL_ENDING = ".safetensors"
_STOPPED = "interrupted"  # how the detector's own words about Ctrl-C begin

Data = Annotated[
    Path,
    typer.Argument(
        help="Rows: .csv, .tsv (or .gz of them), .npz, .npy or .parquet.", autocompletion=complete_table
    ),
]
New = Annotated[
    Path,
    typer.Argument(
        help="Rows to score, with the columns the model was fitted on.", autocompletion=complete_table
    ),
]
Fitted = Annotated[
    Path, typer.Argument(help="A model that 'detect fit' wrote.", autocompletion=complete_detector)
]
ModelOut = Annotated[Path, typer.Option("--out", "-o", help="Where to write the model: .safetensors.")]
ScoresOut = Annotated[Path | None, typer.Option("--out", "-o", help="Write the scores: .csv.")]
Preset = Annotated[
    Literal["auto", "tabular", "image", "paper"],
    typer.Option(help="auto goes by the shape of the data; paper is the published algorithm."),
]
Label = Annotated[
    str | None, typer.Option(help="Column (or NPZ array) of labels; no feature. 0/1 gives an AUROC.")
]
Ignore = Annotated[
    list[str] | None,
    typer.Option(help="Column to leave out, may be repeated; #3 is the third of a file without names."),
]
ColumnKinds = Annotated[
    list[str] | None,
    typer.Option(
        metavar="NAME=KIND",
        help="What a column holds: number, boolean, date, category or ignore. May be repeated.",
    ),
]
Contamination = Annotated[
    str, typer.Option(help="Share of the training rows to call outliers, up to 0.5, or auto.")
]
ImageShape = Annotated[
    str | None, typer.Option(metavar="HxW[xC]", help="Rows are images, such as 28x28 or 32x32x3.")
]
Epochs = Annotated[int | None, typer.Option(help="Epochs; by default by the size of the data.")]
Members = Annotated[int | None, typer.Option(help="Networks to average; by default 3, paper 1.")]

Calibration = Annotated[
    Literal["auto", "split", "cross", "none"],
    typer.Option(help="Where p-values come from: rows held out of one companion, or of five."),
]
Fdr = Annotated[
    float | None,
    typer.Option(help="Call rows outliers so that at most this share of them are members, on average."),
]
FalseAlarms = Annotated[
    float | None,
    typer.Option(help="Call rows outliers so that at most this share of new members are."),
]

detect = typer.Typer(
    name="detect",
    help="Learn what belongs from examples alone; find rows that do not, and rows of poor quality.",
    epilog="Example: [bold]pindown detect fit normal.csv -o model.safetensors[/bold]",
    no_args_is_help=True,
    rich_markup_mode="rich",
)


@detect.command(
    epilog="Example: [bold]pindown detect fit normal.csv -o model.safetensors --label-column y "
    "--html fit.html[/bold]"
)
def fit(
    data: Data,
    out: ModelOut,
    preset: Preset = "auto",
    label_column: Label = None,
    ignore_column: Ignore = None,
    column: ColumnKinds = None,
    contamination: Contamination = "auto",
    seed: Seed = 0,
    image_shape: ImageShape = None,
    epochs: Epochs = None,
    members: Members = None,
    calibration: Calibration = "auto",
    html: Html = None,
    json: Json = None,
) -> int:
    """Learn from rows that belong, and write the model. All rows of the file are taken as members.

    Ctrl-C ends training early and keeps what was learned; the exit code is then 130.
    """
    from pindown.deadline import Stopwatch
    from pindown.learn.one_class import LocalMaximaDetector
    from pindown.report.detection import detection

    check_outputs(html=html, json=json)
    _check_target("-o", out, _MODEL_ENDING, data)
    if epochs is not None and epochs < 1:
        raise ValueError(f"--epochs must be at least 1; got {epochs}: untrained, all rows score 0.")
    detector = LocalMaximaDetector(
        preset,
        contamination=_share(contamination),
        image_shape=_shape(image_shape),
        max_epochs=epochs,
        n_estimators=members,
        calibration=None if calibration == "none" else calibration,
        random_state=seed,
        verbose=1,
    )
    table, encoding = _training_table(data, label_column, ignore_column or (), column or ())
    if len(table.X) < 2:
        raise ValueError(f"{table.file} holds one row; a detector needs at least two.")
    work = Stopwatch(cpu=True)
    interrupted = _fit(detector, table)
    seconds = work.seconds
    failure: Exception | None = None
    with together():
        unsaved = _saved(detector, out, table.names, encoding)
        try:
            how: dict[str, Any] = {"seconds": seconds, "interrupted": interrupted}
            files = _deliver(detection("fit", detector, table, out.name, **how), html, json)
        except Exception as error:  # costs the page, and not what was learned
            files, failure = [], error
        if unsaved is not None:
            raise unsaved
    _say_written([*files, out])
    if failure is not None:
        raise failure
    return INTERRUPTED if interrupted else 0


@detect.command(
    epilog="Example: [bold]pindown detect score model.safetensors new.csv -o s.csv --fdr 0.05[/bold]"
)
def score(
    model: Fitted,
    data: New,
    out: ScoresOut = None,
    fdr: Fdr = None,
    false_alarms: FalseAlarms = None,
    label_column: Label = None,
    ignore_column: Ignore = None,
    html: Html = None,
    json: Json = None,
) -> int:
    """Score rows with a model: membership and quality, in log-odds, higher is better.

    With --fdr or --false-alarms outliers are called by conformal p-values, at a rate that holds for rows
    drawn like the training rows; else by the threshold that the training rows and the contamination set.
    Where both files name their columns these are matched by name, else by position.
    """
    from pindown.report.detection import detection
    from pindown.report.detection_formats import render_detection_csv

    check_outputs(html=html, json=json)
    if out is not None:
        _check_target("-o", out, ".csv", data)
    if fdr is not None and false_alarms is not None:
        raise ValueError("--fdr and --false-alarms are two questions: ask one.")
    for option, rate in (("--fdr", fdr), ("--false-alarms", false_alarms)):
        if rate is not None:
            probability(option, rate)
    detector, names = _load(model)
    table = _new_table(data, detector, names, label_column, ignore_column or (), model.name)
    answer = detection("score", detector, table, model.name, fdr=fdr, false_alarms=false_alarms)
    scores = None if out is None else partial(render_detection_csv, answer)
    _say_written(_deliver(answer, html, json, (out, scores)))
    return 0


def _training_table(
    data: Path, label: str | None, ignore: Sequence[str], kinds: Sequence[str]
) -> tuple[FeatureTable, TableEncoding | None]:
    """Read a table of numbers as it is, and any other with what its columns were taken for."""
    from pindown.datasets.feature_files import load_features
    from pindown.datasets.mixed_tables import TEXT_ENDINGS, load_mixed
    from pindown.errors import DataFileError

    asked = dict(_kind_of_column(text) for text in kinds)
    name = data.name.lower()
    if not asked and not name.endswith((".tsv", ".tsv.gz", ".txt")):
        try:
            return load_features(data, label=label, ignore=ignore), None
        except DataFileError:
            if not data.is_file() or not name.endswith((*TEXT_ENDINGS, ".parquet")):
                raise
    return load_mixed(data, label=label, ignore=ignore, kinds=asked)


def _kind_of_column(text: str) -> tuple[str, str]:
    name, equals, kind = text.rpartition("=")
    if not equals or not name:
        raise ValueError(f"--column takes NAME=KIND, such as zip=category; got {text!r}.")
    return name, kind


def _new_table(
    data: Path,
    detector: LocalMaximaDetector,
    names: tuple[str, ...],
    label: str | None,
    ignore: Sequence[str],
    model: str,
) -> FeatureTable:
    """Read rows to score as the training rows were read."""
    from pindown.datasets.feature_files import load_features, matched
    from pindown.datasets.mixed_tables import load_mixed

    encoding = getattr(detector, "encoding_", None)
    if encoding is not None:
        return load_mixed(data, label=label, ignore=ignore, encoding=encoding)[0]
    table = load_features(data, label=label, ignore=ignore, wanted=names)
    return matched(table, names, detector.n_features_in_, model)


def _saved(
    detector: LocalMaximaDetector, out: Path, names: tuple[str, ...], encoding: TableEncoding | None
) -> Exception | None:
    """Write the model before anything else can go wrong; return why that failed, to be told later."""
    from pindown.errors import ModelFileError

    try:
        _save(detector, out, names, encoding)
    except (OSError, ModelFileError) as error:
        return error
    return None


def _save(
    detector: LocalMaximaDetector, out: Path, names: tuple[str, ...], encoding: TableEncoding | None
) -> None:
    """Write the model with the names of its columns, and how they were read."""
    import numpy as np

    if encoding is not None:
        detector.encoding_ = encoding
    if names:
        detector.feature_names_in_ = np.array(names, dtype=object)
    try:
        detector.save(out)
    finally:
        _forget_names(detector)


def _load(model: Path) -> tuple[LocalMaximaDetector, tuple[str, ...]]:
    """Return the detector of a file and the names of its columns."""
    from pindown.errors import ModelFileError
    from pindown.learn.one_class import LocalMaximaDetector

    if not model.name.lower().endswith(_MODEL_ENDING):
        raise ModelFileError(f"models of 'detect fit' end in {_MODEL_ENDING}; got {model.name!r}.")
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        try:
            detector = LocalMaximaDetector.load(model)
        except ModelFileError as error:
            raise ModelFileError(f"{model.name}: {error}") from None
    for warning in caught:
        say(f"note: {warning.message}", err=True)
    return detector, _forget_names(detector)


def _forget_names(detector: LocalMaximaDetector) -> tuple[str, ...]:
    """Take the names from a detector: columns are matched before it sees them, and arrays have none."""
    names = tuple(str(name) for name in getattr(detector, "feature_names_in_", ()))
    if names:
        del detector.feature_names_in_
    return names


def _fit(detector: LocalMaximaDetector, table: FeatureTable) -> bool:
    """Fit; return whether it was interrupted after something had been learned."""
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        try:
            detector.fit(table.X)
        except (KeyboardInterrupt, ValueError) as error:
            stopped = isinstance(error, KeyboardInterrupt) or _stopped(caught)
            if not stopped:
                raise
            say("stopped before anything was learned; nothing was written.", err=True)
            raise KeyboardInterrupt from None
    for warning in caught:
        if not str(warning.message).startswith(_STOPPED):
            say(f"note: {warning.message}", err=True)
    return _stopped(caught)


def _stopped(caught: list[warnings.WarningMessage]) -> bool:
    """Whether the detector said that Ctrl-C ended its training."""
    return any(str(warning.message).startswith(_STOPPED) for warning in caught)


def _deliver(
    answer: Detection,
    html: str | None,
    json: str | None,
    scores: tuple[Path | None, Callable[[], str] | None] = (None, None),
) -> list[str | Path]:
    """Write what was asked for, and return the files; stdout carries the summary, or the JSON."""
    from pindown.atomic_files import written

    wanted = (scores, (html, answer.to_html), (json, answer.to_json))
    files = [(place, render) for place, render in wanted if place not in (None, "-") and render]
    try:
        with together():
            for place, render in files:
                written(render(), place)
    finally:  # a full disk takes the files, not the answer
        with reader_may_leave():
            if json == "-":
                say(answer.to_json(), nl=False)
            else:
                from pindown.report.detection_formats import print_detection

                print_detection(answer)
    return [place for place, _ in files if place is not None]


def _say_written(files: list[str | Path]) -> None:
    for file in files:
        say(f"wrote {file}", err=True)


def _check_target(option: str, out: Path, ending: str, data: Path) -> None:
    if not out.name.lower().endswith(ending):
        raise ValueError(f"{option} writes a file that ends in {ending}; got {str(out)!r}.")
    if out.absolute() == data.absolute() or (out.exists() and data.exists() and out.samefile(data)):
        raise ValueError(f"{option} would overwrite the data: {str(out)!r}; choose another name.")
    check_writable(option, out)


def _share(text: str) -> float | str:
    if text == "auto":
        return text
    try:
        share = float(text)
    except ValueError:
        share = -1.0
    if not 0 < share <= 0.5:
        raise ValueError(f"--contamination takes auto or a share above 0, at most 0.5; got {text!r}.")
    return share


def _shape(text: str | None) -> tuple[int, ...] | None:
    if text is None:
        return None
    sides = text.lower().split("x")
    if len(sides) not in (2, 3) or not all(side.isdecimal() and int(side) > 0 for side in sides):
        raise ValueError(f"--image-shape takes a shape such as 28x28 or 32x32x3; got {text!r}.")
    return tuple(int(side) for side in sides)
