"""Orbits partition data, and the orbit-stabiliser theorem counts them."""

import numpy as np
import pytest

from pindown.symmetry import cyclic, dihedral, symmetric
from pindown.symmetry.constructions import octahedral, pyritohedral
from pindown.symmetry.orbits import (
    action_error,
    distinct_images,
    orbit_partition,
    same_orbit,
    stabiliser,
)


@pytest.mark.parametrize(
    ("group", "x"),
    [
        (cyclic(6), [1.0, 2, 3, 1, 2, 3]),
        (dihedral(6).permuting(), [1.0, 2, 1, 2, 1, 2]),
        (symmetric(4).permuting(), [1.0, 1, 2, 2]),
        (octahedral(), [1.0, 1, 0]),
        (pyritohedral(), [1.0, 2, 3]),
        (pyritohedral(), [0.0, 0, 0]),
    ],
    ids=lambda value: getattr(value, "name", None),
)
def test_orbit_times_stabiliser_is_the_order(group, x):
    fixed = stabiliser(group, x)
    assert len(distinct_images(group, x)) * len(fixed) == group.order
    # The stabiliser is a subgroup.
    assert {int(group.table[a, b]) for a in fixed for b in fixed} == set(fixed)


def test_being_in_one_orbit_is_an_equivalence():
    rng, group = np.random.default_rng(0), dihedral(5).permuting()
    x = rng.standard_normal(5)
    y, z = group.act(3, x), group.act(7, x)
    assert same_orbit(group, x, x) == 0
    for a, b in ((x, y), (y, x), (y, z)):
        found = same_orbit(group, a, b)
        assert found is not None and np.allclose(group.act(found, a), b)
    assert same_orbit(group, x, -x) is None


def test_partition_recovers_planted_orbits():
    rng, group = np.random.default_rng(1), octahedral()
    templates = rng.standard_normal((6, 3))
    owner = rng.integers(6, size=100)
    X = np.array([group.act(int(rng.integers(24)), templates[k]) for k in owner])
    found = orbit_partition(group, X)
    assert found.n_orbits == len(set(owner)) and "100 samples in 6 orbits of O" in str(found)
    assert all(len(set(owner[found.labels == label])) == 1 for label in range(found.n_orbits))


def test_what_is_no_action_is_measured():
    X = np.random.default_rng(2).standard_normal((3, 6))
    assert action_error(dihedral(6).permuting(), X) == 0.0
    anti = symmetric(3).permuting()
    wrong = anti.acting_by(
        lambda g, X: X @ anti.matrices[g]
    )  # the inverse: products come in wrong order
    assert action_error(wrong, X[:, :3]) > 0.1 and action_error(anti, X[:, :3]) == 0.0
    assert action_error(cyclic(1).acting_by(lambda g, X: 2 * X), X) > 0.1


def test_bad_samples_are_refused():
    with pytest.raises(ValueError, match="one shape"):
        same_orbit(cyclic(2), [1.0, 2.0], [1.0])
    with pytest.raises(ValueError, match="finite"):
        stabiliser(cyclic(2), [np.nan, 1.0])
    with pytest.raises(ValueError, match="finite samples"):
        orbit_partition(cyclic(2), np.zeros((0, 2)))
    with pytest.raises(ValueError, match="tol must be a number of at least 0"):
        stabiliser(cyclic(2), [1.0, 2.0], tol=-1)


def test_large_groups_sort_samples_by_blocks(monkeypatch):
    group = symmetric(5).permuting()
    X = np.random.default_rng(0).standard_normal((4, 5))
    X = np.concatenate([X, group.act(77, X)[::-1]])
    monkeypatch.setattr("pindown.symmetry.orbits.DISTANCES_AT_ONCE", 50)
    assert orbit_partition(group, X).labels.tolist() == [0, 1, 2, 3, 3, 2, 1, 0]
