"""Where to look if nothing is known about the inputs."""

from __future__ import annotations

from pindown.geometry import Box
from pindown.network import ReluNetwork

_SMALLEST_SIDE = 4  # of an image; smaller arrays are rather lists of features
_PIXELS = (784, 3072)  # of MNIST and CIFAR-10 images, the usual vectors that are images


def reference_box(net: ReluNetwork) -> tuple[Box, str]:
    """Return the box to speak about if nothing is known about the inputs, and its name.

    Pixels lie in [0, 1]; other inputs are usually scaled to about [-1, 1].

    >>> reference_box(ReluNetwork.from_layers([([[1.0, 2.0]], [0])]))[1]
    '[-1, 1]^2'
    """
    d = net.in_features
    low = 0 if are_images(net.input_shape) or d in _PIXELS else -1
    return Box.cube(d, float(low), 1.0), f"[{low}, 1]" + (f"^{d}" if d > 1 else "")


def are_images(shape: tuple[int, ...]) -> bool:
    """Return whether inputs of this shape look like images: their last two axes are long enough.

    >>> are_images((3, 32, 32)), are_images((784, 1))
    (True, False)
    """
    return len(shape) in (2, 3) and min(shape[-2:]) >= _SMALLEST_SIDE
