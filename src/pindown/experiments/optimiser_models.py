"""The networks of the comparisons: tied autoencoders and VGG-9. Needs torch; import it late."""

from __future__ import annotations

from collections.abc import Sequence

import torch
from torch import Tensor, nn

VGG_CHANNELS = (64, 64, 0, 128, 128, 0, 256, 256, 256, 0)  # 0 halves the image
VGG_HIDDEN = 256


class TiedAutoencoder(nn.Module):  # type: ignore[misc]
    r"""An autoencoder whose decoder uses the transposed matrices of its encoder.

    .. math::
        a = s(W_\ell \cdots s(W_1 y + b_1) \cdots + b_\ell), \qquad
        \hat y = W_1^\top s(\cdots s(W_\ell^\top a + b_{\ell+1}) \cdots) + b_{2\ell},

    with s the ReLU: :math:`\ell` matrices, :math:`2 \ell` biases, :math:`2 \ell - 1` hidden layers.

    Args:
        inputs: Number of pixels.
        width: Units in every hidden layer.
        hidden_layers: 1, 3, 5, ...
        seed: Of the weights, uniform as Glorot and Bengio have them; biases start at zero.

    Example:
        >>> model = TiedAutoencoder(6, 4, hidden_layers=3)
        >>> [tuple(W.shape) for W in model.matrices], [b.numel() for b in model.biases]
        ([(4, 6), (4, 4)], [4, 4, 4, 6])

    Mukherjee 2020, section 1.3 and section 5.5.
    """

    def __init__(self, inputs: int, width: int, hidden_layers: int, seed: int = 0) -> None:
        super().__init__()
        if hidden_layers < 1 or hidden_layers % 2 == 0:
            raise ValueError(
                f"a tied autoencoder has 1, 3, 5, ... hidden layers; got {hidden_layers!r}."
            )
        count = (hidden_layers + 1) // 2
        source = torch.Generator().manual_seed(seed)
        sizes = [inputs] + [width] * count
        self.matrices = nn.ParameterList()
        for n_in, n_out in zip(sizes[:-1], sizes[1:], strict=True):  # noqa: RUF007 - as in the formula
            limit = (6 / (n_in + n_out)) ** 0.5
            self.matrices.append((2 * torch.rand(n_out, n_in, generator=source) - 1) * limit)
        widths = [*sizes[1:], *reversed(sizes[:-1])]
        self.biases = nn.ParameterList([torch.zeros(n) for n in widths])

    def forward(self, x: Tensor) -> Tensor:
        """Encode and decode rows."""
        linear = nn.functional.linear
        count = len(self.matrices)
        for i, W in enumerate(self.matrices):
            x = torch.relu(linear(x, W, self.biases[i]))
        for i, W in enumerate(reversed(list(self.matrices))):
            x = linear(x, W.t(), self.biases[count + i])
            if i < count - 1:
                x = torch.relu(x)
        return x


def vgg9(*, divisor: int = 1, seed: int = 0, channels: Sequence[int] = VGG_CHANNELS) -> nn.Sequential:
    """Return VGG-9 for images 3 x 32 x 32: seven convolutions and two linear layers.

    Batch normalisation and ReLU follow every convolution and the first linear layer.

    Args:
        divisor: Divides all widths, for quick runs.
        seed: Of the weights.
        channels: Output channels of the convolutions; 0 stands for pooling.

    Example:
        >>> with torch.no_grad():
        ...     vgg9(divisor=16).eval()(torch.zeros(2, 3, 32, 32)).shape
        torch.Size([2, 10])

    Mukherjee 2020, Table 5.6.1.
    """
    with torch.random.fork_rng(devices=[]):
        torch.manual_seed(seed)
        layers: list[nn.Module] = []
        n_in, side = 3, 32
        for wanted in channels:
            if wanted == 0:
                layers.append(nn.MaxPool2d(2))
                side //= 2
                continue
            n_out = max(1, wanted // divisor)
            layers += [nn.Conv2d(n_in, n_out, 3, padding=1), nn.BatchNorm2d(n_out), nn.ReLU()]
            n_in = n_out
        hidden = max(1, VGG_HIDDEN // divisor)
        layers += [
            nn.Flatten(),
            nn.Linear(n_in * side * side, hidden),
            nn.BatchNorm1d(hidden),
            nn.ReLU(),
        ]
        return nn.Sequential(*layers, nn.Linear(hidden, 10))
