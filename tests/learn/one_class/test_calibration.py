"""P-values of the detector: companions, files, and what happens where there are none."""

import warnings

import numpy as np
import pytest

from pindown.learn import LocalMaximaDetector
from pindown.learn.conformal import DriftWarning
from pindown.learn.one_class import _calibrating

QUICK = {"max_epochs": 3, "n_estimators": 1, "random_state": 0}


@pytest.mark.parametrize("method", ["split", "cross"])
def test_no_companion_knows_its_held_out_rows_and_files_keep_them(method, tmp_path, monkeypatch):
    seen = []
    learn = _calibrating.learned

    def spy(rows, *rest, **more):
        seen.append(rows)
        return learn(rows, *rest, **more)

    monkeypatch.setattr(_calibrating, "learned", spy)
    X = np.random.default_rng(0).normal(size=(90, 3))
    model = LocalMaximaDetector(calibration=method, **QUICK).fit(X)
    held_out = model.calibration_.held_out
    assert len(seen) == len(held_out.parts) == (1 if method == "split" else 5)
    for rows, part, scorer, scores in zip(
        seen, held_out.rows, model.calibration_.scorers, held_out.parts, strict=True
    ):
        known = {row.tobytes() for row in rows}
        assert len(known) == 90 - len(part) and not known & {X[i].tobytes() for i in part}
        np.testing.assert_allclose(scorer.scaling.centre, rows.mean(axis=0))
        np.testing.assert_array_equal(scorer.log_odds(X[part]), scores)
    new = np.random.default_rng(1).normal(size=(50, 3)) * 1.5
    by_hand = [
        1 + sum(s <= t for p, scorer in zip(held_out.parts, model.calibration_.scorers, strict=True)
                for t in scorer.log_odds(row[None]) for s in p)
        for row in new
    ]  # fmt: skip
    p = model.p_values(new)
    assert p.tolist() == [count / (held_out.n + 1) for count in by_hand]
    model.save(tmp_path / "m.safetensors")
    loaded = LocalMaximaDetector.load(tmp_path / "m.safetensors")
    assert loaded.p_values(new).tolist() == p.tolist()
    assert loaded.calibration_.held_out.kind == ("probability" if method == "split" else "estimate")
    rates = model.predict(new, false_alarms=0.1)
    assert rates.tolist() == np.where(p <= 0.1, -1, 1).tolist()


def test_a_calibration_changes_no_score():
    X = np.random.default_rng(0).normal(size=(60, 2))
    found = [
        LocalMaximaDetector(calibration=method, **QUICK).fit(X).score_samples(X)
        for method in (None, "split", "cross")
    ]
    np.testing.assert_array_equal(found[0], found[1])
    np.testing.assert_array_equal(found[0], found[2])


def test_false_alarms_come_at_the_rate_of_ranks():
    """A detector as cheap as can be, 150 draws: the rate of ranks within four standard errors."""
    rng, rates = np.random.default_rng(2), []
    for _ in range(150):
        X = rng.normal(size=(160, 2))
        model = LocalMaximaDetector(
            max_epochs=1, n_estimators=1, hidden=4, ingredients=["density", "negatives"], random_state=0
        ).fit(X[:80])
        rates.append(np.mean(model.p_values(X[80:]) <= 0.1))
    assert abs(np.mean(rates) - 4 / 41) <= 4 * np.std(rates) / np.sqrt(150)


def test_no_calibration_says_so_and_few_rows_make_every_p_value_one():
    X = np.random.default_rng(0).normal(size=(40, 2))
    for setting in ({"calibration": None}, {"preset": "paper"}):
        model = LocalMaximaDetector(**(QUICK | setting)).fit(X)
        assert model.calibration_ is None
        with pytest.raises(ValueError, match="without a calibration"):
            model.p_values(X)
    few = LocalMaximaDetector(**QUICK).fit(X[:3])
    assert few.p_values(X[:2] + 50).tolist() == [1.0, 1.0]
    with pytest.raises(ValueError, match="calibration must be one of"):
        LocalMaximaDetector(calibration="half").fit(X)


def test_rows_in_a_drifting_order_are_said():
    X = np.random.default_rng(0).normal(size=(200, 2))
    with warnings.catch_warnings():
        warnings.simplefilter("error", DriftWarning)
        LocalMaximaDetector(**QUICK).fit(X)
    with pytest.warns(DriftWarning, match="order of the rows"):
        LocalMaximaDetector(**QUICK).fit(X * np.geomspace(0.2, 3, 200)[:, None])


def test_more_rows_calibrate_anew():
    rng = np.random.default_rng(0)
    model = LocalMaximaDetector(**QUICK).fit(rng.normal(size=(40, 2)))
    model.partial_fit(rng.normal(size=(60, 2)))
    assert model.calibration_.held_out.n == 30
