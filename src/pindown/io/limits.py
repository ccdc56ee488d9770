"""How large a model may be, checked before memory is spent on it.

A model file is untrusted: a few bytes can claim terabytes. Readers call these checks with what
the file *claims*, before they allocate.
"""

from __future__ import annotations

import math
from collections.abc import Sequence

from pindown.errors import ModelFileError, UnsupportedModelError

MAX_FILE_BYTES = 2 * 2**30  # protobuf's own limit for one message
MAX_GZIP_BYTES = 2**30  # after decompression; a bomb stops here
MAX_ENTRIES = 250_000_000  # numbers in one matrix or tensor: 2 GB in float64
MAX_NODES = 100_000


def check_file_bytes(n_bytes: int, limit: int = MAX_FILE_BYTES) -> None:
    """Refuse a file larger than the limit."""
    if n_bytes > limit:
        raise ModelFileError(
            f"the file holds or claims {_gigabytes(n_bytes)}; pindown reads up to {_gigabytes(limit)}."
        )


def check_entries(*sizes: int, what: str) -> int:
    """Return the product of the sizes, or refuse to build something that large."""
    entries = math.prod(int(n) for n in sizes)
    if entries > MAX_ENTRIES:
        shape = " x ".join(map(str, sizes))
        raise UnsupportedModelError(
            f"{what} would hold {entries:,} numbers ({shape}); the limit is {MAX_ENTRIES:,}."
        )
    return entries


def check_shape(shape: Sequence[int], what: str) -> tuple[int, ...]:
    """Return the shape if it is a possible one of bearable size."""
    dims = tuple(int(n) for n in shape)
    if any(n < 1 for n in dims):
        raise UnsupportedModelError(f"{what} has the impossible or empty shape {dims}.")
    check_entries(*dims, what=what)
    return dims


def _gigabytes(n_bytes: int) -> str:
    return f"{n_bytes / 2**30:,.1f} GB"
