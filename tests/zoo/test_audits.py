"""Every model of the zoo gets a page: at least twelve answers, in time, and small."""

import time

import numpy as np
import pytest

from pindown import Model, audit
from tests.zoo.models import ZOO, inputs_of, module_of

BUDGET, SECONDS = 30.0, 34.0


def labelled(model, shape, n):
    """Return noise with the model's own answers as labels, a tenth of them changed; values if many."""
    X = inputs_of(shape, n)
    made = model(X)
    if model.out_features > 1000:  # a picture of answers
        return X, made
    wrong = np.random.default_rng(0).random(n) < 0.1
    return X, np.where(wrong, (made.argmax(axis=1) + 1) % model.out_features, made.argmax(axis=1))


def short_of_time(result):
    """Return the verdicts that say that time is short, and not of one step that it takes longer."""
    told = [finding.verdict for finding in result.findings if finding.status == "not run"]
    return [verdict for verdict in told if "s at least; of the budget" not in verdict]


@pytest.mark.slow
@pytest.mark.parametrize("name", ZOO)
def test_every_model_gets_a_page(name):
    entry = ZOO[name]
    model = Model.from_torch(module_of(name), input_shape=entry.shape)
    n = 10 if entry.large else 100
    X, y = labelled(model, entry.shape, 2 * n)
    start = time.monotonic()
    result = audit(model, X[:n], y[:n], test=(X[n:], y[n:]), budget=BUDGET, name=name)
    seconds = time.monotonic() - start
    answered = [finding.code for finding in result.findings if finding.answered]
    assert not result.failed and len(answered) >= 12, answered
    assert len(result.to_html().encode()) < 500_000
    assert seconds <= SECONDS, f"{seconds:.1f} s"
    assert result.seconds >= 0.8 * BUDGET or not short_of_time(result)
