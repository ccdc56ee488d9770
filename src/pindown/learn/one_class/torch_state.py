"""What torch is told elsewhere in a program must not change what a detector learns, nor the reverse."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager, nullcontext

import torch


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
