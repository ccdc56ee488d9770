"""The command line: arguments in, library calls, exit codes out.

Exit codes: 0 done, 3 bad input (one line says what), 4 an error in pindown itself, 130 interrupted;
``diff``: 0 same, 1 different, 2 undecided; ``verify``: 0 holds, 1 violated, 2 undecided; ``audit`` and
``certify``: 1 if --fail-on is met; ``doctor``: 1 something is missing.
"""

from __future__ import annotations

import io
import os
import sys
from typing import Annotated, Any

import typer

from pindown import interrupts
from pindown.cli.audit import audit
from pindown.cli.certify import certify
from pindown.cli.demo import demo
from pindown.cli.detect import detect
from pindown.cli.doctor import doctor
from pindown.cli.equivalence import canonical, diff, shrink
from pindown.cli.options import OWN_FAULT
from pindown.cli.reproduce import reproduce
from pindown.cli.theorem import theorem
from pindown.cli.verification import verify
from pindown.extras import explained
from pindown.text import printable

BAD_INPUT = 3

app = typer.Typer(
    name="pindown",
    help="Pin down the network you trained: which function it is, why training chose it, "
    "how far to trust it.",
    epilog="Example: [bold]pindown audit model.onnx --data test.npz --html report.html[/bold]; "
    "[bold]pindown demo[/bold] needs no file.",
    no_args_is_help=True,
    rich_markup_mode="rich",
    context_settings={"help_option_names": ["-h", "--help"]},
    pretty_exceptions_enable=False,  # a traceback with everybody's variables helps nobody
)

# click's class, wherever this version of typer keeps it.
_UsageError: Any = typer.BadParameter.__mro__[1]

_COMPLETION = "_PINDOWN_COMPLETE"  # set by the script that --install-completion gives the shell

# Options that may stand alone, with what they then mean.
_OPTIONAL_VALUES = {"--json": "-", "--markdown": "-", "--html": "pindown.html", "--labels": "0"}


def main(arguments: list[str] | None = None) -> None:
    """Run the command line and exit."""
    interrupts.end()
    if _COMPLETION in os.environ:  # the shell asks what could come next
        app(args=[], prog_name="pindown")
    given = sys.argv[1:] if arguments is None else arguments
    for stream in (sys.stdout, sys.stderr):
        if isinstance(stream, io.TextIOWrapper):
            stream.reconfigure(errors="replace")  # an arrow must not end an audit on a plain terminal
    try:
        code = app(args=_with_default_values(given), prog_name="pindown", standalone_mode=False) or 0
        if code == interrupts.INTERRUPTED:  # Typer may take Ctrl-C itself and say nothing
            _complain("interrupted.")
        if sys.stdout is not None:
            sys.stdout.flush()
    except _UsageError as error:
        if error.format_message():  # empty if a bare command has shown its help
            _complain(error.format_message())
        code = BAD_INPUT
    except (BrokenPipeError, SystemExit):
        # The reader has seen enough, as with "| head"; Click and Rich turn this into an exit.
        # Commands whose exit code is the answer print inside reader_may_leave.
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
        code = 0
    except (ValueError, TypeError, OSError, MemoryError, ImportError) as error:
        if os.environ.get("PINDOWN_DEBUG"):
            raise
        _complain(_in_words(error))
        code = BAD_INPUT
    except (KeyboardInterrupt, typer.Abort):
        _complain("interrupted.")
        code = interrupts.INTERRUPTED
    except Exception as error:  # ours to mend; the user gets one line all the same
        if os.environ.get("PINDOWN_DEBUG"):
            raise
        _complain(
            f"an error in pindown itself, {type(error).__name__}: {error}; "
            "please report it, PINDOWN_DEBUG=1 shows where it happened."
        )
        code = OWN_FAULT
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


for _command, _example in (
    (audit, "pindown audit model.onnx --data test.npz --html report.html"),
    (certify, 'pindown certify model.onnx --data held-out.npz --fail-on "risk>0.1"'),
    (demo, "pindown demo --out my-first-look"),
    (diff, "pindown diff old.onnx new.onnx --box 0,1 --html diff.html"),
    (verify, "pindown verify model.onnx property.vnnlib --witness counterexample.txt"),
    (shrink, "pindown shrink model.onnx -o small.onnx --box 0,1"),
    (canonical, "pindown canonical model.onnx -o canonical.onnx"),
    (theorem, 'pindown theorem "is my kernel positive definite"'),
    (reproduce, "pindown reproduce identifiability --scale quick --out results"),
    (doctor, "pindown doctor --json doctor.json"),
):
    app.command(epilog=f"Example: [bold]{_example}[/bold]")(_command)
app.add_typer(detect)


def _with_default_values(arguments: list[str]) -> list[str]:
    """Let ``--json`` and its like stand without a value."""
    filled: list[str] = []
    for i, word in enumerate(arguments):
        filled.append(word)
        following = arguments[i + 1] if i + 1 < len(arguments) else "--"
        alone = following.startswith("-") and following != "-"
        if word == "--labels":  # what follows may be a file
            alone = not _is_number(following)
        if word in _OPTIONAL_VALUES and alone:
            filled.append(_OPTIONAL_VALUES[word])
    return filled


def _is_number(word: str) -> bool:
    try:
        float(word)
    except ValueError:
        return False
    return True


def _in_words(error: Exception) -> str:
    """Return what an error says, without the numbers of an operating system."""
    if isinstance(error, OSError) and error.strerror:
        return f"{error.filename}: {error.strerror}." if error.filename else f"{error.strerror}."
    if isinstance(error, ModuleNotFoundError):
        error = explained(error)
    return str(error) or type(error).__name__


def _complain(message: str) -> None:
    typer.echo(f"pindown: {printable(' '.join(message.split()))}", err=True)


if __name__ == "__main__":
    main()
