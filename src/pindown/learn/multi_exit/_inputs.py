"""How arrays become inputs of a network: shapes and scales, learned from the training rows.

New rows go through all of scikit-learn's checks, or a short way around them: an early exit saves a
fraction of a millisecond on a single input, and checks that take as long would eat it.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
import torch
from sklearn.utils.validation import check_is_fitted, validate_data
from torch import Tensor, nn

from pindown.affine import Array
from pindown.learn._inputs import MAX_CHANNELS, mean_and_deviation, n_axes

# Standard deviations: squares of more do not fit into single precision.
_MAX_INPUT = 1e15
_PLAIN = (np.dtype(np.float64), np.dtype(np.float32))


@dataclass(frozen=True, eq=False)
class InputScaling:
    """Shape and scale of inputs.

    Attributes:
        shape: Shape of one input: (features,), or (channels, height, width).
        centre: Subtracted, one number per feature or channel.
        scale: Divided by, alike.
    """

    shape: tuple[int, ...]
    centre: Array
    scale: Array

    @classmethod
    def of(cls, rows: Array, shape: tuple[int, ...], standardise: bool) -> InputScaling:
        """Learn the scale from rows, (n, numbers)."""
        groups = shape[0]
        values = rows.reshape(len(rows), groups, -1).transpose(1, 0, 2).reshape(groups, -1)
        if not standardise:
            return cls(shape, np.zeros(groups), np.ones(groups))
        centre, deviation = mean_and_deviation(values.T)
        return cls(shape, centre, np.where(deviation > 0, deviation, 1.0))

    @property
    def is_image(self) -> bool:
        """Whether inputs are images."""
        return len(self.shape) == 3

    def inputs(self, rows: Array, dtype: torch.dtype) -> Tensor:
        """Return scaled inputs, (n, *shape)."""
        per = rows.reshape(len(rows), self.shape[0], -1)
        with np.errstate(over="ignore"):
            scaled = (per - self.centre[:, None]) / self.scale[:, None]
        scaled = np.clip(scaled, -_MAX_INPUT, _MAX_INPUT)
        return torch.as_tensor(scaled, dtype=dtype).reshape(len(rows), *self.shape)

    def module(self, dtype: torch.dtype) -> nn.Module:
        """Return the scaling as a module, to go in front of an exported network."""
        make = nn.BatchNorm2d if self.is_image else nn.BatchNorm1d
        norm = make(self.shape[0], eps=0.0, affine=False, dtype=dtype).eval()
        with torch.no_grad():
            norm.running_mean.copy_(torch.as_tensor(self.centre))
            norm.running_var.copy_(torch.as_tensor(self.scale**2))
        return norm


def as_images(X: Any) -> tuple[Any, tuple[int, ...]]:
    """Return images as rows with the shape of one, (channels, height, width); leave tables alone.

    Raises:
        ValueError: If the channels seem to be last.

    Example:
        >>> rows, shape = as_images(np.zeros((5, 8, 8)))
        >>> rows.shape, shape
        ((5, 64), (1, 8, 8))
    """
    axes = n_axes(X)
    if axes not in (3, 4):
        return X, ()
    X = np.asarray(X)
    shape = (1, *X.shape[1:]) if axes == 3 else X.shape[1:]
    if axes == 4 and shape[0] > MAX_CHANNELS >= shape[2]:
        raise ValueError(
            f"images must have their channels first, (n, channels, height, width); got {X.shape}: "
            "use X.transpose(0, 3, 1, 2)."
        )
    return X.reshape(len(X), -1), tuple(int(n) for n in shape)


def checked_rows(estimator: Any, X: Any) -> Array:
    """Return rows (n, numbers) in double precision for a fitted classifier.

    Raises:
        NotFittedError: If it is not fitted.
        ValueError: If shapes do not fit, or something is not a finite number.

    Example:
        >>> from pindown.learn import MultiExitClassifier
        >>> X = np.arange(40.0).reshape(20, 2)
        >>> model = MultiExitClassifier(max_epochs=1, random_state=0).fit(X, np.arange(20) % 2)
        >>> checked_rows(model, [[1, 2]])
        array([[1., 2.]])
    """
    if _is_plain(estimator, X) and np.isfinite(X).all():
        return np.asarray(X.reshape(len(X), -1), dtype=np.float64)
    check_is_fitted(estimator)
    rows, shape = as_images(X)
    if shape and shape != estimator.scaling_.shape:
        raise ValueError(f"images of shape {estimator.scaling_.shape} were learned; got {shape}.")
    return np.asarray(validate_data(estimator, rows, dtype=np.float64, reset=False))


def _is_plain(estimator: Any, X: Any) -> bool:
    """Say whether X is an array of the kind and shape that was learned: nothing else is to check."""
    fitted = vars(estimator)
    if type(X) is not np.ndarray or X.dtype not in _PLAIN or not (X.ndim and len(X)):
        return False
    if "model_" not in fitted or "feature_names_in_" in fitted:
        return False
    shape: tuple[int, ...] = fitted["scaling_"].shape
    flat, grey = (fitted["n_features_in_"],), shape[1:] if shape[0] == 1 and len(shape) == 3 else shape
    return X.shape[1:] in {shape, flat, grey}
