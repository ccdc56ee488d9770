"""What the shell may offer after a Tab: files that fit, codes of findings, names of experiments."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

MODEL_ENDINGS = (".onnx", ".onnx.gz", ".safetensors", ".pt", ".pth")
PROPERTY_ENDINGS = (".vnnlib", ".vnnlib.gz")
TABLE_ENDINGS = (".csv", ".csv.gz", ".npz", ".npy", ".parquet")


def files(*endings: str) -> Callable[[str], list[str]]:
    """Return a completer for paths: folders, and files with one of the endings.

    >>> files(".nothing-ends-so")("no/such/folder/")
    []
    """

    def complete(incomplete: str) -> list[str]:
        head, slash, tail = incomplete.rpartition("/")
        folder = Path(f"{head}{slash}" or ".").expanduser()
        try:
            found = sorted(folder.iterdir())
        except OSError:  # no such folder, or not ours to read: nothing to offer
            return []
        names = [f"{path.name}/" if path.is_dir() else path.name for path in found]
        return [
            f"{head}{slash}{name}"
            for name in names
            if name.startswith(tail)
            and (tail.startswith(".") or not name.startswith("."))
            and name.lower().endswith((*endings, "/"))
        ]

    return complete


complete_model = files(*MODEL_ENDINGS)
complete_table = files(*TABLE_ENDINGS)
complete_detector = files(".safetensors")
complete_question = files(*MODEL_ENDINGS, *PROPERTY_ENDINGS)


def complete_codes(incomplete: str) -> list[tuple[str, str]]:
    """Offer codes of findings with their titles; those before the last comma stay as they are."""
    from pindown.findings import CATALOGUE

    before, comma, begun = incomplete.rpartition(",")
    taken = {code.strip() for code in before.split(",")}
    return [
        (f"{before}{comma}{question.code}", question.title)
        for question in CATALOGUE
        if question.code.startswith(begun.strip().upper()) and question.code not in taken
    ]


def complete_experiment(incomplete: str) -> list[tuple[str, str]]:
    """Offer names of experiments with their titles."""
    try:
        from pindown_reproduction import EXPERIMENTS
    except ImportError:  # they are a distribution of their own
        return []
    fit = [name for name in EXPERIMENTS if name.startswith(incomplete.lower())]
    return [(name, EXPERIMENTS[name].title) for name in fit]  # a title costs an import
