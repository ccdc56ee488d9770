"""How often the network will be wrong on new examples, with a stated confidence."""

from __future__ import annotations

import numpy as np

from pindown.evidence import Assumption
from pindown.findings.finding import Entry, Finding, Quantity, Table
from pindown.findings.pictures import Mark, Scale, drawable
from pindown.findings.question_budget import NotApplicable
from pindown.findings.questions import question
from pindown.findings.samples import Sample, margins
from pindown.findings.subject import Subject
from pindown.findings.tuning import (
    BEST_COPY_SECONDS_PER_WEIGHT,
    BOUND_SECONDS,
    BOUND_SECONDS_PER_OPERATION,
    BOUND_SECONDS_PER_WEIGHT,
    DELTA,
    MAX_ROWS_PER_NOISY_NETWORK,
    NOISY_NETWORKS,
)
from pindown.findings.wording import at_most, count, number_text, percent

_COPIES = {
    "given": "as given",
    "layers": "layers of equal spectral norm",
    "scaled": "layers scaled for the least divergence",
    "units": "units balanced, then layers scaled",
}


@question(
    "BND-01",
    "Error on new examples",
    group="how far",
    needs=("labels",),
    about="An upper bound on the error rate from rows that were not used for training, exact for the "
    "binomial distribution, with confidence 95%.",
    cost=(0.05, 0),
    place=3,
)
def held_out_error(subject: Subject) -> Finding:
    """Bound the risk from labelled test data."""
    from pindown.guarantees.bounds.pac_bayes import held_out_bound

    sample, observed, targets = subject.judged()
    if not targets.is_classification:
        raise NotApplicable("the targets are real values and errors have no upper limit")
    won = margins(observed.outputs, targets) > 0
    bound = held_out_bound(int((~won).sum()), len(won), DELTA)
    share = bound.terms["observed error"]
    unseen = "rows were not used to train or choose the network"
    if sample is not subject.test:
        unseen += " (not said; if they were, the bound is too hopeful)"
    return Finding(
        verdict=f"at most {at_most(bound.value)} with confidence 95% ({percent(share)} wrong on "
        f"{observed.seen} of the {sample.name})",
        number=Quantity(bound.value, "probability", delta=DELTA, label="error rate", bound="upper"),
        hypotheses=(Assumption("rows are independent and like those to come"), Assumption(unseen)),
        reading="If the true error rate were higher, so few mistakes on these rows would happen in "
        "fewer than 5% of draws. Ties count as mistakes.",
        next=f"pindown certify {subject.file} --data {subject.data_file}",
        facts={"error_bound": bound.value},
        scale=f"With {count(len(won), 'row')} even a network without any mistake could not be promised "
        "less "
        f"than {at_most(held_out_bound(0, len(won), DELTA).value)}.",
        sentence=f"On new examples it is wrong on at most {at_most(100 * bound.value)}% (with "
        "confidence 95%)."
        if sample is subject.test and bound.value < 1.0
        else "",  # rows it was trained on would make this untrue, and 100% is no news
    )


@question(
    "BND-02",
    "Bounds from training data",
    group="how far",
    needs=("labels", "exact"),
    about="What generalisation theory promises from the training data alone: all bounds that apply, "
    "vacuous ones marked, with what they rest on.",
    cost=(2, 0),
)
def training_bounds(subject: Subject) -> Finding:
    """Collect bounds that use no test data."""
    from pindown.guarantees.bounds.table import bound_table

    data, y = _classified(subject, noisy=True)
    table = bound_table(subject.net, data.X, y, delta=DELTA, random_state=subject.seed)
    best = table.best
    rows = tuple(
        (b.name, b.formula_value, "vacuous" if b.vacuous else "", b.about, b.source)
        for b in table.bounds
    )
    verdict = (
        f"all {len(rows)} bounds are vacuous; the nearest, {best.name}, gives "
        f"{at_most(best.formula_value)}"
        if best.vacuous
        else f"{best.about} at most {at_most(best.value)} with confidence 95%, by {best.name}"
    )
    values = [(b.formula_value, b.name) for b in table.bounds]
    return Finding(
        verdict=verdict,
        number=Quantity(best.value, best.kind, delta=DELTA, label=best.about, bound="upper"),
        hypotheses=(
            *(Assumption(a.text, a.status) for a in best.assumptions),
            Assumption("the data given are those the network was trained on, or like them"),
        ),
        reading="Each row bounds the share of mistakes on new examples, of the network or of networks "
        "with a "
        "little noise on its weights. All rows hold together. A number of 1 or more says nothing: that "
        "is "
        "the usual state of such bounds for networks that were not trained to have a small one.",
        scale=f"The network is wrong on {percent(table.train_error)} of the data. A bound on the risk "
        "under weight noise is about other networks near it, which can be wrong more or less often.",
        table=Table("Bounds on the error rate", ("bound", "value", "", "about", "source"), rows),
        figure=Scale(
            "What the bounds give; 1 is certain without any theorem",
            tuple(Mark(value, name) for value, name in values),
            (0.0, 1.0),
            "bound on the error rate",
        )
        if len(values) > 1 and drawable(value for value, _ in values)
        else None,
    )


@question(
    "BND-03",
    "Bound of the best copy",
    group="how far",
    needs=("labels", "exact", "relus"),
    about="How much the spectral margin bound gains when units are rescaled without changing the "
    "function.",
    cost=(1, 0),
)
def best_copy(subject: Subject) -> Finding:
    """Compare the bound over copies of one function."""
    from pindown.guarantees.bounds.rescaled_weights import REPRESENTATIVES
    from pindown.guarantees.bounds.spectral import spectral_margin_bound

    data, y = _classified(subject, noisy=False)
    values = {
        name: spectral_margin_bound(
            subject.net, data.X, y, delta=DELTA, representative=name
        ).formula_value
        for name in REPRESENTATIVES
    }
    best = min(values, key=values.__getitem__)
    gain = 1.0 - values[best] / values["given"]
    rows: tuple[tuple[Entry, ...], ...] = tuple((_COPIES[name], value) for name, value in values.items())
    return Finding(
        verdict=f"{percent(gain)} smaller for the best copy than for the weights as given"
        if gain > 0
        else "the weights as given are the best of the copies tried",
        number=Quantity(values[best], "probability", delta=DELTA, label="smallest bound", bound="upper"),
        hypotheses=(
            Assumption("all copies compute the same function", "checked"),
            Assumption("examples are independent and like those to come"),
        ),
        reading="The bound is computed from weights, but it is about the function: scaling a unit up "
        "and "
        "what it feeds down changes the first and not the second, so the smallest over all copies "
        "counts. It bounds the expected risk of networks with small noise on these weights.",
        scale=f"As given it is {number_text(values['given'])}; 1 or more is vacuous.",
        table=Table("Spectral margin bound by copy", ("copy", "bound"), rows),
    )


def _classified(subject: Subject, *, noisy: bool) -> tuple[Sample, np.ndarray]:
    """Return data with classes, if they are and the time suffices."""
    data = subject.data
    if data is None or data.targets is None:
        raise NotApplicable("the data have no labels")
    if not data.targets.is_classification:
        raise NotApplicable("the targets are real values and these bounds are about mistakes")
    if len(data) < 2:
        raise NotApplicable("one example is too few")
    subject.require_moderate()
    size = sum(layer.weight.shape[0] * layer.weight.shape[1] for layer in subject.net.layers)
    sides = sum(min(layer.weight.shape) ** 2 * max(layer.weight.shape) for layer in subject.net.layers)
    tried = NOISY_NETWORKS * min(len(data), MAX_ROWS_PER_NOISY_NETWORK) if noisy else 0
    operations = size * (tried + len(data)) + 10 * sides
    own = BOUND_SECONDS_PER_WEIGHT if noisy else BEST_COPY_SECONDS_PER_WEIGHT
    subject.require(BOUND_SECONDS + own * size + BOUND_SECONDS_PER_OPERATION * operations)
    return data, np.asarray(data.targets.values)
