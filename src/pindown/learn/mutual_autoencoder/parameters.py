"""Whether the parameters of the autoencoder mean something."""

from __future__ import annotations

from typing import Any

import numpy as np

from pindown.validation import is_integer, is_number

_SHARE, _FEWEST, _MOST = 100, 10, 1_200  # rows squared over the first, between the others


def default_steps(rows: int) -> int:
    """Return how many steps to train where nobody said: tens of rows do not deserve thousands.

    >>> default_steps(10), default_steps(200), default_steps(100_000)
    (10, 400, 1200)
    """
    return min(max(rows * rows // _SHARE, _FEWEST), _MOST)


def check_parameters(model: Any) -> None:
    """Refuse what means nothing.

    Raises:
        ValueError: With the name, what was given and what is accepted.
    """
    choices = {
        "decoder": ("gaussian", "categorical"),
        "encoder": ("gaussian", "resampling"),
        "control": ("integral", "clip", "sign"),
    }
    for name, known in choices.items():
        value = getattr(model, name)
        if not isinstance(value, str) or value not in known:
            raise ValueError(f"{name} must be one of {', '.join(map(repr, known))}; got {value!r}.")
    for name in ("n_components", "n_proposals", "batch_size", "guess_steps"):
        value = getattr(model, name)
        if not is_integer(value):
            raise ValueError(f"{name} must be a positive integer; got {value!r}.")
    for name in ("mixture", "max_iter"):
        value = getattr(model, name)
        if value is not None and not is_integer(value):
            raise ValueError(f"{name} must be a positive integer or None; got {value!r}.")
    for name in ("information", "penalty"):
        value = getattr(model, name)
        if not is_number(value, 0):
            raise ValueError(f"{name} must be a finite number, zero or positive; got {value!r}.")
    for name in ("width", "learning_rate"):
        value = getattr(model, name)
        if not is_number(value, 0) or value == 0:
            raise ValueError(f"{name} must be a positive number; got {value!r}.")
    if not isinstance(model.drop_code, bool | np.bool_):
        raise ValueError(f"drop_code must be True or False; got {model.drop_code!r}.")
    try:
        fine = not isinstance(model.hidden, str) and all(is_integer(size) for size in model.hidden)
    except TypeError:
        fine = False
    if not fine:
        raise ValueError(f"hidden must be a sequence of positive integers; got {model.hidden!r}.")
