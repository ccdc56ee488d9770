"""Where to look if nothing is known about the inputs."""

from __future__ import annotations

from pindown.geometry import Box
from pindown.network import ReluNetwork

_SMALLEST_SIDE = 4  # of an image; smaller arrays are rather lists of features
_MOST_SIDES = 3  # that fit into a sentence
_PIXELS = (784, 3072)  # of MNIST and CIFAR-10 images, the usual vectors that are images


def reference_box(net: ReluNetwork) -> tuple[Box, str]:
    """Return the box to speak about if nothing is known about the inputs, and its name.

    Pixels lie in [0, 1]; other inputs are usually scaled to about [-1, 1].

    >>> reference_box(ReluNetwork.from_layers([([[1.0, 2.0]], [0])]))[1]
    '[-1, 1]^2'
    """
    d = net.in_features
    low = 0 if are_images(net.input_shape) or d in _PIXELS else -1
    box = Box.cube(d, float(low), 1.0)
    return box, box_in_words(box)


def box_in_words(box: Box) -> str:
    """Return the sides of a box, empty if they are too many to list.

    >>> box_in_words(Box.cube(3, 0.0, 1.0)), box_in_words(Box([0, -1], [1, 2.5]))
    ('[0, 1]^3', '[0, 1] × [-1, 2.5]')
    """
    sides = [f"[{_written(a)}, {_written(b)}]" for a, b in zip(box.lower, box.upper, strict=True)]
    if len(set(zip(box.lower, box.upper, strict=True))) == 1:
        return sides[0] + (f"^{box.dim}" if box.dim > 1 else "")
    return " × ".join(sides) if box.dim <= _MOST_SIDES else ""


def _written(end: float) -> str:
    """Return a number, short if that says all of it."""
    return short if float(short := f"{end:g}") == end else repr(float(end))


def are_images(shape: tuple[int, ...]) -> bool:
    """Return whether inputs of this shape look like images: their last two axes are long enough.

    >>> are_images((3, 32, 32)), are_images((784, 1))
    (True, False)
    """
    return len(shape) in (2, 3) and min(shape[-2:]) >= _SMALLEST_SIDE
