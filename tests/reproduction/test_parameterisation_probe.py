"""Many flows at once are the flows one by one."""

import numpy as np

from pindown.bias.two_layer import balanced_neurons, train_two_layer
from pindown_reproduction.underspecification_thesis.parameterisation_probe import _X, _Y, flows


def test_many_flows_at_once_are_those_of_the_library():
    starts = [balanced_neurons(3, 2, scale=1e-2, random_state=seed) for seed in range(3)]
    W, a = flows(np.array([s.W for s in starts]), np.array([s.a for s in starts]), 300)
    for i, start in enumerate(starts):
        one = train_two_layer(_X, _Y, start=start, steps=300, record=1).network
        np.testing.assert_allclose(W[i], one.W, rtol=1e-9, atol=1e-12)
        np.testing.assert_allclose(a[i], one.a, rtol=1e-9, atol=1e-12)
