"""What the source says about one input and is not so: the printed form fails, ours holds."""

from itertools import product

import numpy as np
import pytest
from scipy.optimize import linprog, nnls

from pindown.learn.segmented._problem import solve
from pindown.learn.segmented.convex_programs import crossing_constraints, enumerate_programs, programs
from pindown.learn.segmented.losses import Loss

# A set on which all five classes differ; also used with the last point moved.
X = np.array([-2.0, -1.0, 0.0, 1.0, 2.0, 3.0])


def largest_change_of_slope(G):
    """Largest slope change of two lines with bounded coefficients that satisfy G z >= 0."""
    change = np.array([-1.0, 0.0, 1.0, 0.0])
    return max(
        -linprog(sign * change, A_ub=-G, b_ub=np.zeros(3), bounds=[(-10, 10)] * 4).fun
        for sign in (-1, 1)
    )


@pytest.mark.parametrize("sign", [-1, 1])
def test_printed_inequalities_force_one_line(sign):
    x = np.array([0.0, 1.0, 2.5])
    for gap in range(2):
        G = crossing_constraints(x, [gap], [sign])
        printed = G * np.array([-1.0, -1.0, 1.0])[:, None]  # the first two are reversed in print
        assert largest_change_of_slope(printed) == pytest.approx(0.0, abs=1e-9)
        assert largest_change_of_slope(G) == pytest.approx(20.0)


def test_printed_program_misses_the_absolute_value():
    y = np.abs(X)
    line = enumerate_programs(X, y, 1)
    assert line > 1
    assert enumerate_programs(X, y, 2) == pytest.approx(0.0, abs=1e-9)


def least_squares_of_width(x, y, width, bias):
    """Train all networks sum_k s_k relu(a_k x + b_k) + c: one cone program per choice of active sets."""
    n = len(x)
    active = {tuple(np.arange(n) < k) for k in range(n + 1)} | {
        tuple(np.arange(n) >= k) for k in range(n + 1)
    }
    least = np.inf
    for sets in product(sorted(active), repeat=width):
        for signs in product((-1, 1), repeat=width):
            A = np.hstack(
                [
                    s * np.array(on)[:, None] * np.c_[x, np.ones(n)]
                    for on, s in zip(sets, signs, strict=True)
                ]
            )
            G = np.zeros((n * width, 2 * width))
            for k, on in enumerate(sets):
                G[n * k : n * k + n, 2 * k : 2 * k + 2] = (
                    np.where(on, 1, -1)[:, None] * np.c_[x, np.ones(n)]
                )
            if bias:
                A, G = np.c_[A, np.ones(n)], np.c_[G, np.zeros(len(G))]
            least = min(least, cone_least_squares(A, y, G))
    return least


def cone_least_squares(A, y, G):
    p = A.shape[1]
    Q, R = np.linalg.qr(np.vstack([A, 1e-6 * np.eye(p)]))
    target = Q.T @ np.r_[y, np.zeros(p)]
    H = np.linalg.solve(R.T, G.T)
    multipliers, _ = nnls(H, -target, maxiter=10_000)
    z = np.linalg.solve(R, target + H @ multipliers)
    return float(np.sum((A @ z - y) ** 2))


def pieces(x, y, n_pieces):
    return solve(x, y, np.ones(len(x)), n_pieces, Loss("squared")).loss


@pytest.mark.parametrize("seed", range(4))
def test_width_lies_between_two_numbers_of_pieces(seed):
    rng = np.random.default_rng(seed)
    x = np.sort(rng.normal(size=5))
    y = rng.normal(size=5)
    for width in (1, 2) if seed < 2 else (1,):
        network = least_squares_of_width(x, y, width, bias=True)
        assert pieces(x, y, width) >= network - 1e-7
        assert network >= pieces(x, y, width + 1) - 1e-7


def test_pieces_are_not_width_in_either_direction():
    x = X[:5]
    bent = np.maximum(x - 0.5, 0.0)  # one unit, two pieces
    assert least_squares_of_width(x, bent, 1, bias=False) == pytest.approx(0.0, abs=1e-9)
    assert pieces(x, bent, 1) > 0.1
    straight = 1.0 + x  # one piece; one unit without bias cannot make it
    assert pieces(x, straight, 1) == pytest.approx(0.0, abs=1e-12)
    assert least_squares_of_width(x, straight, 1, bias=False) > 0.1
    assert least_squares_of_width(x, straight, 1, bias=True) == pytest.approx(0.0, abs=1e-9)


def test_number_of_programs():
    from math import comb

    for n, w in ((5, 2), (6, 3), (4, 4)):
        count = sum(1 for _ in programs(n, w))
        assert count == comb(n + w - 3, w - 1) * 2 ** (w - 1)
        assert count != comb(n, w) * 2 ** (w - 1)  # as printed
