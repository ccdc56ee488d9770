"""Witnesses as files: as the competition writes counterexamples, and as tables and arrays.

``X_0, X_1, ...`` are the inputs, ``Y_0, Y_1, ...`` the outputs in float64; those of several networks
follow each other. Numbers are written with all digits that float64 has.
"""

from __future__ import annotations

import io
from os import PathLike
from pathlib import Path
from typing import TYPE_CHECKING

import numpy as np

from pindown.atomic_files import written
from pindown.io.files import write_atomically
from pindown.json_files import document, plain
from pindown.report.verification import inputs_of_networks

if TYPE_CHECKING:
    from collections.abc import Iterator

    from pindown.verification.properties import Property
    from pindown.verification.witnesses import Witness


def write_witness(prop: Property, example: Witness, path: str | PathLike[str]) -> None:
    """Write a witness; the ending of the file says how: .json, .csv, .npz, .npy, else as text.

    Raises:
        OSError: If it cannot be written there.
    """
    file = Path(path)
    ending = file.suffix.lower()
    x = np.concatenate(inputs_of_networks(prop, example.x))
    if ending in (".npz", ".npy"):
        buffer = io.BytesIO()
        if ending == ".npy":
            np.save(buffer, x)
        else:
            np.savez(buffer, x=x, y=example.outputs, float32_y=example.float32_outputs)
        write_atomically(file, buffer.getvalue())
    elif ending == ".json":
        content = {
            "x": x.tolist(),
            "y": example.outputs.tolist(),
            "float32_y": example.float32_outputs.tolist(),
            "margin": example.margin,
            "float32_margin": example.float32_margin,
        }
        written(document(plain(content)), file)
    elif ending == ".csv":
        rows = (f"{name},{value!r}" for name, value in _assigned(prop, example))
        written("\n".join(["name,value", *rows]) + "\n", file)
    else:
        written(witness_text(prop, example), file)


def witness_text(prop: Property, example: Witness) -> str:
    """Return a witness as the competition writes it.

    >>> from pindown.verification import Property
    >>> from pindown.verification.witnesses import Witness
    >>> y = np.array([3.0])
    >>> at_half = Witness(np.array([0.5]), 0, y, -1.0, "intervals", y, -1.0, True, "NumPy")
    >>> print(witness_text(Property.box([0], [1], [[1.0]], [2.0]), at_half), end="")
    ((X_0 0.5)
    (Y_0 3.0))
    """
    return "({})\n".format("\n".join(f"({name} {value!r})" for name, value in _assigned(prop, example)))


def _assigned(prop: Property, example: Witness) -> Iterator[tuple[str, float]]:
    x = np.concatenate(inputs_of_networks(prop, example.x))
    for letter, values in (("X", x), ("Y", example.outputs)):
        yield from ((f"{letter}_{i}", value) for i, value in enumerate(values.tolist()))
