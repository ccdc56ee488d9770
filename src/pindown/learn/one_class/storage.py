"""A fitted detector as a safetensors file: numbers, a JSON text that says what they are, a checksum."""

from __future__ import annotations

import hashlib
import json
import re
from dataclasses import asdict
from os import PathLike
from pathlib import Path
from typing import Any

import numpy as np
import torch
from numpy.typing import NDArray

from pindown.io.files import write_atomically
from pindown.learn.one_class.density import Calibration

MARK = "pindown-detector"
CHECKSUM = "pindown-checksum"
FORMAT = 3
UNSEALED = 2  # the last format without a checksum

_BLANK = 64 * "0"
# In the text that says what a detector is, quotes have a backslash before them.
_STORED = re.compile(rb'"%s":"([0-9a-f]{64})"' % CHECKSUM.encode())


def write(detector: Any, path: str | PathLike[str]) -> None:
    """Write a fitted detector; an existing file is replaced at once."""
    from safetensors.numpy import save

    file = Path(path)
    if not file.name.endswith(".safetensors"):
        raise ValueError(f"detectors are saved as .safetensors, got {file.name!r}.")
    tensors: dict[str, NDArray[Any]] = {
        "frame.centre": detector.frame_.centre,
        "frame.scale": detector.frame_.scale,
    }
    if detector.frame_.bending is not None:
        tensors["frame.knots"] = detector.frame_.bending.knots
        tensors["frame.values"] = detector.frame_.bending.values
    if detector.density_ is not None:
        tensors["density.points"] = detector.density_.points
    for name, nets in detector.networks_.items():
        for number, net in enumerate(nets):
            tensors |= {f"{name}.{number}.{key}": _single(t) for key, t in net.state_dict().items()}
    data = save(
        {name: np.array(t, order="C") for name, t in tensors.items()},
        metadata={MARK: json.dumps(_facts(detector)), CHECKSUM: _BLANK},
    )
    write_atomically(file, sealed(bytes(data)))


def sealed(data: bytes) -> bytes:
    """Return a file with its checksum, of all its bytes, where the file has a blank for it."""
    place = _place(data)
    assert place is not None
    return data[: place.start] + _digest(data, place).encode() + data[place.stop :]


def is_as_written(data: bytes) -> bool:
    """Return whether a file has a checksum, and no byte has changed since."""
    place = _place(data)
    return place is not None and data[place] == _digest(data, place).encode()


def _place(data: bytes) -> slice | None:
    """Return where the header of a file has the checksum."""
    header = data[8 : 8 + int.from_bytes(data[:8], "little")]
    found = _STORED.search(header)
    return None if found is None else slice(8 + found.start(1), 8 + found.end(1))


def _digest(data: bytes, place: slice) -> str:
    return hashlib.sha256(data[: place.start] + _BLANK.encode() + data[place.stop :]).hexdigest()


def _single(tensor: torch.Tensor) -> NDArray[Any]:
    """Return the tensor as it was trained; double precision was for evaluation only."""
    values = tensor.detach().cpu().numpy()
    return values.astype(np.float32) if values.dtype == np.float64 else values


def _facts(detector: Any) -> dict[str, Any]:
    plan = asdict(detector.plan_)
    plan["ingredients"] = sorted(plan["ingredients"])
    density, mixture = detector.density_, detector.mixture_
    return {
        "format": FORMAT,
        "parameters": {
            name: _plain(value)
            for name, value in detector.get_params(deep=False).items()
            if _is_plain(_plain(value))
        },
        "plan": plan,
        "n_features": detector.n_features_in_,
        "feature_names": [str(n) for n in getattr(detector, "feature_names_in_", [])],
        "offset": detector.offset_,
        "image_shape": detector.frame_.image_shape,
        "channels_first": detector.frame_.channels_first,
        "density": None
        if density is None
        else [*density.units.tolist(), *density.weights.tolist(), *_pair(density.calibration)],
        "mixture": None
        if mixture is None
        else [*_pair(mixture.learned), *_pair(mixture.total), mixture.weight],
        "history": detector.history_,
        "beginnings": detector.ensemble_.beginnings,
        "prices": detector.prices_,
    }


def _pair(calibration: Calibration) -> list[float]:
    return [calibration.edge, calibration.slope]


def _plain(value: Any) -> Any:
    """Return numbers and collections of NumPy and Python as JSON has them."""
    if isinstance(value, np.generic | np.ndarray):
        return value.tolist()
    if isinstance(value, set | frozenset):
        return sorted(value)
    return [_plain(part) for part in value] if isinstance(value, tuple | list) else value


def _is_plain(value: Any) -> bool:
    if isinstance(value, tuple | list):
        return all(_is_plain(part) for part in value)
    return value is None or isinstance(value, bool | int | float | str)
