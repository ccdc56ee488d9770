r"""Autoencoders whose decoder uses the transposed weights of the encoder, any depth, as torch modules.

.. math:: a = s(W_l\, s(\cdots s(W_1 y + b_1) \cdots) + b_l), \qquad
          \hat y = W_1^\top s(\cdots s(W_l^\top a + b_{l+1}) \cdots) + b_{2l}.

Mukherjee 2020, section 1.1.1.
"""

from __future__ import annotations

from collections.abc import Sequence
from itertools import pairwise

import numpy as np
import torch
from torch import Tensor, nn

from pindown.network import ReluNetwork
from pindown.validation import is_integer


class TiedAutoencoder(nn.Module):  # type: ignore[misc]
    """A ReLU autoencoder with l weight matrices and 2l biases, 2l - 1 hidden layers.

    Args:
        widths: Input size and the sizes of the l encoder layers.
        rectified_output: Whether the last layer is rectified too (then it is a hidden layer of the
            source, with a fixed identity behind it).
        seed: Seed of the start; weights are He-normal for the encoder, biases zero.

    Example:
        >>> model = TiedAutoencoder([4, 3, 2])
        >>> sum(p.numel() for p in model.parameters())  # 12 + 6 weights, 3 + 2 + 3 + 4 biases
        30
        >>> model.to_network()
        ReluNetwork(4 -> 3 -> 2 -> 3 -> 4, 48 parameters)

    Mukherjee 2020, section 1.1.1, (1.2) and (1.3).
    """

    def __init__(self, widths: Sequence[int], *, rectified_output: bool = False, seed: int = 0) -> None:
        super().__init__()
        sizes = list(widths) if isinstance(widths, Sequence | np.ndarray) else []
        if len(sizes) < 2 or not all(is_integer(n) for n in sizes):
            raise ValueError(
                f"widths need an input size and a hidden size, all positive integers; got {widths!r}."
            )
        generator = torch.Generator().manual_seed(seed)
        self.rectified_output = rectified_output
        self.weights = nn.ParameterList(
            torch.randn(out, into, generator=generator, dtype=torch.float64) * (2.0 / into) ** 0.5
            for into, out in pairwise(sizes)
        )
        self.biases = nn.ParameterList(
            torch.zeros(n, dtype=torch.float64) for n in [*sizes[1:], *reversed(sizes[:-1])]
        )

    @property
    def depth(self) -> int:
        """Number l of weight matrices."""
        return len(self.weights)

    def encode(self, y: Tensor) -> Tensor:
        """Return the code a."""
        for weight, bias in zip(self.weights, self.biases[: self.depth], strict=True):
            y = torch.relu(y @ weight.T + bias)
        return y

    def decode(self, code: Tensor) -> Tensor:
        """Return the signal made of a code."""
        pairs = zip(reversed(list(self.weights)), self.biases[self.depth :], strict=True)
        for step, (weight, bias) in enumerate(pairs, 1):
            code = code @ weight + bias
            if step < self.depth or self.rectified_output:
                code = torch.relu(code)
        return code

    def forward(self, y: Tensor) -> Tensor:
        """Return the reconstruction."""
        return self.decode(self.encode(y))

    def to_network(self) -> ReluNetwork:
        """Return the same function as a network with all weights written out."""
        matrices = [weight.detach().cpu().numpy() for weight in self.weights]
        biases = [bias.detach().cpu().numpy() for bias in self.biases]
        layers = list(zip([*matrices, *(W.T for W in reversed(matrices))], biases, strict=True))
        if self.rectified_output:
            n = matrices[0].shape[1]
            eye = torch.eye(n, dtype=torch.float64).numpy()
            layers.append((eye, 0.0 * biases[-1]))
        return ReluNetwork.from_layers(layers)
