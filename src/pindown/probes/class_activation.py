r"""Class activation maps: which places of an image a convolutional network's decision rests on.

With features :math:`A_k(u)` at places u, averaged over all places and weighted by the last layer,

.. math::
    \mathrm{CAM}_c(u) = \sum_k w_{ck} A_k(u), \qquad
    \frac1{|U|} \sum_u \mathrm{CAM}_c(u) = s_c - b_c,

so the map divides the score among places, exactly. Grad-CAM takes
:math:`\alpha_k = \mathrm{mean}_u\, \partial s_c / \partial A_k(u)` for the weights and works for any
network; on networks as above it is the same map, divided by the number of places and rectified.
"""

from __future__ import annotations

import copy
from dataclasses import dataclass, field
from typing import Any, Literal

import numpy as np
import torch
from numpy.typing import ArrayLike, NDArray
from torch import Tensor, nn

from pindown.affine import Array
from pindown.evidence import Kind
from pindown.probes.tuning import ACTIVATION_IDENTITY_ERROR, DIFFERENTIATED_ROWS
from pindown.validation import choice


@dataclass(frozen=True, eq=False)
class ActivationMaps:
    """Maps of n images, with the scores they explain.

    Attributes:
        maps: (n, h, w), on the places of the layer.
        classes: Which class each map is about, (n,).
        scores: The scores of these classes, (n,).
        offsets: The last layer's biases, so that a map's mean is score minus offset; NaN for Grad-CAM.
        method: ``"cam"`` or ``"grad-cam"``.
        kind: ``"exact"`` for CAM, a division of the score; ``"heuristic"`` for Grad-CAM.
    """

    maps: Array = field(repr=False)
    classes: NDArray[np.int64]
    scores: Array
    offsets: Array
    method: str
    kind: Kind

    def resized(self, height: int, width: int) -> Array:
        """Return the maps at the size of the images, by bilinear interpolation, (n, height, width)."""
        values = torch.from_numpy(self.maps)[:, None]
        size = (height, width)
        return np.asarray(nn.functional.interpolate(values, size, mode="bilinear")[:, 0].numpy())

    def __str__(self) -> str:
        n, height, width = self.maps.shape
        what = "means are scores minus biases" if self.method == "cam" else "weights are mean gradients"
        return f"{n} maps of {height} x {width} places by {self.method}; {what} ({self.kind})"


def class_activation_maps(
    model: nn.Module,
    X: ArrayLike | Tensor,
    *,
    layer: str | nn.Module,
    classes: ArrayLike | None = None,
    method: Literal["cam", "grad-cam"] = "cam",
) -> ActivationMaps:
    r"""Return maps of the places that scores rest on.

    Args:
        model: Gives scores (n, classes). A copy is used, in evaluation mode.
        X: Images, as the model takes them, (n, ...).
        layer: Name or module whose outputs (n, channels, h, w) are the features. For ``"cam"`` it is the
            one before the average over places, its rectifier included.
        classes: One class per image, or one for all; those with the largest scores if None.
        method: ``"cam"`` needs an average over places, with one linear layer or convolution of single
            places after it or none, and checks that the maps' means are the scores; ``"grad-cam"`` needs
            none of that.

    Raises:
        ValueError: If shapes or classes do not fit, or the network has not that form.
        TypeError: If the model is no torch module.

    Example:
        One feature, the image itself; the class weighs it by 2:

        >>> net = nn.Sequential(nn.Identity(), nn.AdaptiveAvgPool2d(1), nn.Flatten(), nn.Linear(1, 1))
        >>> _ = nn.init.constant_(net[3].weight, 2.0), nn.init.constant_(net[3].bias, 5.0)
        >>> found = class_activation_maps(net, [[[[0.0, 4.0]]]], layer="0")
        >>> found.maps.tolist(), found.scores.tolist()
        ([[[0.0, 8.0]]], [9.0])

    Lecture course, section on class activation mapping; Zhou et al. 2016, "Learning deep features for
    discriminative localization"; Selvaraju et al. 2017, "Grad-CAM".
    """
    if not isinstance(model, nn.Module):
        raise TypeError(f"model must be a torch.nn.Module; got {type(model).__name__}.")
    choice("method", method, ("cam", "grad-cam"))
    name = _name_of(model, layer)
    network = copy.deepcopy(model).eval().requires_grad_(False)
    images = _images(network, X)
    wanted = None if classes is None else _classes(classes, len(images))
    parts = []
    for start in range(0, len(images), DIFFERENTIATED_ROWS):
        few = slice(start, start + DIFFERENTIATED_ROWS)
        chosen = None if wanted is None else wanted[few]
        parts.append(_mapped(network, network.get_submodule(name), images[few], chosen, method))
    maps, own, scores, offsets = (np.concatenate(each) for each in zip(*parts, strict=True))
    kind: Kind = "exact" if method == "cam" else "heuristic"
    return ActivationMaps(maps, own, scores, offsets, method, kind)


def _mapped(
    network: nn.Module, layer: nn.Module, images: Tensor, classes: NDArray[np.int64] | None, method: str
) -> tuple[Array, NDArray[np.int64], Array, Array]:
    """Return maps, their classes, scores and offsets of some images."""
    features, scores = _run(network, layer, images)
    k = scores.shape[1]
    if classes is not None and classes.max() >= k:
        raise ValueError(f"classes must be integers from 0 to {k - 1}; got {classes.max()}.")
    chosen = (
        scores.detach().argmax(1) if classes is None else torch.from_numpy(classes).to(scores.device)
    )
    own = scores.detach()[torch.arange(len(images)), chosen]
    if method == "cam":
        weight, bias = _head(network, features.shape[1], k)
        weights, offsets = weight[chosen], bias[chosen]
        maps = torch.einsum("nk,nkhw->nhw", weights, features.detach())
        _check_identity(maps, weights, features.detach(), own - offsets)
    else:
        (slopes,) = torch.autograd.grad(scores[torch.arange(len(images)), chosen].sum(), features)
        maps = torch.relu(torch.einsum("nk,nkhw->nhw", slopes.mean((2, 3)), features.detach()))
        offsets = torch.full_like(own, float("nan"))
    return _numbers(maps), chosen.cpu().numpy(), _numbers(own), _numbers(offsets)


def _name_of(model: nn.Module, layer: str | nn.Module) -> str:
    names = [name for name, module in model.named_modules() if name == layer or module is layer]
    if not names:
        known = ", ".join(name for name, _ in model.named_modules() if name)
        raise ValueError(f"layer must be one of the model's modules ({known}); got {layer!r}.")
    return names[0]


def _images(network: nn.Module, X: ArrayLike | Tensor) -> Tensor:
    some = next(iter([*network.parameters(), *network.buffers()]), torch.zeros(1))
    images = torch.as_tensor(X if isinstance(X, Tensor) else np.asarray(X)).to(some)
    if images.ndim < 2 or not len(images) or not bool(torch.isfinite(images).all()):
        raise ValueError(f"X must hold at least one finite image, (n, ...); got {tuple(images.shape)}.")
    return images


def _run(network: nn.Module, layer: nn.Module, images: Tensor) -> tuple[Tensor, Tensor]:
    """Return the features, as a leaf that has gradients, and the scores computed from them."""
    seen: list[Tensor] = []

    def keep(_: nn.Module, __: Any, output: Any) -> Tensor:
        if seen:
            raise ValueError("the layer runs more than once; its features are not unique.")
        if not isinstance(output, Tensor) or output.ndim != 4:
            shape = tuple(output.shape) if isinstance(output, Tensor) else type(output).__name__
            raise ValueError(f"the layer must give features (n, channels, h, w); it gave {shape}.")
        seen.append(output.detach().requires_grad_())
        return seen[0].clone()  # what follows may work in place

    hook = layer.register_forward_hook(keep)
    try:
        with torch.enable_grad():
            scores = network(images)
    finally:
        hook.remove()
    if not seen:
        raise ValueError("the layer does not run when the model does; choose another.")
    if not isinstance(scores, Tensor) or scores.ndim != 2 or len(scores) != len(images):
        raise ValueError(f"the model must give scores (n, classes) for {len(images)} images.")
    return seen[0], scores


def _classes(classes: ArrayLike, n: int) -> NDArray[np.int64]:
    values = np.broadcast_to(np.asarray(classes), (n,)) if np.ndim(classes) == 0 else np.asarray(classes)
    if values.shape != (n,) or values.dtype.kind not in "iu" or values.min() < 0:
        raise ValueError(f"classes must be integers from 0, one or {n}; got {classes!r}.")
    return values.astype(np.int64)


def _head(network: nn.Module, channels: int, classes: int) -> tuple[Tensor, Tensor]:
    """Return weights (classes, channels) and biases of what makes scores of the features' means."""
    heads = [
        part for part in network.modules()
        if isinstance(part, nn.Linear)
        or (isinstance(part, nn.Conv2d) and part.kernel_size == (1, 1) and part.groups == 1)
    ]  # fmt: skip
    if heads and tuple(heads[-1].weight.shape[:2]) == (classes, channels):
        weight = heads[-1].weight.reshape(classes, channels)
        return weight, torch.zeros_like(weight[:, 0]) if heads[-1].bias is None else heads[-1].bias
    if channels == classes:  # the features are the scores of every place
        weight = torch.eye(classes).to(next(iter(network.parameters()), torch.zeros(1)))
        return weight, torch.zeros_like(weight[0])
    raise ValueError(
        f"method='cam' needs an average over places and one linear layer of {channels} inputs after "
        f"the features; this model has none. Use method='grad-cam'."
    )


def _check_identity(maps: Tensor, weights: Tensor, features: Tensor, shares: Tensor) -> None:
    """Refuse networks whose scores are not the means of their maps."""
    size = torch.einsum("nk,nk->n", weights.abs(), features.abs().mean((2, 3))) + shares.abs()
    if bool(((maps.mean((1, 2)) - shares).abs() > ACTIVATION_IDENTITY_ERROR * size).any()):
        raise ValueError(
            "the means of the maps are not the scores: between these features and the last layer there "
            "is more than an average over places. Choose the layer before the average, or 'grad-cam'."
        )


def _numbers(values: Tensor) -> Array:
    return np.asarray(values.detach().cpu().numpy(), dtype=np.float64)
