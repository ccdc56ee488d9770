"""Which theorem about training speaks of this network, and what keeps the others from it."""

from __future__ import annotations

from dataclasses import dataclass

from pindown.findings.bias_setting import Setting, read_setting
from pindown.findings.finding import Finding, Hypothesis, Quantity, Table
from pindown.findings.registry import question
from pindown.findings.subject import Subject
from pindown.findings.wording import count

_FLOW = "trained by gradient descent with small steps on the logistic or another exponential loss, long"
# Inner products of a row with every other cost about this many seconds per multiply-add.
_SECONDS_PER_PRODUCT = 2e-9


@dataclass(frozen=True)
class Theorem:
    """A theorem, what it predicts and its conditions on this network."""

    name: str
    says: str
    source: str
    conditions: tuple[Hypothesis, ...]

    @property
    def applies(self) -> bool:
        """Whether no condition is known to be violated."""
        return all(condition.status != "violated" for condition in self.conditions)

    @property
    def obstacle(self) -> str:
        """The first violated condition, in words."""
        return next(c.text for c in self.conditions if c.status == "violated")


def _checked(holds: bool, yes: str, no: str) -> Hypothesis:
    return Hypothesis(yes, "checked") if holds else Hypothesis(no, "violated")


def theorems(subject: Subject, setting: Setting) -> tuple[Theorem, ...]:
    """Return the theorems on what training chooses, with their conditions checked on this network."""
    return subject.once(
        "theorems", lambda: (_linear(setting), _two_neurons(subject, setting), _homogeneous(setting))
    )


def _classified(setting: Setting) -> tuple[Hypothesis, ...]:
    if not setting.targets.is_classification:
        return (Hypothesis("the targets are values, not classes", "violated"),)
    wrong = f"{setting.n_wrong:,} of {count(setting.n, 'row')} {'is' if setting.n_wrong == 1 else 'are'}"
    how = "misclassified or tied" if setting.tied else "misclassified"
    return (
        _checked(
            setting.n_wrong == 0,
            "every row is classified correctly",
            f"{wrong} {how}, so that there is no margin",
        ),
    )


def _one_output(setting: Setting) -> Hypothesis:
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
            Hypothesis(_FLOW),
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
        subject.require(_SECONDS_PER_PRODUCT * len(rows) ** 2 * setting.X.shape[1])
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
    conditions.append(Hypothesis(_FLOW + ", from weights near zero"))
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
            Hypothesis(_FLOW),
        ),
    )


@question(
    "BIAS-01",
    "Theory that applies",
    group="why",
    needs=("labels",),
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


def _distinct(conditions: list[Hypothesis]) -> tuple[Hypothesis, ...]:
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
