"""Kinks found from values alone, against the white box."""

from itertools import pairwise

import numpy as np
import pytest

from pindown import ReluNetwork
from pindown.geometry.slices.black_box_kinks import kinks_on_line
from pindown.geometry.slices.segment import along_segment


def random_net(rng, widths):
    return ReluNetwork.from_layers(
        [
            (rng.standard_normal((m, n)) / np.sqrt(n), rng.standard_normal(m) / 2)
            for n, m in pairwise(widths)
        ]
    )


def test_no_kink_is_missed_or_invented_on_sixty_lines():
    rng = np.random.default_rng(0)
    kinks = queries = 0
    for _ in range(60):
        net = random_net(rng, (5, 8, 6, 1))
        a, b = 2 * rng.standard_normal((2, 5))
        white = along_segment(net, a, b)
        truth = np.unique(white.t[white.visible])
        black = kinks_on_line(net, a, b)
        assert black.complete and len(black.t) == len(truth)
        np.testing.assert_allclose(black.t, truth, atol=1e-8)
        kinks, queries = kinks + len(truth), queries + black.n_queries
    assert kinks > 300 and queries < 80 * kinks


def test_jumps_are_the_changes_of_slope():
    net = random_net(np.random.default_rng(3), (3, 10, 2))
    a, b = [-2.0, -1.0, 0.0], [2.0, 1.5, 1.0]
    white, black = along_segment(net, a, b), kinks_on_line(net, a, b)
    np.testing.assert_allclose(black.jumps, np.diff(white.slopes, axis=0), atol=1e-6)


def test_a_bump_on_a_flat_function_is_seen():
    found = kinks_on_line(lambda X: np.maximum(0.05 - np.abs(X[:, 0] - 0.7), 0), [0.0], [1.0])
    np.testing.assert_allclose(found.t, [0.65, 0.7, 0.75], atol=1e-9)


@pytest.mark.parametrize("shift, scale", [(0, 1e-8), (0, 1e8), (1e3, 1)])
def test_size_and_offset_of_values_do_not_matter(shift, scale):
    found = kinks_on_line(lambda X: shift + scale * np.abs(X[:, 0] - 0.3), [0.0], [1.0])
    np.testing.assert_allclose(found.t, [0.3], atol=1e-8)


def test_straight_and_constant_functions_have_none():
    for f in (lambda X: 3 * X[:, 0] + 1, lambda X: np.zeros(len(X)), lambda X: X @ np.ones((2, 3))):
        assert kinks_on_line(f, [0.0, 0.0], [1.0, 2.0]).t.size == 0
    same_point = kinks_on_line(lambda X: np.abs(X[:, 0]), [0.0], [0.0])
    assert same_point.t.size == 0 and same_point.complete


def test_the_budget_ends_the_march():
    net = random_net(np.random.default_rng(1), (2, 20, 1))
    whole = kinks_on_line(net, [-3.0, 0.0], [3.0, 1.0])
    part = kinks_on_line(net, [-3.0, 0.0], [3.0, 1.0], max_queries=whole.n_queries // 2)
    assert whole.complete and not part.complete and part.n_queries == whole.n_queries // 2
    assert 0 < len(part.t) < len(whole.t)
    np.testing.assert_allclose(part.t, whole.t[: len(part.t)], atol=1e-8)
    assert "incomplete" in repr(part)
    assert kinks_on_line(net, [-3.0, 0.0], [3.0, 1.0], max_queries=1).t.size == 0


def test_only_values_are_asked_for():
    shapes = []

    def f(X):
        shapes.append(X.shape)
        return np.abs(X[:, 0] - 0.3)

    found = kinks_on_line(f, [0.0, 0.0], [1.0, 0.0])
    assert set(shapes) == {(1, 2)} and len(shapes) == found.n_queries


def test_bad_input_is_refused():
    f = np.abs
    with pytest.raises(ValueError, match="one shape"):
        kinks_on_line(f, [0.0], [1.0, 2.0])
    with pytest.raises(ValueError, match="finite"):
        kinks_on_line(f, [0.0], [np.inf])
    with pytest.raises(ValueError, match="resolution"):
        kinks_on_line(f, [0.0], [1.0], resolution=0)
    with pytest.raises(ValueError, match="stride"):
        kinks_on_line(f, [0.0], [1.0], stride=2)
    with pytest.raises(ValueError, match="noise"):
        kinks_on_line(f, [0.0], [1.0], noise=-1)
    with pytest.raises(ValueError, match="max_queries"):
        kinks_on_line(f, [0.0], [1.0], max_queries=0)
    with pytest.raises(ValueError, match="not finite at t = 0"):
        kinks_on_line(lambda X: X[:, 0] + np.nan, [0.0], [1.0])
