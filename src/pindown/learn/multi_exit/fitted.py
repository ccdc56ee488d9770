"""A fitted classifier with exits: what it holds, and how rows and labels get to its network."""

from __future__ import annotations

from typing import Any

import numpy as np
import torch
from numpy.typing import NDArray
from sklearn.base import BaseEstimator, ClassifierMixin
from torch import Tensor
from torch.nn.functional import softmax

from pindown.affine import Array
from pindown.learn.multi_exit.costs import ExitCosts
from pindown.learn.multi_exit.frame import InputFrame
from pindown.learn.multi_exit.model import MultiExitModel
from pindown.learn.multi_exit.rows import checked_rows

CHUNK = 256  # rows at a time: the states of more do not fit into a cache


class FittedExits(ClassifierMixin, BaseEstimator):  # type: ignore[misc]
    """The network of a classifier with exits, and what goes into it and comes out."""

    ensemble: bool
    classes_: NDArray[Any]
    model_: MultiExitModel
    frame_: InputFrame
    costs_: ExitCosts
    n_features_in_: int

    @property
    def _dtype(self) -> torch.dtype:
        return next((p.dtype for p in self.model_.parameters()), torch.float32)

    def _inputs(self, X: Any) -> Tensor:
        rows = checked_rows(self, X)
        device = next((p.device for p in self.model_.parameters()), torch.device("cpu"))
        return self.frame_.inputs(rows, self._dtype).to(device)

    def _all_probabilities(self, x: Tensor) -> Array:
        """Return the probabilities of all exits, (exits, n, classes)."""
        with torch.inference_mode():
            parts = [
                torch.stack([softmax(z, dim=1) for z in self.model_(part)])
                for part in torch.split(x, CHUNK)
            ]
        return torch.cat(parts, dim=1).cpu().double().numpy()

    def _places(self, y: Any, n: int) -> NDArray[np.int64]:
        y = np.asarray(y)
        if y.shape != (n,):
            raise ValueError(f"y must hold {n} labels, got shape {y.shape}.")
        places = np.searchsorted(self.classes_, y).clip(max=len(self.classes_) - 1)
        # A class that was never learned is always wrong.
        return np.where(self.classes_[places] == y, places, len(self.classes_))

    def _until(self, x: Tensor, m: int) -> Tensor:
        with torch.inference_mode():
            if not self.ensemble:
                return softmax(self.model_.exit_only(x, m), dim=1).cpu()
            logits = self.model_.forward_until(x, m)
            return torch.stack([softmax(z, dim=1) for z in logits]).mean(dim=0).cpu()
