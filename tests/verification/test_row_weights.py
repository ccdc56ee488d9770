"""Weighted sums of rows that must hold at once: true in rational numbers, and nearly the smallest."""

from fractions import Fraction

import numpy as np
import pytest
from scipy.optimize import linprog

from pindown.deadline import NEVER
from pindown.model.from_network import model_of_network
from pindown.verification.box_splitting import BoxSplitting, _Bounds
from pindown.verification.properties import UnsafeSet
from pindown.verification.row_weights import weighted_rows
from tests.verification.nets import random_network


def random_rows(rng, n, r, d, size):
    low = size * rng.uniform(-1, 1, (n, d))
    return (
        low,
        low + size * rng.random((n, d)),
        rng.standard_normal((n, r, d)),
        rng.standard_normal((n, r)),
    )


@pytest.mark.parametrize("size", [1e-8, 1.0, 1e8])
@pytest.mark.parametrize("r", [1, 2, 5])
def test_no_point_is_above_them_in_rational_numbers(r, size):
    """Of one row the bound is the largest value, so that rounding alone lies between them."""
    rng = np.random.default_rng(r)
    low, high, slope, offset = random_rows(rng, 60, r, 4, size)
    bounds, _ = weighted_rows(low, high, slope, offset)
    for i in range(60):
        points = [np.where(s > 0, high[i], low[i]) for s in slope[i]]
        for x in [*points, (low[i] + high[i]) / 2]:
            values = [
                sum(
                    (Fraction(float(a)) * Fraction(float(t)) for a, t in zip(s, x, strict=True)),
                    Fraction(float(b)),
                )
                for s, b in zip(slope[i], offset[i], strict=True)
            ]
            assert min(values) <= Fraction(float(bounds[i]))


def test_they_come_near_the_linear_program():
    """Of what the optimum gains over the best row alone, more than half, in nearly all cases."""
    rng = np.random.default_rng(3)
    low, high, slope, offset = random_rows(rng, 80, 4, 5, 1.0)
    bounds, weights = weighted_rows(low, high, slope, offset)
    assert (weights >= 0).all() and np.allclose(weights.sum(axis=1), 1.0)
    good = 0
    for i in range(80):
        matrix = np.column_stack([-slope[i], np.ones(4)])
        ends = [*zip(low[i], high[i], strict=True), (None, None)]
        best = -linprog([0] * 5 + [-1.0], matrix, offset[i], bounds=ends).fun
        alone = (np.maximum(slope[i] * low[i], slope[i] * high[i]).sum(axis=1) + offset[i]).min()
        assert bounds[i] >= best - 1e-9
        good += min(bounds[i], alone) <= best + 0.5 * (alone - best) + 1e-9
    assert good >= 72


def test_what_underflow_loses_is_counted():
    """Weights times the smallest float64 vanish, but not times a huge input."""
    slope = np.full((1, 2, 1), 5e-324)
    bounds, _ = weighted_rows(np.zeros((1, 1)), np.full((1, 1), 1e300), slope, np.zeros((1, 2)))
    assert Fraction(float(bounds[0])) >= Fraction(5e-324) * Fraction(1e300)


def test_what_leaves_float64_proves_nothing():
    slope, offset = np.array([[[1e308], [1e308]]]), np.array([[0.0, -np.inf]])
    bounds, _ = weighted_rows(np.full((1, 1), -1e3), np.full((1, 1), 1e3), slope, offset)
    assert bounds[0] == np.inf


def test_rows_that_hold_one_by_one_but_not_together_need_fewer_boxes(monkeypatch):
    """Two outputs near their medians bound a third one: none of the five rows shows that alone."""
    rng = np.random.default_rng(1)
    model = model_of_network(random_network(rng, [4, 10, 10, 3]))
    low, high = -np.ones(4), np.ones(4)
    y = model(rng.uniform(-1, 1, (100_000, 4)))
    middle, width = np.median(y, axis=0), 0.1 * y.std(axis=0)
    inside = (np.abs(y - middle)[:, :2] < width[:2]).all(axis=1)
    most = y[inside, 2].max() + 2 * width[2]
    assert y[:, 2].max() > most
    rows = np.concatenate([np.eye(3)[:2], -np.eye(3)])
    limits = np.concatenate([(middle + width)[:2], (width - middle)[:2], [-most]])

    def parts():
        search = BoxSplitting(model, [UnsafeSet(low, high, rows, limits)], _closely=0)
        while not search.done and search.n_parts < 20_000:
            search.round(NEVER)
        assert search.done
        return search.n_parts

    weighed = parts()
    monkeypatch.setattr(_Bounds, "weigh_rows", lambda *_: None)
    assert weighed < 0.6 * parts()


@pytest.mark.parametrize("closely", [0, 12])
def test_sets_that_samples_are_in_stay_open(closely):
    """Three sets of three rows on one box: the first is far off, few samples are in the others."""
    rng = np.random.default_rng(8)
    for _ in range(2):
        model = model_of_network(random_network(rng, [3, 8, 8, 3]))
        y = model(rng.uniform(-1, 1, (3000, 3)))
        rows = rng.standard_normal((3, 3, 3))
        worst = np.einsum("nk,srk->nsr", y, rows).max(axis=2)
        limits = np.quantile(worst, 0.01, axis=0) - [2 * np.ptp(worst), 0.0, 0.0]
        sets = [
            UnsafeSet(-np.ones(3), np.ones(3), r, np.full(3, t))
            for r, t in zip(rows, limits, strict=True)
        ]
        search = BoxSplitting(model, sets, _closely=closely)
        for _ in range(8):
            search.round(NEVER)
        assert search.open_sets == {1, 2}
