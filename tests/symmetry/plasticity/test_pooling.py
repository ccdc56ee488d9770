"""Units that win in one sequence belong to one orbit: the pools are found, also in some noise."""

import numpy as np
import pytest
from sklearn.metrics import adjusted_rand_score

from pindown.symmetry import cyclic, dihedral
from pindown.symmetry.plasticity import learn_pools


def bank_of_orbits(group, orbits, rng):
    """A shuffled bank of whole orbits, and which orbit each unit is of."""
    templates = rng.standard_normal((orbits, group.degree))
    templates /= np.linalg.norm(templates, axis=1, keepdims=True)
    bank = np.concatenate([group.orbit(t) for t in templates])
    labels = np.repeat(np.arange(orbits), group.order)
    order = rng.permutation(len(bank))
    return bank[order], labels[order], templates


@pytest.mark.parametrize("group", [cyclic(8), dihedral(4)])
@pytest.mark.parametrize("seed", [0, 1])
def test_shuffled_orbits_are_found(group, seed):
    rng = np.random.default_rng(seed)
    bank, labels, templates = bank_of_orbits(group, 5, rng)
    shows = [group.orbit(t + 0.05 * rng.standard_normal(group.degree)) for t in templates]
    found = learn_pools(bank, shows)
    assert adjusted_rand_score(labels, found.labels) == 1.0
    assert len(found.pools) == 5 and found.ties == 0
    assert all(len(pool) == group.order for pool in found.pools)


def test_random_stimuli_win_whole_orbits():
    """Whatever is shown, the winners of a full sequence are one orbit of the bank."""
    group, rng = cyclic(7), np.random.default_rng(2)
    bank, labels, _ = bank_of_orbits(group, 4, rng)
    found = learn_pools(bank, [group.orbit(x) for x in rng.standard_normal((40, 7))])
    seen = found.labels >= 0
    assert adjusted_rand_score(labels[seen], found.labels[seen]) == 1.0
    assert all(len(pool) == group.order for pool in found.pools)


def test_noise_degrades_gracefully():
    group, scores = cyclic(8), {}
    for noise in (0.0, 0.1, 0.8):
        rng = np.random.default_rng(3)
        bank, labels, templates = bank_of_orbits(group, 5, rng)
        shows = [
            group.orbit(t) + noise * rng.standard_normal((8, 8)) for t in templates for _ in range(12)
        ]
        scores[noise] = adjusted_rand_score(labels, learn_pools(bank, shows).labels)
    assert scores[0.0] == 1.0 and scores[0.1] > 0.9
    assert scores[0.8] <= scores[0.1]


def test_stray_winners_do_not_merge_pools():
    group, rng = cyclic(6), np.random.default_rng(4)
    bank, labels, templates = bank_of_orbits(group, 3, rng)
    shows = [group.orbit(t) for t in templates for _ in range(10)]
    shows[0] = np.concatenate([shows[0], templates[1:2]])  # one frame of another orbit
    assert adjusted_rand_score(labels, learn_pools(bank, shows).labels) == 1.0
    # any common win links: then the stray frame merges two pools
    assert len(learn_pools(bank, shows, share=0.05).pools) == 2


def test_long_units_win_unless_normalised():
    group, rng = cyclic(5), np.random.default_rng(5)
    bank, labels, templates = bank_of_orbits(group, 3, rng)
    bank[labels == 0] *= 50
    shows = [group.orbit(t) for t in templates]
    assert adjusted_rand_score(labels, learn_pools(bank, shows).labels) == 1.0
    assert adjusted_rand_score(labels, learn_pools(bank, shows, normalise=False).labels) < 0.9


def test_stabilisers_make_ties_and_they_are_counted():
    group = cyclic(4)
    bank = group.orbit([1.0, 0.0, 1.0, 0.0])  # each unit twice
    found = learn_pools(bank, [group.orbit([2.0, 0.0, 1.0, 0.0])])
    assert found.ties == 4 and "4 ties" in str(found)


def test_bad_input_is_refused():
    with pytest.raises(ValueError, match="share"):
        learn_pools(np.eye(2), [np.eye(2)], share=0.0)
    with pytest.raises(ValueError, match="none"):
        learn_pools(np.eye(2), [])
    with pytest.raises(ValueError, match="zeros"):
        learn_pools(np.zeros((2, 2)), [np.eye(2)])
    with pytest.raises(ValueError, match="frames have 3"):
        learn_pools(np.eye(2), [np.eye(3)])
    assert learn_pools([[1.0, 0.0]], [np.eye(2)]).pools == ((0,),)


def test_a_unit_that_wins_rarely_joins_those_it_wins_with():
    often, both = [[1.0, 0.0]], [[1.0, 0.0], [0.0, 1.0]]
    assert learn_pools(np.eye(2), [often] * 8 + [both] * 2).pools == ((0, 1),)
    assert learn_pools(np.eye(2), [often] * 8 + [both] + [[[0.0, 1.0]]] * 2).pools == ((0,), (1,))
