"""What a question is asked about: a network, data, a box, and the time that is left."""

from __future__ import annotations

import zlib
from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any, TypeVar

import numpy as np
from numpy.typing import ArrayLike

from pindown.box import as_box
from pindown.findings.deadline import Deadline, NotApplicable, OutOfTime
from pindown.findings.passes import Observed, Sample, one_pass
from pindown.findings.reference_box import are_images, box_in_words, reference_box
from pindown.findings.targets import Targets, read_targets
from pindown.geometry import Box
from pindown.network import ReluNetwork
from pindown.relaxation import NormBound, layer_spectral_norms

T = TypeVar("T")
_SHARED_PASS = 0.1  # of all time left: many questions live on one pass, whoever asks first


# Products of weights and data beyond ten to this power have squares that float64 can hardly hold.
_MODERATE_POWER = 120


@dataclass(eq=False)
class Subject:
    """Everything a question may look at; passes over the data are made once and shared.

    Attributes:
        net: The network.
        data: The inputs given, or None.
        test: Inputs the network was not trained on, or None.
        box: Where statements about all inputs are made.
        box_name: The box in words.
        deadline: When to stop.
        seed: Root of all randomness.
        initial: The network before training, or None.
        assumed: In words, that the box was taken for want of another; else empty.
    """

    net: ReluNetwork
    data: Sample | None
    test: Sample | None
    box: Box
    box_name: str
    deadline: Deadline
    seed: int = 0
    initial: ReluNetwork | None = None
    assumed: str = ""
    _passes: dict[str, Observed] = field(default_factory=dict)
    _layer_norms: list[NormBound] = field(default_factory=list)
    _shared: dict[str, Any] = field(default_factory=dict)

    @classmethod
    def of(
        cls,
        net: ReluNetwork,
        X: ArrayLike | None,
        y: ArrayLike | None,
        test: tuple[ArrayLike, ArrayLike | None] | None,
        box: Box | tuple[ArrayLike, ArrayLike] | None,
        deadline: Deadline,
        seed: int,
        initial: ReluNetwork | None = None,
    ) -> Subject:
        """Check what was given; without a box, take the data's, and without data a reference box.

        Raises:
            ValueError: If data, labels, box or initial network do not fit the network or each other.
            TypeError: If the initial network is none.
        """
        _check_initial(net, initial)
        if X is None and y is not None:
            raise ValueError("y was given without X; labels need the inputs they belong to.")
        data = None if X is None else _read_sample(net, X, y, "data", "X", "y")
        held_out = (
            None if test is None else _read_sample(net, *test, "test data", "the test X", "the test y")
        )
        if data is None:
            data, held_out = held_out, None
        assumed = ""
        if box is not None:
            region = as_box(box, net.in_features)
            name = f"the given box {box_in_words(region)}".strip()
        elif data is not None:
            region, name = Box.around(data.X), f"the bounding box of the {data.name}"
        else:
            region, inputs = reference_box(net)
            name = f"the reference box {inputs}"
            assumed = f"inputs in {inputs}, because neither data nor a box was given"
        return cls(net, data, held_out, region, name, deadline, seed, initial, assumed)

    def with_network(self, net: ReluNetwork, deadline: Deadline) -> Subject:
        """Return another network with the same data and box, nothing known about it yet."""
        return Subject(
            net, self.data, self.test, self.box, self.box_name, deadline, self.seed, None, self.assumed
        )

    @property
    def labelled(self) -> Sample | None:
        """The sample to judge the network on: test data if labelled, else the data if labelled."""
        for sample in (self.test, self.data):
            if sample is not None and sample.targets is not None:
                return sample
        return None

    @property
    def images(self) -> bool:
        """Whether the inputs look like images: their last two axes are long enough."""
        return are_images(self.net.input_shape)

    def once(self, name: str, compute: Callable[[], T]) -> T:
        """Return what several questions need and only the first of them computes."""
        if name not in self._shared:
            self._shared[name] = compute()
        known: T = self._shared[name]
        return known

    def require(self, seconds: float) -> None:
        """Raise OutOfTime if work that cannot be cut short does not fit, at the speed seen so far."""
        if seconds * self.deadline.slowness > self.deadline.most:
            raise OutOfTime

    def require_moderate(self) -> None:
        """Raise NotApplicable if products of weights and data may leave float64, or its squares."""
        largest = [float(abs(layer.weight).max()) for layer in self.net.layers]
        if self.data is not None and len(self.data):
            largest.insert(0, max(1.0, float(np.max(np.abs(self.data.X)))))
        powers = np.cumsum([np.log10(size) for size in largest if size > 0.0])
        if len(powers) and np.abs(powers).max() > _MODERATE_POWER:
            raise NotApplicable("weights or data are so large or small that their squares leave float64")

    def rng(self, code: str) -> np.random.Generator:
        """Return a generator of the question's own, so that muting one does not change another."""
        return np.random.default_rng([self.seed, zlib.crc32(code.encode())])

    def layer_norms(self) -> list[NormBound]:
        """Return the spectral norm of every layer, using less than half of the time left."""
        if not self._layer_norms:
            weights = [layer.weight for layer in self.net.layers]
            self._layer_norms = layer_spectral_norms(weights, budget=0.4 * self.deadline.left)
        return self._layer_norms

    def observe(self, sample: Sample) -> Observed:
        """Return what a pass of the sample showed, using most of the time left.

        Raises:
            OutOfTime: If no time is left for even a part of the pass.
            NotApplicable: If the network overflows on the data.
        """
        if sample.name not in self._passes:
            if self.deadline.passed:
                raise OutOfTime
            until = max(self.deadline.share(0.9), self.deadline.share_of_all(_SHARED_PASS))
            self._passes[sample.name] = one_pass(self.net, sample.X, self.rng(sample.name), until)
        return self._passes[sample.name]

    def judged(self) -> tuple[Sample, Observed, Targets]:
        """Return the labelled sample, what its pass showed, and the targets of the rows seen."""
        sample = self.labelled
        if sample is None or sample.targets is None:
            raise NotApplicable("no labels were given")
        observed = self.observe(sample)
        return sample, observed, sample.targets.take(observed.rows)


def _check_initial(net: ReluNetwork, initial: object) -> None:
    if initial is None:
        return
    if not isinstance(initial, ReluNetwork):
        raise TypeError(
            f"initial must be a ReluNetwork, as the network itself; got {type(initial).__name__}."
        )
    if initial.widths != net.widths:
        raise ValueError(
            f"initial must be the same network before training; got widths {initial.widths} for "
            f"{net.widths}."
        )


def _read_sample(
    net: ReluNetwork, X: ArrayLike, y: ArrayLike | None, name: str, X_name: str, y_name: str
) -> Sample:
    try:
        rows, _ = net.as_rows(X)
    except (TypeError, ValueError) as error:
        raise ValueError(f"{X_name}: {error}") from None
    if len(rows) == 0:
        raise ValueError(f"{X_name} is empty; give at least one row, or leave it out.")
    return Sample(
        name, rows, None if y is None else read_targets(y, len(rows), net.out_features, y_name)
    )
