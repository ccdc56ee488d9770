"""Sums and compositions: the functions and the sizes the theory counts, also in rationals."""

from fractions import Fraction
from itertools import pairwise

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from pindown import ReluNetwork
from pindown.calculus import compose, direct_sum, linear_combination, pad_depth, stack
from tests.test_network import random_network

hidden = st.lists(st.integers(1, 5), max_size=4)
seeds = st.integers(0, 999)


def integer_network(widths, seed):
    rng = np.random.default_rng(seed)
    return ReluNetwork.from_layers(
        [(rng.integers(-3, 4, (o, i)), rng.integers(-3, 4, o)) for i, o in pairwise(widths)]
    )


@given(hidden, hidden, seeds)
def test_composition_is_exact_and_sizes_add(inner_hidden, outer_hidden, seed):
    f = integer_network([2, *inner_hidden, 3], seed)
    g = integer_network([3, *outer_hidden, 2], seed + 1)
    h = g @ f
    assert h.depth == f.depth + g.depth - 1
    assert h.size == f.size + g.size
    x = [Fraction(7, 3), Fraction(-5, 11)]
    assert h.as_fractions()(x) == g.as_fractions()(f.as_fractions()(x))


@given(hidden, hidden, seeds)
def test_combinations_are_exact_and_padding_is_counted(one, two, seed):
    f, g = integer_network([2, *one, 3], seed), integer_network([2, *two, 3], seed + 1)
    h = linear_combination([2.0, -3.0], [f, g])
    assert h.size == f.size + g.size + 2 * 3 * abs(f.depth - g.depth)
    x = [Fraction(7, 3), Fraction(-5, 11)]
    fx, gx = f.as_fractions()(x), g.as_fractions()(x)
    assert h.as_fractions()(x) == [2 * a - 3 * b for a, b in zip(fx, gx, strict=True)]
    assert (f - g).as_fractions()(x) == [a - b for a, b in zip(fx, gx, strict=True)]
    assert (f + -f).as_fractions()(x) == [0, 0, 0]
    assert stack([f, g]).as_fractions()(x) == [*fx, *gx]
    assert direct_sum([f, g]).as_fractions()([*x, *x]) == [*fx, *gx]


def test_padding_keeps_the_function():
    net = random_network((3, 4, 2))
    X = np.random.default_rng(0).normal(size=(50, 3))
    deep = pad_depth(net, 6)
    assert deep.hidden_widths == (4, 4, 4, 4, 4)
    np.testing.assert_allclose(deep(X), net(X), atol=1e-12)
    assert pad_depth(net, 2) is net


def test_sparse_and_dense_parts_mix():
    wide = random_network((300, 400, 300), sparse=True)
    net = wide - random_network((300, 5, 300))
    X = np.random.default_rng(0).normal(size=(4, 300))
    np.testing.assert_allclose(net(X), wide(X) - random_network((300, 5, 300))(X), atol=1e-10)
    np.testing.assert_allclose((wide - wide)(X), 0, atol=1e-10)


def test_misfits_are_refused():
    f, g = random_network((2, 3)), random_network((2, 2))
    with pytest.raises(ValueError, match="takes 2, the inner gives 3"):
        compose(g, f)
    with pytest.raises(ValueError, match="equal output sizes"):
        f + g
    with pytest.raises(ValueError, match="equal input sizes"):
        stack([f, random_network((3, 3))])
    with pytest.raises(ValueError, match="2 coefficients for 1"):
        linear_combination([1.0, 2.0], [f])
    with pytest.raises(ValueError, match="down to 0"):
        pad_depth(f, 0)
    with pytest.raises(ValueError, match="at least one"):
        stack([])
