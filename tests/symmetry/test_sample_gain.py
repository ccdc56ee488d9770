"""What a symmetry is worth in samples."""

import numpy as np
import pytest
from sklearn.kernel_ridge import KernelRidge

from pindown.symmetry import cyclic, dihedral, invariance_gain, invariant_kernel
from pindown.symmetry.sample_gain import InvarianceGain


def data(n=400, seed=0):
    X = np.random.default_rng(seed).standard_normal((n, 5))
    return X, np.sin(X + np.roll(X, 1, axis=1)).sum(axis=1)


def test_errors_are_those_of_scikit_learns_kernel_ridge():
    X, y = data(120)
    gain = invariance_gain(X, y, cyclic(5), [30, 60], alpha=1e-3, gamma=0.2)
    order = np.random.default_rng(0).permutation(120)
    for i, n in enumerate((30, 60)):
        train, test = order[:n], order[60:]
        mean = y[train].mean()
        for kernel, errors in (
            (invariant_kernel("rbf", cyclic(5), gamma=0.2), gain.invariant),
            ("rbf", gain.plain),
        ):
            model = KernelRidge(alpha=1e-3 * n, kernel=kernel, gamma=0.2).fit(X[train], y[train] - mean)
            expected = np.mean((model.predict(X[test]) + mean - y[test]) ** 2)
            assert errors[i] == pytest.approx(expected, rel=1e-6)


def test_the_symmetry_is_worth_more_than_twice_the_samples():
    X, y = data()
    gain = invariance_gain(X, y, cyclic(5), [20, 40, 80, 160], gamma=0.2)
    assert all(inv < plain for inv, plain in zip(gain.invariant, gain.plain, strict=True))
    assert gain.worth(20) > 2 and gain.worth(40) > 2
    assert "order 5" in str(gain) and gain.n_test == 240


def test_worth_reads_the_plain_curve_backwards():
    gain = InvarianceGain((10, 20, 40), (1.0, 0.5, 0.25), (0.5, 0.4, 0.01), 4, 100)
    assert gain.worth(10) == pytest.approx(2.0) and gain.worth(40) == np.inf
    assert 1.0 < gain.worth(20) < 2.0
    # Errors that rise again do not undo what fewer samples have reached: 0.55 lies between 10 and 20.
    bumpy = InvarianceGain((10, 20, 40, 80), (1.0, 0.5, 0.6, 0.25), (0.55, 0.5, 0.4, 0.3), 4, 100)
    assert bumpy.worth(10) == pytest.approx(2 / 1.1)
    with pytest.raises(ValueError, match="sizes tried"):
        gain.worth(15)


@pytest.mark.parametrize(
    ("change", "message"),
    [
        ({"ns": [500]}, "from 2 to"),
        ({"ns": []}, "from 2 to"),
        ({"ns": [1]}, "from 2 to"),
        ({"alpha": 0.0}, "alpha positive"),
        ({"y": np.ones(3)}, "as many targets"),
    ],
)
def test_bad_input_is_refused(change, message):
    X, y = data(50)
    arguments = {"X": X, "y": y, "group": cyclic(5), "ns": [10], **change}
    with pytest.raises(ValueError, match=message):
        invariance_gain(**arguments)


def test_missing_numbers_are_refused():
    X = np.random.default_rng(0).random((10, 3))
    with pytest.raises(ValueError, match="finite"):
        invariance_gain(X, np.full(10, np.nan), cyclic(3), [2, 5])


@pytest.mark.parametrize("group", [cyclic(8), dihedral(4)], ids=lambda group: group.name)
def test_eight_elements_are_worth_three_times_the_samples(group):
    """Errors at n with the group are at most those at 3n without, on the mean of a few draws."""
    plain, invariant = [], []
    for seed in range(3):
        X = np.random.default_rng(seed).standard_normal((800, 8))
        y = np.mean([np.sin(Z[:, 0] + Z[:, 1] * Z[:, 2]) for Z in map(group.act, range(8), [X] * 8)], 0)
        gain = invariance_gain(X, y, group, [50, 100, 150, 300], gamma=1 / 16)
        plain.append(gain.plain)
        invariant.append(gain.invariant)
    (_, _, more, most), (few, some, _, _) = np.mean(plain, axis=0), np.mean(invariant, axis=0)
    assert few <= more and some <= most
