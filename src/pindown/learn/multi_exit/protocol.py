r"""The source's protocol: which images have labels, which network, which steps.

CIFAR(X) has X labelled images of each class, 50 of them for choosing a model, the rest for training; of
the 500 of each class those that are left have no label. ImageNet(X) splits its X into nine parts for
training and one for choosing, and leaves 700 - X of each class without a label.

Phuong 2021, section 6.3.1.
"""

from __future__ import annotations

from dataclasses import dataclass
from fractions import Fraction
from itertools import pairwise
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np
from numpy.typing import ArrayLike, NDArray

from pindown.validation import integer

if TYPE_CHECKING:
    from torch.optim import Optimizer

    from pindown.learn.multi_exit.model import MultiExitModel
    from pindown.learn.multi_exit.networks import MSDNet


class LabelSplit(NamedTuple):
    """Numbers of rows: to train on, to choose a model by, and without labels."""

    train: NDArray[np.int64]
    selection: NDArray[np.int64]
    unlabelled: NDArray[np.int64]


@dataclass(frozen=True)
class ExitProtocol:
    r"""One of the source's two settings, as data; it repeats each run 5 or 10 times with new subsets.

    Attributes:
        name: ``"cifar"`` or ``"imagenet"``.
        n_classes: Classes of the data.
        batch_size: Images in a batch.
        epochs: How often the labelled images are gone through.
        drop_epochs: After which epochs the step size falls to a tenth.
        rate: First step size of gradient descent with Nesterov's momentum 0.9.
        weight_decay: Its penalty.
        confidence_limit: :math:`\mu` of the temperature's annealing; its multiplier is 1.05 in both.
        selection: How many images of each class are for choosing a model: a number, or a share.
        per_class: Images of each class that are used at all, with labels or without.
        exits: The layers after which the network has exits.

    Example:
        >>> ExitProtocol.cifar().exits[:3], ExitProtocol.imagenet().exits
        ((4, 6, 8), (10, 17, 24, 31, 38))
        >>> split = ExitProtocol.cifar().split([0, 1] * 500, labels_per_class=150, random_state=0)
        >>> [len(part) for part in split]
        [200, 100, 700]
    """

    name: str
    n_classes: int
    batch_size: int
    epochs: int
    drop_epochs: tuple[int, ...]
    rate: float
    weight_decay: float
    confidence_limit: float
    selection: int | Fraction
    per_class: int
    exits: tuple[int, ...]

    @classmethod
    def cifar(cls) -> ExitProtocol:
        """Return the setting for CIFAR-100."""
        return cls("cifar", 100, 64, 300, (150, 225), 0.5, 1e-4, 0.5, 50, 500, tuple(range(4, 25, 2)))

    @classmethod
    def imagenet(cls) -> ExitProtocol:
        """Return the setting for ImageNet."""
        tenth = Fraction(1, 10)
        return cls("imagenet", 1000, 256, 90, (30, 60), 0.5, 1e-4, 0.1, tenth, 700, (10, 17, 24, 31, 38))

    @property
    def drops(self) -> tuple[float, ...]:
        """The same as shares of the epochs, as :func:`~pindown.learn.multi_exit.train` takes them."""
        return tuple(epoch / self.epochs for epoch in self.drop_epochs)

    def network(self) -> MSDNet:
        """Return the untrained network."""
        from pindown.learn.multi_exit.networks import MSDNet

        return MSDNet.cifar(self.n_classes) if self.name == "cifar" else MSDNet.imagenet(self.n_classes)

    def optimiser(self, model: MultiExitModel) -> Optimizer:
        """Return gradient descent with the published step size, momentum and penalty."""
        from pindown.learn.multi_exit.training import make_optimiser

        return make_optimiser("sgd", model, self.rate, self.weight_decay)

    def split(self, labels: ArrayLike, labels_per_class: int, random_state: Any = None) -> LabelSplit:
        """Draw which rows have labels, for training and for choosing a model, and which have none.

        Args:
            labels: Classes of all rows (n,).
            labels_per_class: X, more than are held for choosing.
            random_state: Seed.

        Raises:
            ValueError: If a class has fewer rows than X, or nothing would be left to train on.
        """
        y = np.asarray(labels).ravel()
        X = integer("labels_per_class", labels_per_class)
        held = self.selection if isinstance(self.selection, int) else int(self.selection * X)
        rng = np.random.default_rng(random_state)
        groups = [rng.permutation(np.flatnonzero(y == label)) for label in np.unique(y)]
        least = min(map(len, groups), default=0)
        if not held < X <= least:
            raise ValueError(
                f"labels_per_class must exceed the {held} rows of each class that choose the model, and "
                f"no class may have fewer rows than that; got {X}, the smallest class has {least}."
            )
        ends = (0, X - held, X, max(X, self.per_class))
        parts = [np.concatenate([own[a:b] for own in groups]) for a, b in pairwise(ends)]
        return LabelSplit(*(np.sort(part).astype(np.int64) for part in parts))
