"""What theories of training need to know about a network and its data, read once for all of them."""

from __future__ import annotations

import math
from dataclasses import dataclass
from functools import cached_property

import numpy as np
import scipy.sparse as sp
from numpy.typing import NDArray

from pindown.affine import Array, dense
from pindown.findings.deadline import NotApplicable
from pindown.findings.finding import Hypothesis
from pindown.findings.subject import Subject
from pindown.findings.targets import Targets, margins
from pindown.network import ReluNetwork
from pindown.rounding import norm_up

MOST_ROWS = 2000  # to which quadratic programs and tables of pairs are limited


@dataclass(frozen=True, eq=False)
class Setting:
    """A network with labelled rows that are taken for its training data.

    Attributes:
        net: The network.
        X: Rows seen.
        outputs: Its outputs there.
        targets: What they should have been.
        n_given: How many rows there were; fewer were seen if time ran out.
    """

    net: ReluNetwork
    X: Array
    outputs: Array
    targets: Targets
    n_given: int

    @property
    def n(self) -> int:
        """Number of rows seen."""
        return len(self.X)

    @property
    def one_output(self) -> bool:
        """Whether there are two classes, told apart by the sign of one output."""
        return self.targets.task == "binary"

    @cached_property
    def signs(self) -> Array:
        """Classes as -1 and 1; only with one output."""
        return np.where(self.targets.values == 1, 1.0, -1.0)

    @cached_property
    def margins(self) -> Array:
        """By how much the right class wins on each row; only for classes."""
        return margins(self.outputs, self.targets)

    @property
    def n_wrong(self) -> int:
        """Rows whose margin is not positive."""
        return int(np.count_nonzero(self.margins <= 0))

    @property
    def tied(self) -> bool:
        """Whether on some row the right class is as large as another, neither won nor lost."""
        return bool(np.any(self.margins == 0))

    @cached_property
    def biased(self) -> tuple[int, ...]:
        """Numbers, from 1, of the layers with a bias that is not zero."""
        return tuple(i for i, layer in enumerate(self.net.layers, 1) if layer.bias.any())

    @property
    def homogeneous(self) -> bool:
        """Whether scaling all parameters by c scales the outputs by a power of c.

        Biases of the first layer are weights of a constant input; later ones break it.
        """
        return set(self.biased) <= {1}

    @property
    def dense(self) -> bool:
        """Whether every layer is a full matrix, each entry a parameter of its own."""
        return not any(sp.issparse(layer.weight) for layer in self.net.layers)

    @cached_property
    def size(self) -> float:
        """Euclidean length of all parameters."""
        parts = [W.data if sp.issparse(W) else W for W, _ in self.net.layers]
        return math.hypot(*(norm_up(part) for part in (*parts, *(b for _, b in self.net.layers))))

    @property
    def normalised_margin(self) -> float:
        r"""The least margin over :math:`\lVert\theta\rVert^L`."""
        try:
            return float(self.margins.min()) / self.size**self.net.depth
        except (OverflowError, ZeroDivisionError):
            return 0.0 if self.size > 1 else math.inf

    def unbiased(self) -> tuple[ReluNetwork, Array]:
        """Return the network and rows with biases of the first layer as weights of a constant input."""
        if not self.biased:
            return self.net, self.X
        (W, b), *later = self.net.layers
        first = (np.c_[dense(W), b], np.zeros(len(b)))
        return ReluNetwork.from_layers([first, *later]), np.c_[self.X, np.ones(self.n)]

    def some(self, rng: np.random.Generator, most: int = MOST_ROWS) -> NDArray[np.intp]:
        """Return at most so many rows, all if there are no more."""
        if self.n <= most:
            return np.arange(self.n)
        return np.sort(rng.choice(self.n, most, replace=False))

    @property
    def trained_on(self) -> Hypothesis:
        """The hypothesis that nobody can check."""
        seen = "" if self.n == self.n_given else f" ({self.n:,} of {self.n_given:,} were seen)"
        return Hypothesis(f"the rows given are those it was trained on{seen}")

    @property
    def biases_in_words(self) -> str:
        """Which layers have biases."""
        if len(self.biased) == 1:
            return f"layer {self.biased[0]} of {self.net.depth} has biases that are not zero"
        return f"{len(self.biased)} of {self.net.depth} layers have biases that are not zero"


def read_setting(subject: Subject) -> Setting:
    """Return the labelled data, which are taken for the training data.

    Raises:
        NotApplicable: If only test data have labels.
    """
    return subject.once("bias setting", lambda: _read(subject))


def _read(subject: Subject) -> Setting:
    sample = subject.data
    if sample is None or sample.targets is None:
        raise NotApplicable("theory speaks of the training data and only the test data have labels")
    observed = subject.observe(sample)
    complete = observed.n == observed.n_given  # then no copy
    return Setting(
        subject.net,
        sample.X if complete else sample.X[observed.rows],
        observed.outputs,
        sample.targets.take(observed.rows),
        observed.n_given,
    )
