"""Torch modules in evaluation mode for a while, and back as they were, part by part."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any


@contextmanager
def in_evaluation(module: Any) -> Iterator[None]:
    """Put a module into evaluation mode, and every part of it back into its own mode afterwards.

    ``module.train(mode)`` would put all parts into one mode, also those that were frozen on purpose.

    >>> import torch
    >>> net = torch.nn.Sequential(torch.nn.Linear(1, 1), torch.nn.BatchNorm1d(1).eval())
    >>> with in_evaluation(net):
    ...     print(net[0].training, net[1].training)
    False False
    >>> net[0].training, net[1].training
    (True, False)
    """
    modes = [(part, part.training) for part in module.modules()]
    try:
        module.eval()
        yield
    finally:
        for part, mode in modes:
            part.training = mode
