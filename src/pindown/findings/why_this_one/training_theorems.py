"""Which theorem about training speaks of this network, and what keeps the others from it.

What all of them need to know about a network and its data, the :class:`Setting`, is read once.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from functools import cached_property

import numpy as np
import scipy.sparse as sp
from numpy.typing import NDArray

from pindown.affine import Array, dense
from pindown.evidence import Assumption
from pindown.findings.finding import Finding, Quantity, Table
from pindown.findings.question_budget import NotApplicable
from pindown.findings.questions import question
from pindown.findings.samples import Targets, margins
from pindown.findings.subject import Subject
from pindown.findings.tuning import MAX_TRAINING_ROWS, SEPARABILITY_SECONDS_PER_PRODUCT
from pindown.findings.wording import count
from pindown.network import ReluNetwork
from pindown.rounding import norm_up

_FLOW = "trained by gradient descent with small steps on the logistic or another exponential loss, long"


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

    def some(self, rng: np.random.Generator, most: int = MAX_TRAINING_ROWS) -> NDArray[np.intp]:
        """Return at most so many rows, all if there are no more."""
        if self.n <= most:
            return np.arange(self.n)
        return np.sort(rng.choice(self.n, most, replace=False))

    @property
    def trained_on(self) -> Assumption:
        """The hypothesis that nobody can check."""
        seen = "" if self.n == self.n_given else f" ({self.n:,} of {self.n_given:,} were seen)"
        return Assumption(f"the rows given are those it was trained on{seen}")

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


@dataclass(frozen=True)
class Theorem:
    """A theorem, what it predicts and its conditions on this network."""

    name: str
    says: str
    source: str
    conditions: tuple[Assumption, ...]

    @property
    def applies(self) -> bool:
        """Whether no condition is known to be violated."""
        return all(condition.status != "violated" for condition in self.conditions)

    @property
    def obstacle(self) -> str:
        """The first violated condition, in words."""
        return next(c.text for c in self.conditions if c.status == "violated")


def _checked(holds: bool, yes: str, no: str) -> Assumption:
    return Assumption(yes, "checked") if holds else Assumption(no, "violated")


def theorems(subject: Subject, setting: Setting) -> tuple[Theorem, ...]:
    """Return the theorems on what training chooses, with their conditions checked on this network."""
    return subject.once(
        "theorems", lambda: (_linear(setting), _two_neurons(subject, setting), _homogeneous(setting))
    )


def _classified(setting: Setting) -> tuple[Assumption, ...]:
    if not setting.targets.is_classification:
        return (Assumption("the targets are values, not classes", "violated"),)
    wrong = f"{setting.n_wrong:,} of {count(setting.n, 'row')} {'is' if setting.n_wrong == 1 else 'are'}"
    how = "misclassified or tied" if setting.tied else "misclassified"
    return (
        _checked(
            setting.n_wrong == 0,
            "every row is classified correctly",
            f"{wrong} {how}, so that there is no margin",
        ),
    )


def _one_output(setting: Setting) -> Assumption:
    k = setting.net.out_features
    words = f"there are {k} outputs" if k > 1 else "the targets are not two classes"
    return _checked(setting.one_output, "two classes, told apart by the sign of one output", words)


def _linear(setting: Setting) -> Theorem:
    affine = setting.net.size == 0
    return Theorem(
        "linear classifiers go to the largest margin",
        "the weights turn to the separator of largest Euclidean margin",
        "Soudry et al. 2018; lecture course",
        (
            _checked(affine, "the network is affine", "the network has ReLUs"),
            _one_output(setting),
            *_classified(setting),
            Assumption(_FLOW),
        ),
    )


def _two_neurons(subject: Subject, setting: Setting) -> Theorem:
    depth, biased = setting.net.depth, bool(setting.biased)
    conditions = [
        _checked(
            depth == 2,
            "there is one hidden layer",
            f"there are {count(depth - 1, 'hidden layer')} instead of one",
        ),
        _one_output(setting),
        _checked(not biased, "no biases", setting.biases_in_words),
        *_classified(setting),
    ]
    if all(c.status == "checked" for c in conditions):
        from pindown.bias import orthogonal_separability

        rows = setting.some(subject.rng("BIAS-01"))
        subject.require(SEPARABILITY_SECONDS_PER_PRODUCT * len(rows) ** 2 * setting.X.shape[1])
        found = orthogonal_separability(setting.X[rows], setting.signs[rows])
        drawn = "" if len(rows) == setting.n else f" (on {len(rows):,} rows drawn)"
        conditions.append(
            _checked(
                found.ok,
                f"inputs are orthogonally separable{drawn}",
                f"inputs are not orthogonally separable: {100 * found.same_violations:.3g}% of pairs "
                f"within classes and {100 * found.cross_violations:.3g}% between have the wrong "
                f"sign{drawn}",
            )
        )
    conditions.append(Assumption(_FLOW + ", from weights near zero"))
    return Theorem(
        "two-layer networks go to two neurons",
        "every neuron turns to the max-margin vector of the class it serves, and the weights to rank "
        "two",
        "Phuong 2021, Theorem 3.1",
        tuple(conditions),
    )


def _homogeneous(setting: Setting) -> Theorem:
    return Theorem(
        "homogeneous networks go to stationary points of the margin",
        "the weights turn to a point where the margin cannot grow to first order",
        "Lyu and Li 2020; Phuong 2021, Lemma B.6",
        (
            _checked(
                setting.homogeneous,
                "the network is homogeneous in its parameters: no biases after the first layer",
                f"the network is not homogeneous in its parameters: {setting.biases_in_words}",
            ),
            *_classified(setting),
            Assumption(_FLOW),
        ),
    )


@question(
    "BIAS-01",
    "Theory that applies",
    group="why",
    needs=("labels", "exact"),
    about="Which theorems on what training chooses apply to this network and these data, by which of "
    "their hypotheses hold, cannot be checked, or are violated.",
    cost=(0.3, 0),
    place=10,
)
def theory_that_applies(subject: Subject) -> Finding:
    """Check the hypotheses of the theorems one by one."""
    setting = read_setting(subject)
    all_of_them = theorems(subject, setting)
    those = [theorem for theorem in all_of_them if theorem.applies]
    if those:
        verdict = "; ".join(theorem.name for theorem in those) + " (if trained so)"
        sentence = f"Theory predicts what training chose: {those[0].says}, if it was trained so."
    else:
        verdict = f"no theorem here applies, because {_reasons(all_of_them)}"
        sentence = (
            f"No theorem here predicts which function training chose, because {_reasons(all_of_them)}."
        )
    return Finding(
        verdict=verdict,
        number=Quantity(
            len(those), "exact", "theorems" if len(those) != 1 else "theorem", label="applying"
        ),
        hypotheses=(
            *_distinct([c for theorem in all_of_them for c in theorem.conditions]),
            setting.trained_on,
        ),
        reading="Many networks fit the same data. These theorems say which of them training by gradient "
        "descent ends at, under hypotheses that are checked here as far as a network and data can show "
        "them; how it was trained is known to its maker only. Where none applies, BIAS-02 to BIAS-05 "
        "are descriptions, not comparisons with a prediction.",
        scale=f"Out of {len(all_of_them)} theorems. Most networks in use have biases in every layer and "
        "several outputs, which none of these theorems covers.",
        table=_table(all_of_them),
        sentence=sentence,
    )


def _reasons(those: tuple[Theorem, ...]) -> str:
    """Return the obstacle of the widest theorem, which is the last."""
    return those[-1].obstacle


def _distinct(conditions: list[Assumption]) -> tuple[Assumption, ...]:
    return tuple(dict.fromkeys(conditions))


def _table(those: tuple[Theorem, ...]) -> Table:
    return Table(
        "Theorems on what training chooses",
        ("theorem", "applies", "because", "source"),
        tuple(
            (
                theorem.name,
                "as far as can be checked" if theorem.applies else "no",
                "nothing is violated" if theorem.applies else theorem.obstacle,
                theorem.source,
            )
            for theorem in those
        ),
    )
