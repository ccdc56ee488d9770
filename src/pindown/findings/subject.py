"""What a question is asked about: a model, data, a box, and the time that is left.

Without data or a box, :func:`reference_box` says where to look.
"""

from __future__ import annotations

import hashlib
import zlib
from collections.abc import Callable
from contextlib import suppress
from dataclasses import dataclass, field, replace
from typing import Any, TypeVar

import numpy as np
from numpy.typing import ArrayLike

from pindown.affine import Array
from pindown.box import as_box
from pindown.deadline import OutOfTime, Stopwatch
from pindown.findings.asked_model import AskedModel, Function
from pindown.findings.question_budget import NotApplicable, TooLong, Turn
from pindown.findings.samples import (
    Observed,
    Sample,
    Targets,
    chunk_rows,
    one_pass,
    ranges_of_a_table,
    read_targets,
)
from pindown.findings.tuning import (
    LAYER_NORM_SHARE,
    MAX_SIDES_IN_WORDS,
    MIN_IMAGE_SIDE,
    MODERATE_POWER,
    PASS_SHARE,
    ROWS_FOR_THE_PRICE,
    ROWS_TO_TELL_PROBABILITIES,
    SHARED_PASS_SHARE,
)
from pindown.geometry import Box
from pindown.io.evaluated import Evaluated
from pindown.model.graph import Model
from pindown.network import ReluNetwork, as_rows
from pindown.relaxation import NormBound, layer_spectral_norms

T = TypeVar("T")
_PIXELS = (784, 3072)  # of MNIST and CIFAR-10 images, the usual vectors that are images


@dataclass(frozen=True, eq=False)
class Subject:
    """Everything a question may look at; what several questions need is computed once and shared.

    Attributes:
        asked: The model that is asked about.
        data: The inputs given, or None.
        test: Inputs the network was not trained on, or None.
        box: Where statements about all inputs are made.
        box_name: The box in words.
        turn: The time that the question has.
        seed: Root of all randomness.
        before_training: The model before training, or None.
        assumed: In words, that the box was taken for want of another; else empty.
        file: What to call the model's file in commands.
    """

    asked: AskedModel
    data: Sample | None
    test: Sample | None
    box: Box
    box_name: str
    turn: Turn
    seed: int = 0
    before_training: AskedModel | None = None
    assumed: str = ""
    file: str = "model.onnx"
    _known: dict[str, Any] = field(default_factory=dict)

    @classmethod
    def of(
        cls,
        asked: AskedModel | Function,
        X: ArrayLike | None,
        y: ArrayLike | None,
        test: tuple[ArrayLike, ArrayLike | None] | None,
        box: Box | tuple[ArrayLike, ArrayLike] | None,
        turn: Turn,
        seed: int,
        initial: AskedModel | None = None,
    ) -> Subject:
        """Check what was given; without a box, take the data's, and without data a reference box.

        Raises:
            ValueError: If data, labels, box or initial network do not fit the network or each other.
        """
        asked = asked if isinstance(asked, AskedModel) else AskedModel(asked)
        net = asked.given
        _check_initial(asked, initial)
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
        asked = _with_scores(asked, data, held_out)
        return cls(asked, data, held_out, region, name, turn, seed, initial, assumed)

    def with_model(self, asked: AskedModel, turn: Turn) -> Subject:
        """Return another model with the same data and box, nothing known about it yet."""
        asked = _with_scores(asked, self.data, self.test)
        return replace(self, asked=asked, turn=turn, before_training=None, _known={})

    @property
    def values(self) -> Function:
        """The model as a function of rows: scores, a last softmax or sigmoid left out."""
        return self.asked.values

    @property
    def graph(self) -> Model:
        """The model's operations, for gradients and bounds.

        Raises:
            NotApplicable: If only values are known.
        """
        return self.asked.graph

    @property
    def net(self) -> ReluNetwork:
        """The exact piecewise-linear form.

        Raises:
            NotApplicable: If there is none.
        """
        return self.asked.exact

    @property
    def model(self) -> Model | None:
        """The model as its author wrote it; None if a network or a function was given."""
        return self.asked.given if isinstance(self.asked.given, Model) else None

    @property
    def initial(self) -> ReluNetwork | None:
        """The exact form before training, or None if it was not given.

        Raises:
            NotApplicable: If there is no exact form.
        """
        return None if self.before_training is None else self.before_training.exact

    def during(self, turn: Turn) -> Subject:
        """Return the same subject, with what is known about it, for a question with another time."""
        return replace(self, turn=turn)

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
        return are_images(self.values.input_shape)

    def ranges(self, X: Array) -> Array | None:
        """Return the range of every input of a table of unlike units; None where one is typical."""
        pixels = self.images or self.values.in_features in _PIXELS
        return None if pixels else ranges_of_a_table(X)

    @property
    def data_file(self) -> str:
        """What to call, in commands, the file of the rows that the model is judged on."""
        return "test.npz" if self.test is not None and self.labelled is self.test else "data.npz"

    @property
    def fingerprint(self) -> str:
        """SHA-256 of model, rows, targets and box; empty for a function in Python."""
        given = self.asked.given.fingerprint
        if not given:
            return ""
        start = None if self.before_training is None else self.before_training.given.fingerprint
        digest = hashlib.sha256(repr((given, start)).encode())
        arrays: list[Any] = [self.box.lower, self.box.upper]
        for sample in (self.data, self.test):
            arrays += [] if sample is None else [sample.X]
            arrays += [] if sample is None or sample.targets is None else [sample.targets.values]
            digest.update(b"." if sample is None or sample.targets is None else b":")
        for array in arrays:
            digest.update(repr((array.shape, str(array.dtype))).encode())
            digest.update(np.ascontiguousarray(array).data)
        return digest.hexdigest()

    def once(self, name: str, compute: Callable[[], T]) -> T:
        """Return what several questions need and only the first of them computes."""
        if name not in self._known:
            self._known[name] = compute()
        known: T = self._known[name]
        return known

    def known(self, name: str) -> Any:
        """Return what a question before has computed by :meth:`once`, or None."""
        return self._known.get(name)

    def require(self, seconds: float, *, measured: bool = False) -> None:
        """Go on, if work that cannot be cut short fits.

        Args:
            seconds: What it takes.
            measured: Whether the clock said so just now; else the speed seen so far counts, too.

        Raises:
            TooLong: If it does not fit.
        """
        takes = seconds if measured else seconds * self.turn.slowness
        if takes > self.turn.most:
            raise TooLong(takes, self.turn.most)

    def require_moderate(self) -> None:
        """Raise NotApplicable if products of weights and data may leave float64, or its squares."""
        if self.asked.why_not_exact:
            return
        largest = [float(abs(layer.weight).max()) for layer in self.net.layers]
        rows = 1.0 if self.data is None else float(np.max(np.abs(self.data.X)))
        largest.insert(0, max(1.0, rows))
        powers = np.cumsum([np.log10(size) for size in largest if size > 0.0])
        tiny = 0.0 < rows < 10.0**-MODERATE_POWER
        if tiny or np.abs(powers).max() > MODERATE_POWER:
            raise NotApplicable("weights or data are so large or small that their squares leave float64")

    def seconds_per_row(self) -> float:
        """Return what evaluating one row takes, measured once on a few."""
        return self.once("seconds per row", self._measured)

    def affordable(self, most: int, passes: float, share: float) -> int:
        """Return how many rows, at most ``most`` and at least one, can go through several times.

        Args:
            most: How many are wanted.
            passes: How often each is evaluated.
            share: Share of the time left for this question.
        """
        price = passes * self.seconds_per_row()
        return max(1, min(most, int(share * self.turn.left / price))) if price else most

    def _measured(self) -> float:
        sample = self.data
        most = min(ROWS_FOR_THE_PRICE, chunk_rows(self.values))
        rows = self.box.center[None] if sample is None else sample.X[:most]
        watch = Stopwatch()
        with np.errstate(all="ignore"), suppress(ValueError):  # of overflow others speak
            self.values(rows)
        return watch.seconds / len(rows)

    def rng(self, code: str) -> np.random.Generator:
        """Return a generator of the question's own, so that muting one does not change another."""
        return np.random.default_rng([self.seed, zlib.crc32(code.encode())])

    def layer_norms(self) -> list[NormBound]:
        """Return the spectral norm of every layer, using less than half of the time left."""
        weights = [layer.weight for layer in self.net.layers]
        budget = LAYER_NORM_SHARE * self.turn.left
        return self.once("layer norms", lambda: layer_spectral_norms(weights, budget=budget))

    def observe(self, sample: Sample) -> Observed:
        """Return what a pass of the sample showed, using most of the time left.

        Raises:
            OutOfTime: If no time is left for even a part of the pass.
            NotApplicable: If the network overflows on the data.
        """
        return self.once(f"pass of the {sample.name}", lambda: self._pass(sample))

    def _pass(self, sample: Sample) -> Observed:
        if self.turn.passed:
            raise OutOfTime
        own, shared = self.turn.share(PASS_SHARE), self.turn.share_of_all(SHARED_PASS_SHARE)
        until = max(own, shared, key=lambda deadline: deadline.end)
        return one_pass(self.values, sample.X, self.rng(sample.name), until)

    def judged(self) -> tuple[Sample, Observed, Targets]:
        """Return the labelled sample, what its pass showed, and the targets of the rows seen."""
        sample = self.labelled
        if sample is None or sample.targets is None:
            raise NotApplicable("no labels were given")
        observed = self.observe(sample)
        return sample, observed, sample.targets.take(observed.rows)


def _check_initial(asked: AskedModel, initial: AskedModel | None) -> None:
    if initial is None:
        return
    shapes = [form.values.widths for form in (initial, asked) if isinstance(form.values, ReluNetwork)]
    if len(shapes) < 2:
        shapes = [(form.given.in_features, form.given.out_features) for form in (initial, asked)]
    if shapes[0] != shapes[1]:
        raise ValueError(
            f"initial must be the same network before training; got widths {shapes[0]} for {shapes[1]}."
        )


def _with_scores(asked: AskedModel, *samples: Sample | None) -> AskedModel:
    """Return a function with scores in the place of probabilities, where it gives these of classes."""
    if not isinstance(asked.given, Evaluated):
        return asked
    for sample in samples:
        if sample is not None and (sample.targets is None or sample.targets.is_classification):
            if asked.given.out_features == 1 and sample.targets is None:
                continue
            return AskedModel(asked.given.scores(sample.X[:ROWS_TO_TELL_PROBABILITIES]))
    return asked


def _read_sample(
    net: Function, X: ArrayLike, y: ArrayLike | None, name: str, X_name: str, y_name: str
) -> Sample:
    try:
        rows, _ = as_rows(X, net.in_features, net.input_shape)
    except (TypeError, ValueError) as error:
        raise ValueError(f"{X_name}: {error}") from None
    if len(rows) == 0:
        raise ValueError(f"{X_name} is empty; give at least one row, or leave it out.")
    return Sample(
        name, rows, None if y is None else read_targets(y, len(rows), net.out_features, y_name)
    )


def reference_box(net: Function) -> tuple[Box, str]:
    """Return the box to speak about if nothing is known about the inputs, and its name.

    Pixels lie in [0, 1]; other inputs are usually scaled to about [-1, 1].

    >>> reference_box(ReluNetwork.from_layers([([[1.0, 2.0]], [0])]))[1]
    '[-1, 1]^2'
    """
    d = net.in_features
    low = 0 if are_images(net.input_shape) or d in _PIXELS else -1
    box = Box.cube(d, float(low), 1.0)
    return box, box_in_words(box)


def box_in_words(box: Box) -> str:
    """Return the sides of a box, empty if they are too many to list.

    >>> box_in_words(Box.cube(3, 0.0, 1.0)), box_in_words(Box([0, -1], [1, 2.5]))
    ('[0, 1]^3', '[0, 1] × [-1, 2.5]')
    """
    sides = [f"[{_written(a)}, {_written(b)}]" for a, b in zip(box.lower, box.upper, strict=True)]
    if len(set(zip(box.lower, box.upper, strict=True))) == 1:
        return sides[0] + (f"^{box.dim}" if box.dim > 1 else "")
    return " × ".join(sides) if box.dim <= MAX_SIDES_IN_WORDS else ""


def _written(end: float) -> str:
    """Return a number, short if that says all of it."""
    return short if float(short := f"{end:g}") == end else repr(float(end))


def are_images(shape: tuple[int, ...]) -> bool:
    """Return whether inputs of this shape look like images: their last two axes are long enough.

    >>> are_images((3, 32, 32)), are_images((784, 1))
    (True, False)
    """
    return len(shape) in (2, 3) and min(shape[-2:]) >= MIN_IMAGE_SIDE
