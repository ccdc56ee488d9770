"""Torch for estimators: what it was told elsewhere must not change what they learn, nor the reverse.

Networks are trained on the device that a user names, and drawn, kept and used on the processor.
"""

from __future__ import annotations

import copy
from collections.abc import Iterator
from contextlib import contextmanager, nullcontext
from typing import Any

import torch

from pindown.validation import refuse

PROCESSOR = torch.device("cpu")


@contextmanager
def own_torch() -> Iterator[None]:
    """Compute the same whatever the rest of the program told torch, and put back what was set.

    One thread, for these networks the fastest number; single precision, gradients and the processor
    where nothing else is said.
    """
    threads, precision = torch.get_num_threads(), torch.get_default_dtype()
    # Entering a device slows down every call: only where another one was made the default.
    moved = torch.get_default_device().type != "cpu"
    torch.set_num_threads(1)
    torch.set_default_dtype(torch.float32)
    try:
        with (
            torch.inference_mode(False),
            torch.enable_grad(),
            torch.device("cpu") if moved else nullcontext(),
        ):
            yield
    finally:
        torch.set_num_threads(threads)
        torch.set_default_dtype(precision)


def usable_device(name: Any) -> torch.device:
    """Return the torch device of this name.

    Raises:
        ValueError: If torch knows no such device, or it is not there.

    >>> usable_device("cpu")
    device(type='cpu')
    """
    try:
        device = torch.device(name)
    except (RuntimeError, TypeError):
        refuse("device", "one that torch knows, such as 'cpu' or 'cuda'", name)
    if device.type == "cpu":
        return device
    try:
        torch.zeros(1, device=device).item()
    except (RuntimeError, AssertionError, NotImplementedError):
        refuse("device", "one that is here and holds numbers, as 'cpu' always does", name)
    return device


def on_processor(net: Any) -> Any:
    """Return a network that computes on the processor: itself, or a copy."""
    there = next(net.parameters()).device.type == "cpu"
    return net if there else copy.deepcopy(net).cpu()
