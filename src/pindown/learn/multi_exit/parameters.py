"""Whether the parameters of a classifier with exits mean something."""

from __future__ import annotations

from typing import Any

from pindown.learn.multi_exit.losses import STRATEGIES
from pindown.validation import is_integer, is_number

LOSSES = ("distil", "exit-wise")
NETWORKS = ("auto", "mlp", "cnn", "msdnet")
OPTIMISERS = ("adam", "sgd")


def check_parameters(model: Any) -> None:
    """Refuse what means nothing.

    Raises:
        ValueError: With the name, what was given and what is accepted.
    """
    for name, known in (("network", NETWORKS), ("loss", LOSSES), ("optimiser", OPTIMISERS)):
        value = getattr(model, name)
        if not (isinstance(value, str) and value in known):
            raise ValueError(f"{name} must be one of {', '.join(known)}, got {value!r}.")
    if isinstance(model.teachers, str) and model.teachers not in STRATEGIES:
        raise ValueError(f"teachers must be one of {', '.join(STRATEGIES)}, got {model.teachers!r}.")
    if model.max_epochs is not None and not is_integer(model.max_epochs):
        raise ValueError(f"max_epochs must be a positive integer or None, got {model.max_epochs!r}.")
    if not is_integer(model.batch_size, 2):
        raise ValueError(f"batch_size must be an integer, at least 2; got {model.batch_size!r}.")
    rate = model.learning_rate
    if rate is not None and not (is_number(rate) and rate > 0):
        raise ValueError(f"learning_rate must be a positive number or None, got {rate!r}.")
    if not is_number(model.weight_decay, 0):
        raise ValueError(f"weight_decay must be a number, zero or positive; got {model.weight_decay!r}.")
    share = model.validation_fraction
    if not (is_number(share, 0, 1) and share < 1):
        raise ValueError(f"validation_fraction must be at least 0 and below 1, got {share!r}.")
