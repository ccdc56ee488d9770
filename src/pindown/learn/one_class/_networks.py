"""The networks of the detector, each made from a short description that can be stored as JSON.

Every description is a plain dictionary with a ``kind`` and whole numbers; :func:`build` turns it into a
torch module without filling it in, and :func:`initialise` fills it from a generator of one's own.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping
from itertools import pairwise
from typing import Any

import torch
from torch import Tensor, nn

from pindown.learn.one_class.tuning import MAX_LAYERS, MAX_UNITS, PRINTED_LEAK

Description = Mapping[str, Any]

PROCESSOR = torch.device("cpu")


class Perceptron(nn.Module):  # type: ignore[misc]
    """Fully connected ReLU layers on inputs held within a box: piecewise linear everywhere."""

    def __init__(self, inputs: int, hidden: list[int], outputs: int, bound: float) -> None:
        super().__init__()
        sizes = [inputs, *hidden]
        blocks: list[nn.Module] = []
        for a, b in pairwise(sizes):
            blocks += [nn.Linear(a, b), nn.ReLU()]
        self.body = nn.Sequential(*blocks, nn.Linear(sizes[-1], outputs))
        self.bound = bound

    def forward(self, x: Tensor) -> Tensor:
        """Return the outputs, (n, outputs)."""
        return self.body(x.clamp(-self.bound, self.bound))


class Convolutions(nn.Module):  # type: ignore[misc]
    """Stride-two convolutions with ReLU, then one hidden layer."""

    def __init__(self, shape: list[int], widths: list[int], hidden: int, outputs: int) -> None:
        super().__init__()
        channels, height, width = shape
        blocks: list[nn.Module] = []
        for next_width in widths:
            blocks += [nn.Conv2d(channels, next_width, 3, 2, 1), nn.ReLU()]
            channels, height, width = next_width, (height + 1) // 2, (width + 1) // 2
        flat = channels * height * width
        head = [nn.Flatten(), nn.Linear(flat, hidden), nn.ReLU(), nn.Linear(hidden, outputs)]
        self.body = nn.Sequential(*blocks, *head)

    def forward(self, x: Tensor) -> Tensor:
        """Return the outputs, (n, outputs)."""
        return self.body(x)


def _paper_perceptron(inputs: int, hidden: list[int], outputs: int, norm: bool) -> nn.Sequential:
    blocks: list[nn.Module] = []
    for size in hidden:
        blocks.append(nn.Linear(inputs, size))
        if norm:
            blocks.append(nn.BatchNorm1d(size))
        blocks.append(nn.LeakyReLU(PRINTED_LEAK))
        inputs = size
    return nn.Sequential(*blocks, nn.Linear(inputs, outputs))


def _down(channels: int, width: int, steps: int, norm_last: bool) -> tuple[list[nn.Module], int]:
    blocks: list[nn.Module] = []
    for step in range(steps):
        after = width * 2 ** min(step, 3)
        blocks.append(nn.Conv2d(channels, after, 4, 2, 1))
        if norm_last or step < steps - 1:
            blocks.append(nn.BatchNorm2d(after))
        blocks.append(nn.ReLU())
        channels = after
    return blocks, channels


def _paper_critic(channels: int, width: int) -> nn.Sequential:
    blocks, last = _down(channels, width, 4, norm_last=True)
    return nn.Sequential(*blocks, nn.Flatten(), nn.Linear(last * 4, 1))


def _paper_generator(channels: int, width: int) -> nn.Sequential:
    # At one pixel, batch statistics of one batch would erase the sample: no normalisation there.
    blocks, last = _down(channels, width, 5, norm_last=False)
    for step in (3, 2, 1, 0):
        after = width * 2**step
        blocks += [nn.ConvTranspose2d(last, after, 4, 2, 1), nn.BatchNorm2d(after), nn.ReLU()]
        last = after
    return nn.Sequential(*blocks, nn.ConvTranspose2d(last, channels, 4, 2, 1), nn.Tanh())


class Step(nn.Module):  # type: ignore[misc]
    """A bounded step away from the input, on vectors: x + reach * tanh(body(x))."""

    def __init__(self, body: nn.Module, reach: float) -> None:
        super().__init__()
        self.body = body
        self.reach = reach

    def forward(self, x: Tensor) -> Tensor:
        """Return a changed copy of x."""
        return x + self.reach * torch.tanh(self.body(x))


def _image_step(channels: int, width: int, reach: float) -> Step:
    body = nn.Sequential(
        *(nn.Conv2d(channels, width, 3, 1, 1), nn.ReLU()),
        *(nn.Conv2d(width, width, 3, 1, 1), nn.ReLU()),
        nn.Conv2d(width, channels, 3, 1, 1),
    )
    return Step(body, reach)


_MAKERS: dict[str, Callable[[Description], nn.Module]] = {
    "perceptron": lambda d: Perceptron(d["inputs"], d["hidden"], d["outputs"], d["bound"]),
    "convolutions": lambda d: Convolutions(d["shape"], d["widths"], d["hidden"], d["outputs"]),
    "vector step": lambda d: Step(
        Perceptron(d["inputs"], d["hidden"], d["inputs"], d["bound"]), d["reach"]
    ),
    "image step": lambda d: _image_step(d["channels"], d["width"], d["reach"]),
    "paper perceptron": lambda d: _paper_perceptron(d["inputs"], d["hidden"], d["outputs"], True),
    "paper critic": lambda d: _paper_critic(d["channels"], d["width"]),
    "paper generator": lambda d: _paper_generator(d["channels"], d["width"]),
}


def build(description: Description, device: str = "cpu") -> nn.Module:
    """Make the described module, its numbers not yet filled in.

    Args:
        description: A ``kind`` and its sizes.
        device: ``"meta"`` makes shapes only and takes no memory.

    Raises:
        ValueError: If the kind is unknown or a size is out of range.

    Example:
        >>> net = build({"kind": "perceptron", "inputs": 2, "hidden": [4], "outputs": 1, "bound": 8.0})
        >>> tuple(net(torch.zeros(5, 2)).shape)
        (5, 1)
    """
    kind = description.get("kind")
    if kind not in _MAKERS:
        raise ValueError(f"there is no network of kind {kind!r}; known are {sorted(_MAKERS)}.")
    for name, value in description.items():
        sizes = value if isinstance(value, list) else [value]
        if len(sizes) > MAX_LAYERS:
            raise ValueError(f"{name} of a {kind} has {len(sizes):,} entries; the most is {MAX_LAYERS}.")
        for size in sizes:
            if isinstance(size, str) and name == "kind":
                continue
            if isinstance(size, bool) or not isinstance(size, int | float) or not 0 < size <= MAX_UNITS:
                raise ValueError(f"{name} of a {kind} must be in (0, {MAX_UNITS}]; got {size!r}.")
    try:
        # Laid out without memory first: torch's own filling would move the global random state.
        with torch.device("meta"):
            module = _MAKERS[kind](description)
    except (KeyError, TypeError, RuntimeError) as error:
        raise ValueError(f"the description of a {kind} is incomplete or damaged: {error}.") from None
    return module if device == "meta" else module.to_empty(device=device)


def initialise(
    module: nn.Module, generator: torch.Generator, deviation: float | None = None
) -> nn.Module:
    """Fill weights and biases, drawing from ``generator`` only.

    Args:
        module: What :func:`build` made.
        generator: Where all randomness comes from.
        deviation: Deviation of all weights, and of those of batch norm around 1 (Radford et al. 2016,
            DCGAN); None for He's rule. Biases are zero.
    """
    for part in module.modules():
        if isinstance(part, nn.Linear | nn.Conv2d | nn.ConvTranspose2d):
            turned = isinstance(part, nn.ConvTranspose2d)
            fan = (part.weight[:, 0] if turned else part.weight[0]).numel()
            with torch.no_grad():
                part.weight.normal_(0.0, deviation or math.sqrt(2.0 / fan), generator=generator)
                part.bias.zero_()
        elif isinstance(part, nn.BatchNorm1d | nn.BatchNorm2d):
            part.reset_parameters()
            if deviation is not None:
                with torch.no_grad():
                    part.weight.normal_(1.0, deviation, generator=generator)
    return module
