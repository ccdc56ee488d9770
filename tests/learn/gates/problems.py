"""Random gates and inputs from distributions with a finite fourth moment."""

import numpy as np


def gaussian(rng, n, d):
    return rng.standard_normal((n, d))


def shifted(rng, n, d):
    return rng.standard_normal((n, d)) + 0.5


def student(rng, n, d):
    return rng.standard_t(6, (n, d))


def exponential(rng, n, d):
    return rng.exponential(1.0, (n, d)) - 0.7


DISTRIBUTIONS = [gaussian, shifted, student, exponential]


def relu_problem(distribution, seed, n=300, d=4):
    """Inputs, labels and the weights of the gate that gave them."""
    rng = np.random.default_rng(seed)
    X, w = distribution(rng, n, d), rng.standard_normal(d)
    return X, np.maximum(X @ w, 0), w
