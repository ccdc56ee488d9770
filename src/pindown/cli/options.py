"""What the commands have in common: options, boxes, and checks before the work begins."""

from __future__ import annotations

import os
import sys
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from pindown.cli.completion import complete_model
from pindown.text import visible

if TYPE_CHECKING:
    from collections.abc import Iterator

    from pindown.geometry import Box

Model = Annotated[
    Path,
    typer.Argument(
        help="Model: .onnx, .onnx.gz, .safetensors, .pt or .pth.", autocompletion=complete_model
    ),
]
BoxText = Annotated[
    str | None,
    typer.Option(
        "--box",
        help="LOW,HIGH for all inputs; an .npz with lower and upper; or a file of rows, for their box.",
    ),
]
Activation = Annotated[
    str | None,
    typer.Option(
        metavar="relu", help="What lies between the layers of a state dict; the file does not say."
    ),
]
InputName = Annotated[
    str | None,
    typer.Option(
        "--input", metavar="NAME", help="Which input of an ONNX file varies, if it has several."
    ),
]
OutputName = Annotated[
    str | None,
    typer.Option(
        "--output", metavar="NAME", help="Which output of an ONNX file is meant, if it has several."
    ),
]
InputNames = Annotated[
    list[str] | None,
    typer.Option(
        "--input",
        metavar="NAME",
        help="Which input of ONNX files varies, if they have several; twice if the files differ in it.",
    ),
]
OutputNames = Annotated[
    list[str] | None,
    typer.Option("--output", metavar="NAME", help="Which output of ONNX files is meant; likewise."),
]
Budget = Annotated[float, typer.Option(help="Seconds it may take.")]
Html = Annotated[str | None, typer.Option(metavar="[FILE]", help="Write a page.")]
Json = Annotated[
    str | None, typer.Option(metavar="[FILE]", help="Write JSON; without a file, to stdout.")
]
Seed = Annotated[int, typer.Option(help="Seed of everything random.")]

OWN_FAULT = 4  # exit code of an error in pindown itself

_ENDINGS = {"--html": ".html", "--json": ".json", "--markdown": ".md"}


def check_outputs(**targets: str | None) -> None:
    """Refuse before the work, not after: and never overwrite a model named by mistake."""
    for name, value in targets.items():
        option = f"--{name}"
        ending = _ENDINGS[option]
        if value is None or (value == "-" and option != "--html"):
            continue
        if not value.lower().endswith(ending):
            raise ValueError(f"{option} writes a file that ends in {ending}; got {value!r}.")
        check_writable(option, Path(value))


def check_writable(option: str, path: Path) -> None:
    """Complain if a file cannot be written there."""
    folder = path.absolute().parent
    wrong = ""
    if path.is_dir():
        wrong = "it is a folder"
    elif not folder.is_dir():
        wrong = "its folder is a file" if folder.exists() else "there is no such folder"
    elif not os.access(folder, os.W_OK | os.X_OK):  # an old file is replaced: the folder decides
        wrong = "no permission to write in its folder"
    if wrong:
        raise ValueError(f"{option} cannot write {str(path)!r}: {wrong}.")


def say(text: str, *, err: bool = False, nl: bool = True) -> None:
    """Print text in which nothing from a file can hide, or command the terminal."""
    typer.echo(visible(text), err=err, nl=nl)


@contextmanager
def reader_may_leave() -> Iterator[None]:
    """Print for a reader who may have seen enough, as with ``| head``: the exit code still counts."""
    try:
        yield
        if sys.stdout is not None:
            sys.stdout.flush()
    except (BrokenPipeError, SystemExit):  # Click and Rich turn a closed pipe into an exit
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())


def name_of_each(option: str, names: list[str] | None) -> tuple[str | None, str | None]:
    """Return a name for each of two files."""
    if not names:
        return None, None
    if len(names) > 2:
        raise ValueError(
            f"{option} may be given twice, for the first and the second file; got {len(names)}."
        )
    return names[0], names[-1]


def parse_box(text: str | None, dim: int) -> Box | None:
    """Return the box that ``--box`` names."""
    from pindown.geometry import Box

    if text is None:
        return None
    if text.endswith((".npz", ".npy", ".csv", ".csv.gz")):
        return _box_from_file(Path(text))
    try:
        low, high = (float(part) for part in text.split(","))
    except ValueError:
        raise ValueError(f"--box takes LOW,HIGH such as 0,1 or a file; got {text!r}.") from None
    return Box.cube(dim, low, high)


def _box_from_file(path: Path) -> Box:
    """Return the box of an .npz with lower and upper, or around the rows of a file of data."""
    from pindown.datasets import load_table
    from pindown.datasets.files import load_arrays, names_in
    from pindown.geometry import Box

    if not {"lower", "upper"} & names_in(path):
        X = load_table(path).X
        return Box.around(X.reshape(len(X), -1))
    arrays = load_arrays(path, ("lower", "upper"))
    return Box(arrays["lower"].ravel(), arrays["upper"].ravel())
