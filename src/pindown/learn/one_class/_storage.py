"""A fitted detector as a safetensors file: numbers, a JSON text that says what they are, a checksum.

A file that is read is untrusted: nothing in it is executed, networks are laid out without memory first
and their shapes compared with those in the file, and anything else than what was written is refused in
one sentence. Files of all earlier formats are read.
"""

from __future__ import annotations

import hashlib
import json
import math
import re
import warnings
from dataclasses import asdict
from os import PathLike
from pathlib import Path
from typing import Any

import numpy as np
import torch
from numpy.typing import NDArray
from torch import nn

from pindown.datasets.mixed_tables import TableEncoding
from pindown.errors import ModelFileError
from pindown.io.files import read_bytes, write_atomically
from pindown.learn.conformal import HeldOutScores
from pindown.learn.one_class._calibrating import Companions
from pindown.learn.one_class._density import Calibration, NeighbourDensity
from pindown.learn.one_class._inputs import MAX_INPUT, Bending, InputScaling
from pindown.learn.one_class._networks import build
from pindown.learn.one_class._plan import ABLATIONS, INGREDIENTS, Plan, check_parameters
from pindown.learn.one_class.ensemble import Ensemble, HeldOutLosses, evaluation_copy
from pindown.learn.one_class.scoring import Mixture, Scorer
from pindown.learn.one_class.tuning import MAX_MEMBERS, MAX_PIXELS, N_NEIGHBOURS

MARK = "pindown-detector"
CHECKSUM = "pindown-checksum"
FORMAT = 5
UNSEALED = 2  # the last format without a checksum
_COMPANION = "companion."
_BLANK = 64 * "0"
# In the text that says what a detector is, quotes have a backslash before them.
_STORED = re.compile(rb'"%s":"([0-9a-f]{64})"' % CHECKSUM.encode())
_ROUNDING = 1e-9  # of a sum of weights
_MAX_REASON = 200  # characters
_KINDS = {"float32", "float64", "int64"}
_DAMAGE = (
    ArithmeticError,
    AttributeError,
    LookupError,
    MemoryError,
    RuntimeError,
    TypeError,
    ValueError,
)


def write(detector: Any, path: str | PathLike[str]) -> None:
    """Write a fitted detector; an existing file is replaced at once."""
    from safetensors.numpy import save

    file = Path(path)
    if not file.name.endswith(".safetensors"):
        raise ValueError(f"detectors are saved as .safetensors; got {file.name!r}.")
    tensors = _tensors(detector.scorer_)
    if detector.calibration_ is not None:
        known = detector.calibration_
        for number, scorer in enumerate(known.scorers):
            own = _tensors(scorer) | {"held_out": known.held_out.parts[number]}
            if known.held_out.rows:
                own["rows"] = known.held_out.rows[number]
            tensors |= {f"{_COMPANION}{number}.{name}": t for name, t in own.items()}
    data = save(
        {name: np.array(t, order="C") for name, t in tensors.items()},
        metadata={MARK: json.dumps(_facts(detector)), CHECKSUM: _BLANK},
    )
    write_atomically(file, sealed(bytes(data)))


def _tensors(scorer: Scorer) -> dict[str, NDArray[Any]]:
    scaling = scorer.scaling
    tensors: dict[str, NDArray[Any]] = {
        "frame.centre": scaling.centre,
        "frame.scale": scaling.scale,
    }
    if scaling.bending is not None:
        tensors["frame.knots"] = scaling.bending.knots
        tensors["frame.values"] = scaling.bending.values
    if scorer.density is not None:
        tensors["density.points"] = scorer.density.points
    for name, nets in (("c", scorer.ensemble.members), ("h", scorer.ensemble.comparators)):
        for number, net in enumerate(nets):
            tensors |= {f"{name}.{number}.{key}": _single(t) for key, t in net.state_dict().items()}
    return tensors


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
    companions, encoding = detector.calibration_, getattr(detector, "encoding_", None)
    return {
        "format": FORMAT,
        "parameters": {
            name: _plain(value)
            for name, value in detector.get_params(deep=False).items()
            if _is_plain(_plain(value))
        },
        "n_features": detector.n_features_in_,
        "feature_names": [str(n) for n in getattr(detector, "feature_names_in_", [])],
        "encoding": None if encoding is None else encoding.as_dict(),
        "offset": detector.offset_,
        "held_out_losses": detector.held_out_losses_,
        **_scorer_facts(detector.scorer_),
        "companions": None
        if companions is None
        else [_scorer_facts(scorer) for scorer in companions.scorers],
    }


def _scorer_facts(scorer: Scorer) -> dict[str, Any]:
    plan = asdict(scorer.plan)
    plan["ingredients"] = sorted(plan["ingredients"])
    density, mixture = scorer.density, scorer.mixture
    return {
        "plan": plan,
        "image_shape": scorer.scaling.image_shape,
        "channels_first": scorer.scaling.channels_first,
        "density": None
        if density is None
        else [*density.units.tolist(), *density.weights.tolist(), *_pair(density.calibration)],
        "neighbours": None if density is None else list(density.neighbours),
        "mixture": None
        if mixture is None
        else [*_pair(mixture.learned), *_pair(mixture.total), mixture.weight],
        "history": scorer.ensemble.history,
        "beginnings": scorer.ensemble.beginnings,
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


def read(cls: Any, path: str | PathLike[str]) -> Any:
    """Read a detector; a warning says if it is of an earlier version and has no checksum.

    Raises:
        ModelFileError: (a ValueError) if the file is not a sound detector file.
    """
    tensors, facts = _parsed(read_bytes(Path(path)))
    try:
        return _detector(cls, tensors, facts)
    except ModelFileError:
        raise
    except _DAMAGE as error:
        raise ModelFileError(f"the file does not make up a detector: {_short(error)}.") from None


def _parsed(data: bytes) -> tuple[dict[str, NDArray[Any]], dict[str, Any]]:
    from safetensors import SafetensorError
    from safetensors.numpy import load

    try:
        tensors = load(data)
        header = json.loads(data[8 : 8 + int.from_bytes(data[:8], "little")])
        metadata = header.get("__metadata__") or {}
        facts = json.loads(metadata.get(MARK, "null"))
    except (SafetensorError, *_DAMAGE) as error:
        raise ModelFileError(
            f"this is not a safetensors file, or it is damaged: {_short(error)}."
        ) from None
    if facts is None:
        raise ModelFileError("this safetensors file holds no detector; load takes what save wrote.")
    version = facts.get("format") if isinstance(facts, dict) else None
    if type(version) is not int or not 1 <= version <= FORMAT:  # True is an int, but no version
        raise ModelFileError("the detector was written by a newer pindown, or its text is damaged.")
    if version > UNSEALED or CHECKSUM in metadata:
        if not is_as_written(data):
            raise ModelFileError(
                "the file was changed since it was saved (its checksum does not fit); "
                "copy it again from where it was saved."
            )
    else:
        warnings.warn(
            "the detector was saved by an earlier pindown, without a checksum, so that damage goes "
            "unnoticed; save it again.",
            stacklevel=4,
        )
    for name, tensor in tensors.items():
        if str(tensor.dtype) not in _KINDS or not np.isfinite(tensor).all():
            raise ModelFileError(f"the tensor {name!r} holds something else than finite numbers.")
    return tensors, facts


def _short(error: BaseException) -> str:
    """Return what went wrong on one line that a terminal can show; files can hold very long things."""
    text = " ".join(str(error).split()).rstrip(".") or type(error).__name__
    return text if len(text) <= _MAX_REASON else f"{text[:_MAX_REASON]}..."


def _detector(cls: Any, tensors: dict[str, NDArray[Any]], facts: dict[str, Any]) -> Any:
    given = dict(facts["parameters"])
    if isinstance(given.get("image_shape"), list):
        given["image_shape"] = tuple(given["image_shape"])
    made = cls(**given)
    check_parameters(made)
    made.n_features_in_ = n = _whole(facts["n_features"])
    names = facts["feature_names"]
    if names:
        if len(names) != n:
            raise ValueError(f"there are {len(names)} names for {n} features")
        if not all(isinstance(name, str) for name in names) or len(set(names)) != n:
            raise ValueError("the names of the features are no words, or not all different")
        made.feature_names_in_ = np.array(names, dtype=object)
    if facts.get("encoding") is not None:
        made.encoding_ = TableEncoding.from_dict(facts["encoding"])
        if made.encoding_.names != tuple(names):
            raise ValueError("the encoding of the table does not fit the features")
    made.offset_ = _number(facts["offset"])
    # Until format 3 losses were called prices; earlier still there were none.
    losses = facts.get("held_out_losses", facts.get("prices"))
    made.held_out_losses_ = None if losses is None else HeldOutLosses(*map(_number, losses))
    made.calibration_ = _companions(tensors, facts, n)
    made.scorer_ = _scorer(tensors, facts, n, facts["format"])
    if tensors:
        raise ValueError(f"the tensor {next(iter(tensors))!r} belongs to nothing")
    # What the parts make of one row shows whether they fit together.
    row = np.zeros((1, n))
    with np.errstate(all="ignore"):
        answers = [made.scorer_.log_odds(row), made.scorer_.quality(row)]
        if made.calibration_ is not None:
            answers += [scorer.log_odds(row) for scorer in made.calibration_.scorers]
    if not np.isfinite(answers).all():
        raise ValueError("its scores are not finite")
    return made


def _scorer(tensors: dict[str, NDArray[Any]], facts: dict[str, Any], n: int, version: int) -> Scorer:
    """Take what one scorer has learned out of the tensors."""
    plan = _plan(facts["plan"])
    shape = tuple(_whole(length) for length in facts["image_shape"])
    centre, scale = tensors.pop("frame.centre"), tensors.pop("frame.scale")
    wanted = (1,) if shape else (n,)
    if centre.shape != wanted or scale.shape != wanted or not (scale > 0).all():
        raise ValueError("the scales do not fit the features")
    if shape and (len(shape) != 3 or math.prod(shape) != n or n > MAX_PIXELS):
        raise ValueError(f"the image shape {shape} does not hold {n} values")
    bending = _bending(tensors, n) if not shape and "frame.knots" in tensors else None
    scaling = InputScaling(centre, scale, shape, bool(facts["channels_first"]), bending)
    known = tuple(_whole(k) for k in facts.get("neighbours") or N_NEIGHBOURS)
    density = _density(tensors, facts["density"], known, version)
    mixture = _mixture(facts["mixture"])
    if (mixture is None) != plan.printed:
        raise ValueError("the calibration does not fit the preset")
    return Scorer(scaling, plan, _ensemble(tensors, plan, facts), density, mixture)


def _companions(tensors: dict[str, NDArray[Any]], facts: dict[str, Any], n: int) -> Companions | None:
    """Take the companions of p-values out of the tensors; files until format 4 have none."""
    described = facts.get("companions")
    if described is None:
        return None
    if len(described) > MAX_MEMBERS:
        raise ValueError("there are too many companions")
    scorers, scores, rows = [], [], []
    for number, own_facts in enumerate(described):
        start = f"{_COMPANION}{number}."
        own = {name[len(start) :]: tensors.pop(name) for name in list(tensors) if name.startswith(start)}
        held, places = own.pop("held_out"), own.pop("rows", None)
        if held.ndim != 1 or len(held) < 1 or (places is not None and places.shape != held.shape):
            raise ValueError("the held-out scores are damaged")
        scores.append(held.astype(float))
        rows += [] if places is None else [places.astype(np.int64)]
        scorers.append(_scorer(own, own_facts, n, FORMAT))
        if own:
            raise ValueError(f"the tensor {next(iter(own))!r} belongs to nothing")
    return Companions(tuple(scorers), HeldOutScores(tuple(scores), tuple(rows)))


def _ensemble(tensors: dict[str, NDArray[Any]], plan: Plan, facts: dict[str, Any]) -> Ensemble:
    ensemble = Ensemble(
        plan.printed,
        _networks(tensors, "c", plan.membership),
        _networks(tensors, "h", plan.comparator),
        _history(facts["history"]),
        beginnings=[_seed(value) for value in facts.get("beginnings", [])],  # earlier: none
    )
    if len(ensemble.members) != len(ensemble.comparators):
        raise ValueError("there are not as many networks c as h")
    if len(ensemble.beginnings) not in (0, len(ensemble.members)):
        raise ValueError("there are not as many beginnings as networks")
    return ensemble


def _plan(facts: dict[str, Any]) -> Plan:
    plan = Plan(**{**facts, "ingredients": frozenset(facts["ingredients"])})
    known = plan.ingredients <= set(INGREDIENTS) and (
        plan.ablation is None or plan.ablation in ABLATIONS
    )
    if not known or not 1 <= _whole(plan.n_members) <= MAX_MEMBERS:
        raise ValueError("the plan names unknown ingredients or too many members")
    return plan


def _whole(value: Any) -> int:
    if isinstance(value, bool) or not isinstance(value, int) or value < 1:
        raise ValueError(f"a positive integer is needed; got {value!r}")
    return value


def _seed(value: Any) -> int:
    if isinstance(value, bool) or not isinstance(value, int) or not 0 <= value < 2**63:
        raise ValueError(f"a seed is needed; got {value!r}")
    return value


def _number(value: Any) -> float:
    if isinstance(value, bool) or not isinstance(value, int | float) or not math.isfinite(value):
        raise ValueError(f"a finite number is needed; got {value!r}")
    return float(value)


def _bending(tensors: dict[str, NDArray[Any]], n: int) -> Bending:
    knots, values = tensors.pop("frame.knots"), tensors.pop("frame.values")
    if knots.shape != values.shape or knots.ndim != 2 or len(knots) != n or knots.shape[1] < 2:
        raise ValueError("the bent features do not fit the features")
    if not (np.diff(knots) > 0).all() or not (np.diff(values) > 0).all():
        raise ValueError("the maps of the features do not increase")
    return Bending(knots.astype(float), values.astype(float))


def _density(
    tensors: dict[str, NDArray[Any]], facts: Any, neighbours: tuple[int, ...], version: int
) -> NeighbourDensity | None:
    if facts is None:
        return None
    numbers = [_number(value) for value in list(facts)]
    if version == 1:  # five neighbours only
        unit, *rest = numbers
        numbers = [1.0, unit, 0.0, 1.0, *rest]
    *pairs, edge, slope = numbers
    calibration = _calibration(edge, slope)
    units, weights = np.reshape(pairs, (2, len(neighbours)))
    if not ((units > 1 / MAX_INPUT) & (units < MAX_INPUT)).all():
        raise ValueError("the units of distances are damaged")
    if not (weights >= 0).all() or min(abs(weights.sum() - total) for total in (0, 1)) > _ROUNDING:
        raise ValueError("the weights of distances are damaged")
    points = tensors.pop("density.points")
    if points.ndim != 2 or len(points) < 2:
        raise ValueError("the points of the density are damaged")
    return NeighbourDensity(points.astype(np.float32), units, weights, calibration, neighbours)


def _mixture(facts: Any) -> Mixture | None:
    if facts is None:
        return None
    a, b, c, d, weight = (_number(value) for value in facts)
    if weight < 0:
        raise ValueError(f"the weight of the networks is {weight}")
    return Mixture(_calibration(a, b), _calibration(c, d), weight)


def _calibration(edge: float, slope: float) -> Calibration:
    if slope <= 0:  # would turn the order of all rows round
        raise ValueError(f"the slope of a calibration must be positive; got {slope}")
    return Calibration(edge, slope)


def _history(facts: Any) -> list[dict[str, float]]:
    return [{str(name): float(value) for name, value in record.items()} for record in facts]


def _networks(tensors: dict[str, NDArray[Any]], name: str, description: Any) -> list[nn.Module]:
    """Take the networks of one kind out of the tensors."""
    made: list[nn.Module] = []
    while any(key.startswith(f"{name}.{len(made)}.") for key in tensors):
        if len(made) >= MAX_MEMBERS:
            raise ValueError("there are too many networks")
        start = f"{name}.{len(made)}."
        layout = build(description, "meta")
        state = {}
        for key, wanted in layout.state_dict().items():
            tensor = tensors.pop(start + key)
            if tuple(tensor.shape) != tuple(wanted.shape):
                raise ValueError(f"{start}{key} has shape {tensor.shape}, not {tuple(wanted.shape)}")
            state[key] = torch.from_numpy(np.array(tensor))
        layout.load_state_dict(state, assign=True)
        made.append(evaluation_copy(layout))
    if not made:
        raise ValueError(f"there is no network {name}")
    return made
