"""A frozen classifier and the images it is asked about, as tensors."""

from __future__ import annotations

import copy
import math
from typing import Any

import numpy as np
import scipy.sparse as sp
import torch
from numpy.typing import ArrayLike
from torch import Tensor, nn

from pindown.affine import Matrix
from pindown.guarantees.certificate.modules import class_scores
from pindown.network import ReluNetwork
from pindown.probes.tuning import EVALUATED_IMAGES, MAX_CHANNELS


class Classifier:
    """Class scores of a model that nothing here changes.

    Attributes:
        dtype: Type of the numbers the model takes.
        device: Where it takes them.
        shape: Shape of one image, ``(W,)``, ``(H, W)`` or ``(C, H, W)``.
    """

    def __init__(self, model: Any, given: tuple[int, ...], shape: tuple[int, ...]) -> None:
        self.given, self.shape = given, shape
        if isinstance(model, ReluNetwork):
            self._module: nn.Module = _Rows(model)
        else:
            self._module = copy.deepcopy(model).eval().requires_grad_(False)
        some = next(iter([*self._module.parameters(), *self._module.buffers()]), torch.zeros(1))
        self.device = some.device
        self.dtype = some.dtype if some.is_floating_point() else torch.get_default_dtype()

    @property
    def axes(self) -> tuple[int, ...]:
        """The axes of a batch that are transformed: all but channels."""
        return (-1,) if len(self.shape) == 1 else (-2, -1)

    @property
    def grid(self) -> tuple[int, ...]:
        """The frequencies' shape."""
        return self.shape[-len(self.axes) :]

    def scores(self, images: Tensor) -> Tensor:
        """Return scores (n, classes) of images (n, *shape); a single output f counts as 0 and f."""
        outputs = self._module(images.reshape(len(images), *self.given))
        if not isinstance(outputs, Tensor) or outputs.ndim not in (1, 2) or len(outputs) != len(images):
            kind = tuple(outputs.shape) if isinstance(outputs, Tensor) else type(outputs).__name__
            raise ValueError(f"the model must give scores (n, classes) for n images; it gave {kind}.")
        return class_scores(outputs)

    def classes(self, images: Tensor) -> Tensor:
        """Return the class of each image: the first largest score."""
        with torch.no_grad():
            parts = [self.scores(part).argmax(1) for part in images.split(EVALUATED_IMAGES)]
        return torch.cat(parts)


class _Rows(nn.Module):  # type: ignore[misc]
    """A ReluNetwork on flattened rows; sparse layers stay sparse."""

    def __init__(self, net: ReluNetwork) -> None:
        super().__init__()
        self._weights = [_tensor(layer.weight) for layer in net.layers]
        self._biases = [torch.from_numpy(layer.bias.copy()) for layer in net.layers]
        self.register_buffer("one", torch.ones((), dtype=torch.float64))

    def forward(self, rows: Tensor) -> Tensor:
        a = rows.flatten(1).T
        for i, (weight, bias) in enumerate(zip(self._weights, self._biases, strict=True)):
            a = (torch.sparse.mm(weight, a) if weight.is_sparse else weight @ a) + bias[:, None]
            a = a if i == len(self._weights) - 1 else torch.relu(a)
        return a.T


def _tensor(weight: Matrix) -> Tensor:
    if not sp.issparse(weight):
        return torch.from_numpy(np.array(weight, dtype=np.float64))
    entries = weight.tocoo()
    places = torch.from_numpy(np.vstack([entries.row, entries.col]).astype(np.int64))
    values = torch.from_numpy(np.array(entries.data, dtype=np.float64))
    with torch.sparse.check_sparse_tensor_invariants(enable=False):
        return torch.sparse_coo_tensor(places, values, entries.shape, is_coalesced=True)


def read_problem(
    model: Any, X: ArrayLike, y: ArrayLike | None, image_shape: tuple[int, ...] | None
) -> tuple[Classifier, Tensor, Tensor]:
    """Check a model, images and labels; return the classifier, images (n, *shape) and classes (n,).

    Without labels the classes are the model's own decisions.

    Raises:
        TypeError: If the model is neither a module nor a ReluNetwork.
        ValueError: If shapes, numbers or labels do not fit.
    """
    if not isinstance(model, nn.Module | ReluNetwork):
        raise TypeError(f"model must be a torch.nn.Module or a ReluNetwork; got {type(model).__name__}.")
    values = X.detach().cpu().numpy() if isinstance(X, Tensor) else np.asarray(X)
    if values.dtype.kind not in "biuf":
        raise TypeError(f"X must hold real numbers; got dtype {values.dtype}.")
    if values.ndim < 2 or values.size == 0:
        raise ValueError(f"X must hold at least one image, (n, ...); got shape {values.shape}.")
    if not np.isfinite(values).all():
        raise ValueError("X must be finite; it holds NaN or infinity.")
    known = model.input_shape if isinstance(model, ReluNetwork) else ()
    shape = _image_shape(tuple(int(n) for n in values.shape[1:]), image_shape, known)
    classifier = Classifier(model, tuple(values.shape[1:]), shape)
    images = torch.tensor(values.reshape(len(values), *shape), dtype=classifier.dtype).to(
        classifier.device
    )
    try:
        chosen = classifier.classes(images)
    except (RuntimeError, TypeError, IndexError) as error:
        raise ValueError(f"the model does not take X of shape {values.shape}: {error}") from None
    if y is None:
        return classifier, images, chosen
    n_classes = classifier.scores(images[:1]).shape[1]
    return classifier, images, _labels(y, len(images), n_classes).to(classifier.device)


def _image_shape(
    given: tuple[int, ...], asked: tuple[int, ...] | None, known: tuple[int, ...]
) -> tuple[int, ...]:
    """Return an image's shape: as asked, else as X has it, else as the network knows it."""
    if asked is not None:
        shape = tuple(int(n) for n in asked)
        if math.prod(shape) != math.prod(given) or not shape:
            raise ValueError(f"image_shape {shape} does not hold the numbers of one image, {given}.")
    elif len(given) > 1:
        shape = given
    elif len(known) > 1 and math.prod(known) == given[0]:
        shape = known
    else:
        raise ValueError(
            f"X has rows of {given[0]} numbers; say image_shape=(height, width), or ({given[0]},) for "
            f"signals."
        )
    if len(shape) > 3 or min(shape) < 1:
        raise ValueError(f"an image is (W,), (H, W) or (C, H, W); got {shape}.")
    if len(shape) == 3 and shape[-1] <= MAX_CHANNELS < min(shape[:2]):
        raise ValueError(f"channels come first, (C, H, W); got {shape}, which has them last.")
    return shape


def _labels(y: ArrayLike, n: int, n_classes: int) -> Tensor:
    labels = y.detach().cpu().numpy() if isinstance(y, Tensor) else np.asarray(y)
    if labels.shape != (n,) or labels.dtype.kind not in "biuf":
        raise ValueError(
            f"y must hold one class for each of {n} images; got {labels.dtype} {labels.shape}."
        )
    values = labels.astype(np.float64)
    if n_classes == 2 and np.isin(values, (-1.0, 1.0)).all() and (values < 0).any():
        values = (values + 1.0) / 2.0
    whole = np.isfinite(values) & (values == np.floor(values))
    if not whole.all() or values.min() < 0 or values.max() >= n_classes:
        wrong = values[~(whole & (values >= 0) & (values < n_classes))][0]
        raise ValueError(f"y must hold classes 0 to {n_classes - 1}; got {wrong:g}.")
    return torch.from_numpy(values.astype(np.int64))
