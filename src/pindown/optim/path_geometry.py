"""The path of the weights during training: how much they grow, and how far they turn."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import ArrayLike

from pindown.affine import Array, angle

if TYPE_CHECKING:
    from torch import nn


@dataclass(frozen=True)
class PathReport:
    r"""Norm and direction of the weights along a training run.

    Attributes:
        initial_norm: :math:`\|w_0\|`, of all weights stacked: the root of the sum of squares.
        dilations: :math:`\|w_t\| / \|w_0\|` at every recorded step.
        angles: Angle between :math:`w_t` and :math:`w_0` at every recorded step, in radians.
    """

    initial_norm: float
    dilations: Array
    angles: Array

    @property
    def dilation(self) -> float:
        """The last dilation; 1 if nothing was recorded."""
        return float(self.dilations[-1]) if len(self.dilations) else 1.0

    @property
    def angle(self) -> float:
        """The last angle, in radians; 0 if nothing was recorded."""
        return float(self.angles[-1]) if len(self.angles) else 0.0

    def __str__(self) -> str:
        return (
            f"{len(self.dilations)} steps: the weights grew {self.dilation:.4g} times and turned by "
            f"{math.degrees(self.angle):.4g} degrees"
        )


class TrainingPathGeometry:
    """Records how the weights of a model grow and turn; call :meth:`update` after a step.

    Counted are parameters with two or more dimensions: the weights of linear and convolutional layers,
    neither biases nor the scales of normalisation layers. The start is the model as it is given.

    Args:
        model: A torch module.

    Raises:
        TypeError: If the model is not a torch module.
        ValueError: If the model has no weights or starts from zero.

    Example:
        A quarter turn that doubles the length:

        >>> import torch
        >>> layer = torch.nn.Linear(2, 1, bias=False)
        >>> _ = layer.weight.data.copy_(torch.tensor([[1.0, 0.0]]))
        >>> path = TrainingPathGeometry(layer)
        >>> _ = layer.weight.data.copy_(torch.tensor([[0.0, 2.0]]))
        >>> path.update()
        >>> print(path.report())
        1 steps: the weights grew 2 times and turned by 90 degrees

    Mukherjee 2020, section 6.5: the geometry of the training path, distance from initialisation.
    """

    def __init__(self, model: nn.Module) -> None:
        if not callable(getattr(model, "parameters", None)):
            raise TypeError(f"model must be a torch module; got {type(model).__name__}.")
        self._model = model
        self._start = self.weights()
        self._norm = float(np.linalg.norm(self._start))
        if not 0 < self._norm < math.inf:
            raise ValueError(
                f"the weights must be finite and not all zero; their norm is {self._norm!r}."
            )
        self._dilations: list[float] = []
        self._angles: list[float] = []

    def weights(self) -> Array:
        """Return all weights of the model as one vector."""
        kept = [
            p.detach().double().cpu().numpy().ravel() for p in self._model.parameters() if p.dim() >= 2
        ]
        if not kept:
            raise ValueError(
                "the model has no parameter with two or more dimensions: nothing to follow."
            )
        return np.concatenate(kept)

    def update(self) -> None:
        """Record the weights as they are now.

        Raises:
            ValueError: If they are zero or not finite; what was recorded before stays.
        """
        now = self.weights()
        norm = float(np.linalg.norm(now))
        if not 0 < norm < math.inf:  # before anything is recorded
            raise ValueError(f"the weights must be finite and not all zero; their norm is now {norm!r}.")
        self._dilations.append(norm / self._norm)
        self._angles.append(angle(now, self._start))

    def report(self) -> PathReport:
        """Return what was recorded so far."""
        return PathReport(self._norm, np.array(self._dilations), np.array(self._angles))


@dataclass(frozen=True)
class Dispersion:
    """How far apart runs that start near each other end.

    Attributes:
        initial: Largest angle between the first start and another one, in radians.
        final: The same for the ends.
    """

    initial: float
    final: float

    @property
    def growth(self) -> float:
        """Final over initial spread."""
        return self.final / self.initial if self.initial > 0 else math.nan

    def __str__(self) -> str:
        return (
            f"angular spread from {math.degrees(self.initial):.4g} to {math.degrees(self.final):.4g} "
            f"degrees ({self.growth:.3g} times)"
        )


def dispersion(initial: Sequence[ArrayLike], final: Sequence[ArrayLike]) -> Dispersion:
    """Compare the angular spread of a cluster of runs before and after training.

    Args:
        initial: Weights at the start of each run; the first is the centre.
        final: Weights at the end, in the same order.

    Raises:
        ValueError: If there are fewer than two runs, or not as many ends as starts.

    Example:
        >>> print(dispersion([[1, 0], [1, 1]], [[1, 0], [0, 1]]))
        angular spread from 45 to 90 degrees (2 times)

    Mukherjee 2020, section 6.8.
    """
    if len(initial) != len(final) or len(initial) < 2:
        raise ValueError(
            f"give two or more starts and as many ends; got {len(initial)} and {len(final)}."
        )
    spread = [max(angle(runs[0], run) for run in runs[1:]) for runs in (initial, final)]
    return Dispersion(*spread)


def angle_density(angles: ArrayLike) -> Any:
    """Return a Gaussian kernel density estimate of angles, with Scott's bandwidth.

    >>> density = angle_density([0.1, 0.2, 0.3])
    >>> bool(density(0.2)[0] > density(0.4)[0])
    True

    Mukherjee 2020, Figures 6.5.1 and 6.F.1.
    """
    from scipy.stats import gaussian_kde

    values = np.asarray(angles, dtype=float).ravel()
    if len(np.unique(values)) < 2 or not np.all(np.isfinite(values)):
        raise ValueError(f"a density needs two or more different finite angles; got {values!r}.")
    return gaussian_kde(values, bw_method="scott")
