"""How large a model may be and how long reading may take, checked before memory is spent on it.

A model file is untrusted: a few bytes can claim terabytes. Readers call these checks with what
the file *claims*, before they allocate.
"""

from __future__ import annotations

import math
from collections.abc import Sequence

from pindown.deadline import Deadline
from pindown.errors import ModelFileError, UnsupportedModelError

MAX_FILE_BYTES = 2 * 2**30  # protobuf's own limit for one message
MAX_GZIP_BYTES = 2**30  # after decompression; a bomb stops here
MAX_ENTRIES = 250_000_000  # numbers in one dense matrix: 2 GB in float64
MAX_SPARSE_ENTRIES = 64_000_000  # non-zeros in one sparse matrix: 0.8 GB
MAX_TOTAL_ENTRIES = 300_000_000  # numbers in all matrices of one model together
MAX_UNITS = 4_000_000  # entries of one tensor inside the network; 64 channels of 224 x 224 pass
MAX_TENSOR_ENTRIES = 32_000_000  # entries of one tensor inside a model, for one input: 256 MB
MAX_MULTIPLICATIONS = 50_000_000_000  # in one matrix product: seconds dense, a minute sparse
MAX_NODES = 20_000
MAX_READING_SECONDS = 120.0  # for one model: every node may be bearable and all of them together not
MAX_RANK = 32  # axes of one tensor: the limit of NumPy 1; NumPy 2 takes 64
MAX_SPATIAL = 1_000_000  # longest side, stride, pad or kernel anyone may claim
MAX_FIELDS = 2_000_000  # of protobuf: about 100 bytes each once parsed; real models have thousands
MAX_PACKED_INTEGERS = 64_000_000  # bytes on the wire, up to eight times as many in memory
MAX_CHAIN_STEPS = 10_000  # to find the one order in which layers without numbers chain
MAX_MESSAGE = 1000  # characters of a complaint: names in it come from the file

# What was read is compared with the original (see agreement.py) at inputs of these sizes. Beyond this
# many parameters only the first two are tried, and a torch module's own numbers are not changed to see
# what rounding does: either would take as long as reading.
AGREEMENT_SIZES = (1.0, 1e4, 1e-3, 1e-12, 1e12)
MANY_PARAMETERS = 1_000_000
# The two may differ by so many times what a relative change of 2**-32 on the way does to the outputs.
ALLOWED_SPREADS = 32.0
# In rational arithmetic only up to here: it takes microseconds for each parameter.
MAX_EXACT_PARAMETERS = 3_000


def check_file_bytes(n_bytes: int, limit: int = MAX_FILE_BYTES) -> None:
    """Refuse a file larger than the limit."""
    if n_bytes > limit:
        raise ModelFileError(
            f"the file holds or claims {_gigabytes(n_bytes)}; pindown reads up to {_gigabytes(limit)}."
        )


def check_entries(*sizes: int, what: str, limit: int = MAX_ENTRIES) -> int:
    """Return the product of the sizes, or refuse to build something that large."""
    entries = math.prod(int(n) for n in sizes)
    # An axis of length zero hides the others from the product, not from whoever builds on the way.
    if max(entries, math.prod(max(1, int(n)) for n in sizes)) > limit:
        shape = f" ({' x '.join(map(str, sizes))})" if len(sizes) > 1 else ""
        raise UnsupportedModelError(
            f"{what} would hold {entries:,} numbers{shape}; the limit is {limit:,}."
        )
    return entries


def check_multiplications(*sizes: int) -> None:
    """Refuse a matrix product that would take minutes."""
    count = math.prod(int(n) for n in sizes)
    if count > MAX_MULTIPLICATIONS:
        raise UnsupportedModelError(
            f"merging two affine operations would take {count:,} multiplications; "
            f"the limit is {MAX_MULTIPLICATIONS:,}."
        )


def reading_deadline() -> Deadline:
    """Return when reading a model that begins now has to be over."""
    return Deadline.after(MAX_READING_SECONDS)


def check_deadline(deadline: Deadline) -> None:
    """Refuse to go on with a model on which ``MAX_READING_SECONDS`` were spent."""
    if deadline.passed:
        raise UnsupportedModelError(
            f"reading the model takes more than {MAX_READING_SECONDS:,.0f} seconds; that is the limit."
        )


def check_shape(shape: Sequence[int], what: str, limit: int = MAX_UNITS) -> tuple[int, ...]:
    """Return the shape if a tensor inside the network may have it."""
    dims = check_rank(shape, what)
    if any(n < 1 for n in dims):
        raise UnsupportedModelError(f"{what} has the impossible or empty shape {dims}.")
    check_entries(*dims, what=what, limit=limit)
    return dims


def check_rank(shape: Sequence[int], what: str) -> tuple[int, ...]:
    """Return the shape if NumPy can hold that many axes; their product takes time before that."""
    if len(shape) > MAX_RANK:
        raise UnsupportedModelError(f"{what} has {len(shape):,} axes; the limit is {MAX_RANK}.")
    return tuple(int(n) for n in shape)


def _gigabytes(n_bytes: int) -> str:
    return f"{n_bytes / 2**30:,.1f} GB"
