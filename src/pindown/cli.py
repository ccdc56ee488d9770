"""The command line: arguments in, library calls, exit codes out.

Exit codes: 0 done, 3 bad input (one line says what), 130 interrupted; ``diff``: 0 same, 1 different,
2 undecided.
"""

from __future__ import annotations

import io
import os
import sys
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from pindown.cli_detect import detect
from pindown.cli_equivalence import canonical, diff, shrink
from pindown.cli_experiments import reproduce
from pindown.cli_options import (
    INTERRUPTED,
    BoxText,
    Budget,
    Html,
    Json,
    Model,
    Seed,
    check_outputs,
    parse_box,
)
from pindown.findings.wording import printable

if TYPE_CHECKING:
    from pindown.audit import Audit
    from pindown.datasets import Table

BAD_INPUT = 3

app = typer.Typer(
    name="pindown",
    help="Pin down the network you trained: which function it is, why training chose it, "
    "how far to trust it.",
    no_args_is_help=True,
    rich_markup_mode="rich",
    context_settings={"help_option_names": ["-h", "--help"]},
)

# click's class, wherever this version of typer keeps it.
_UsageError: Any = typer.BadParameter.__mro__[1]

# Options that may stand alone, with what they then mean.
_OPTIONAL_VALUES = {"--json": "-", "--markdown": "-", "--html": "pindown.html"}


def main(arguments: list[str] | None = None) -> None:
    """Run the command line and exit."""
    given = sys.argv[1:] if arguments is None else arguments
    for stream in (sys.stdout, sys.stderr):
        if isinstance(stream, io.TextIOWrapper):
            stream.reconfigure(errors="replace")  # an arrow must not end an audit on a plain terminal
    try:
        code = app(args=_with_default_values(given), standalone_mode=False) or 0
        if code == INTERRUPTED:  # Typer may take Ctrl-C itself and say nothing
            _complain("interrupted.")
        if sys.stdout is not None:
            sys.stdout.flush()
    except _UsageError as error:
        _complain(error.format_message())
        code = BAD_INPUT
    except (BrokenPipeError, SystemExit):
        # The reader has seen enough, as with "| head"; Click and Rich turn this into an exit.
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
        code = 0
    except (ValueError, TypeError, OSError, MemoryError, ImportError) as error:
        if os.environ.get("PINDOWN_DEBUG"):
            raise
        _complain(str(error) or type(error).__name__)
        code = BAD_INPUT
    except (KeyboardInterrupt, typer.Abort):
        _complain("interrupted.")
        code = INTERRUPTED
    sys.exit(code)


def _print_version(wanted: bool) -> None:
    if wanted:
        from pindown import __version__

        typer.echo(f"pindown {__version__}")
        raise typer.Exit


@app.callback()
def _root(
    version: Annotated[
        bool,
        typer.Option("--version", callback=_print_version, is_eager=True, help="Print the version."),
    ] = False,
) -> None:
    pass


Data = Annotated[
    Path | None, typer.Option(help="Inputs, with labels if there are any: .npz, .npy or .csv.")
]
Test = Annotated[Path | None, typer.Option(help="Inputs and labels that training did not see.")]
Initial = Annotated[
    Path | None,
    typer.Option(help="The model before training; tells whether training was lazy or rich."),
]
Target = Annotated[str | None, typer.Option(help="Name of the array or column with the labels.")]
Markdown = Annotated[str | None, typer.Option(metavar="[FILE]", help="Write Markdown; likewise.")]
Only = Annotated[str | None, typer.Option(help="Codes of the findings wanted, with commas between.")]
Ignore = Annotated[str | None, typer.Option(help="Codes of findings to leave out.")]
Folder = Annotated[Path, typer.Option("--out", help="Folder for the model, the data and the page.")]


@app.command(
    epilog="Example: [bold]pindown audit model.onnx --data test.npz --html report.html[/bold]",
)
def audit(
    model: Model,
    data: Data = None,
    test: Test = None,
    target: Target = None,
    box: BoxText = None,
    budget: Budget = 60.0,
    html: Html = None,
    json: Json = None,
    markdown: Markdown = None,
    only: Only = None,
    ignore: Ignore = None,
    seed: Seed = 0,
    initial: Initial = None,
) -> int:
    """Ask a network everything pindown can answer, within a time budget."""
    from pindown.audit import audit as run_audit
    from pindown.datasets import load_table, numbered_alike
    from pindown.io import load
    from pindown.report.text import progress_bar

    check_outputs(html=html, json=json, markdown=markdown)
    net = load(model)
    before = None if initial is None else load(initial)
    table = load_table(data, target) if data else None
    held_out = load_table(test, target) if test else None
    table, held_out = numbered_alike(table, held_out, n_classes=max(2, net.out_features))
    _say_numbering(table or held_out)
    with progress_bar() as report:
        result = run_audit(
            net,
            None if table is None else table.X,
            None if table is None else table.y,
            test=None if held_out is None else (held_out.X, held_out.y),
            box=parse_box(box, net.in_features),
            initial=before,
            budget=budget,
            seed=seed,
            only=_codes(only),
            ignore=_codes(ignore),
            name=model.name,
            progress=report,
        )
    _deliver(result, html=html, json=json, markdown=markdown)
    return INTERRUPTED if result.interrupted else 0


@app.command(epilog="Example: [bold]pindown demo --out my-first-look[/bold]")
def demo(out: Folder = Path("pindown-demo"), budget: Budget = 30.0) -> int:
    """Train a small network on digits, save it, load it back and audit it: no file needed."""
    from pindown.demo import write_demo_files
    from pindown.report.text import progress_bar

    with progress_bar() as report:
        report("training a 64-32-32-10 network on scikit-learn's digits", 0, 1)
        files = write_demo_files(out)
    page = out / "audit.html"
    code = audit(files.model, files.train, files.test, html=str(page), budget=budget)
    typer.echo("\nThe same by hand, and so for a model of your own:")
    typer.echo(
        f"pindown audit {files.model} --data {files.train} --test {files.test} --html report.html"
    )
    return code


for _command, _example in (
    (diff, "pindown diff old.onnx new.onnx --box 0,1 --html diff.html"),
    (shrink, "pindown shrink model.onnx -o small.onnx --box 0,1"),
    (canonical, "pindown canonical model.onnx -o canonical.onnx"),
    (reproduce, "pindown reproduce identifiability --scale quick --out results"),
):
    app.command(epilog=f"Example: [bold]{_example}[/bold]")(_command)
app.add_typer(detect)


def _say_numbering(table: Table | None) -> None:
    if table is not None and table.classes:
        listed = ", ".join(f"{i} {name}" for i, name in enumerate(table.classes[:20]))
        typer.echo(f"labels are words, numbered by the alphabet: {printable(listed)}", err=True)


def _deliver(result: Audit, *, html: str | None, json: str | None, markdown: str | None) -> None:
    """Write what was asked for; the terminal gets the summary unless stdout carries a document."""
    documents = ((json, result.to_json), (markdown, result.to_markdown), (html, result.to_html))
    files = [(target, render) for target, render in documents if target not in (None, "-")]
    for target, render in files:  # before anything is printed: stdout may be a pipe that closes
        render(target)
    for where, render in documents:
        if where == "-":
            typer.echo(render())
    if "-" not in (json, markdown):
        from pindown.report.text import print_audit

        print_audit(result)
    for target, _ in files:
        typer.echo(f"wrote {target}", err=True)


def _codes(text: str | None) -> list[str] | None:
    return None if text is None else [code.strip() for code in text.split(",") if code.strip()]


def _with_default_values(arguments: list[str]) -> list[str]:
    """Let ``--json`` and its like stand without a value."""
    filled: list[str] = []
    for i, word in enumerate(arguments):
        filled.append(word)
        following = arguments[i + 1] if i + 1 < len(arguments) else "--"
        if word in _OPTIONAL_VALUES and following.startswith("-") and following != "-":
            filled.append(_OPTIONAL_VALUES[word])
    return filled


def _complain(message: str) -> None:
    typer.echo(f"pindown: {printable(' '.join(message.split()))}", err=True)


if __name__ == "__main__":
    main()
