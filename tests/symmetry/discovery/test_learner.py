"""The learner: groups are recovered in every form of data, and none is claimed where there is none."""

import itertools
import warnings

import numpy as np
import pytest
from sklearn.base import clone
from sklearn.pipeline import make_pipeline
from sklearn.utils.estimator_checks import check_estimator

from pindown.symmetry import SymmetryLearner, cyclic, dihedral
from pindown.symmetry.discovery import isomorphism, orbit_closure_error
from tests.symmetry.discovery.samples import GROUPS, orbits_of, rotation, without_a_group


def same_maps(found, truth):
    """Return whether two sets of matrices are equal up to order."""
    gaps = np.abs(found[:, None] - truth[None]).max(axis=(2, 3))
    return len(found) == len(truth) and gaps.min(axis=1).max() < 1e-6 and gaps.min(axis=0).max() < 1e-6


@pytest.mark.parametrize("name", GROUPS)
@pytest.mark.parametrize("members", [None, 2])
def test_the_groups_of_the_lectures_are_recovered_exactly(name, members):
    rng = np.random.default_rng(0)
    X = orbits_of(GROUPS[name], 15 if members is None else 300, rng, members)
    learner = SymmetryLearner(random_state=0).fit(X)
    assert learner.claimed_, learner.reason_
    assert learner.group_.name == name and learner.score_ > 0.99
    assert same_maps(learner.matrices_, GROUPS[name])
    for g, row in zip(learner.matrices_, learner.table_, strict=True):
        assert g @ learner.matrices_ == pytest.approx(learner.matrices_[row], abs=1e-9)


def test_any_basis_labels_pairs_and_norms_tell_the_same_group():
    rng = np.random.default_rng(1)
    Q = rotation(6, rng)
    turned = Q @ GROUPS["D6"] @ Q.T
    orbits = orbits_of(turned, 20, rng)
    flat = orbits.reshape(-1, 6)
    shuffle = rng.permutation(len(flat))
    labels = np.repeat(np.arange(20), 12)
    pairs = orbits_of(turned, 300, rng, 2)
    for X, y in (
        (orbits, None),
        (flat[shuffle], labels[shuffle]),
        (flat[shuffle], None),  # members of an orbit share their norm
        (pairs[:, 0], pairs[:, 1]),
    ):
        learner = SymmetryLearner(random_state=0).fit(X, y)
        assert learner.claimed_ and same_maps(learner.matrices_, turned)


def test_noise_blurs_the_maps_but_not_the_table():
    rng = np.random.default_rng(2)
    X = orbits_of(GROUPS["C6"], 300, rng, 2, noise=0.03)
    learner = SymmetryLearner(random_state=0).fit(X)
    assert learner.claimed_ and isomorphism(learner.table_, cyclic(6).table) is not None
    gaps = np.abs(learner.matrices_[:, None] - GROUPS["C6"]).max(axis=(2, 3)).min(axis=1)
    assert gaps.max() < 0.03
    assert learner.evidence_.noise == pytest.approx(0.03, rel=0.2)


def test_data_in_a_subspace_leave_the_rest_alone():
    rng = np.random.default_rng(3)
    frame = np.linalg.qr(rng.standard_normal((9, 4)))[0]
    square = dihedral(4).permuting().matrices
    X = orbits_of(square, 20, rng) @ frame.T
    learner = SymmetryLearner(random_state=0).fit(X)
    assert learner.claimed_ and learner.group_.name == "D4"
    assert same_maps(learner.matrices_, np.eye(9) + frame @ (square - np.eye(4)) @ frame.T)
    assert orbit_closure_error(X[0].T, learner.group_) < 1e-9


def test_random_members_of_orbits_are_enough_if_one_says_so():
    rng = np.random.default_rng(4)
    X = orbits_of(GROUPS["T"], 60, rng, 5)
    strict = SymmetryLearner(random_state=0).fit(X)
    assert not strict.claimed_ and "not whole" in strict.reason_
    assert SymmetryLearner(complete=False, random_state=0).fit(X).group_.name == "T"


def test_no_group_is_claimed_where_there_is_none():
    quick = [case for case in without_a_group(0) if case[0] not in ("signs", "unrelated, unit norm")]
    for name, X, y in quick:
        learner = SymmetryLearner(n_restarts=1, random_state=0).fit(X, y)
        assert not learner.claimed_, name
        assert learner.group_ is None and learner.table_ is None and learner.reason_
        assert (learner.matrices_ == np.eye(learner.n_features_in_)).all()


@pytest.mark.slow
def test_no_false_claim_on_many_data_sets():
    claims = [
        (seed, name)
        for seed in range(3)
        for name, X, y in without_a_group(seed)
        if SymmetryLearner(random_state=seed).fit(X, y).claimed_
    ]
    assert claims == []


@pytest.mark.slow
@pytest.mark.parametrize("name", GROUPS)
@pytest.mark.parametrize("noise", [0.0, 0.02])
def test_recovery_rate(name, noise):
    right = 0
    for seed in range(20):
        rng = np.random.default_rng([seed, 7])
        members, n = (None, 15) if seed % 2 else (2, 300)
        X = orbits_of(GROUPS[name], n, rng, members, noise) @ rotation(6, rng)
        learner = SymmetryLearner(random_state=seed).fit(X)
        right += learner.claimed_ and learner.group_.name == name
    assert right >= 18


@pytest.mark.slow
def test_the_gramian_route_recovers_the_cyclic_group():
    right = 0
    for seed in range(3):
        X = orbits_of(GROUPS["C6"], 200, np.random.default_rng(seed), 2)
        learner = SymmetryLearner("gramian", n_restarts=6, budget=600, random_state=seed).fit(X)
        right += learner.claimed_ and learner.group_.name == "C6"
    assert right >= 2


def test_few_pairs_that_leave_an_element_out_are_no_group():
    strict, lenient = [], []
    for seed in range(4):
        X = np.random.default_rng([seed, 31]).standard_normal((40, 6))
        used = 1 + np.arange(40) % 4  # four of five rotations, ten times each: no odd count by itself
        Y = np.einsum("nij,nj->ni", GROUPS["C6"][used], X)
        strict.append(SymmetryLearner(random_state=seed).fit(X, Y))
        lenient.append(SymmetryLearner(complete=False, random_state=seed).fit(X, Y))
    assert not any(learner.claimed_ for learner in strict)
    names = [learner.group_.name for learner in lenient if learner.claimed_]
    assert len(names) >= 2 and set(names) == {"C6"}  # the maps were found; only their use was uneven


def turns(degrees, n):
    """Return powers of a map that turns three planes by an angle, its double and its triple."""
    found = np.zeros((n, 6, 6))
    for power, plane in itertools.product(range(n), range(3)):
        angle = np.deg2rad(degrees) * power * (plane + 1)
        c, s = np.cos(angle), np.sin(angle)
        found[power, 2 * plane : 2 * plane + 2, 2 * plane : 2 * plane + 2] = [[c, -s], [s, c]]
    return found


@pytest.mark.parametrize("degrees", [59.4, 59.8])
@pytest.mark.parametrize("noise", [0.0, 5e-4])
def test_turns_that_nearly_close_are_no_group(degrees, noise):
    rng = np.random.default_rng(32)
    orbits = orbits_of(turns(degrees, 6), 40, rng, noise=noise)
    for X in (orbits, orbits / np.linalg.norm(orbits, axis=2, keepdims=True)):
        assert not SymmetryLearner(random_state=0).fit(X).claimed_
    whole = orbits_of(turns(60.0, 6), 40, rng, noise=noise)
    for X in (whole, whole / np.linalg.norm(whole, axis=2, keepdims=True)):
        assert SymmetryLearner(random_state=0).fit(X).group_.name == "C6"


def test_samples_that_elements_leave_alone_have_smaller_orbits():
    rng = np.random.default_rng(33)
    half, third = GROUPS["C6"][[0, 3]].mean(axis=0), GROUPS["C6"][::2].mean(axis=0)
    X, labels = [], []
    for label, x in enumerate(rng.standard_normal((24, 6))):
        fixed, size = [(np.eye(6), 6), (half, 3), (third, 2)][label % 3]
        X.append(GROUPS["C6"][:size] @ fixed @ x)
        labels += [label] * size
    learner = SymmetryLearner(random_state=0).fit(np.concatenate(X), labels)
    assert learner.claimed_, learner.reason_
    assert same_maps(learner.matrices_, GROUPS["C6"])


def test_all_rotations_are_no_finite_group():
    rng = np.random.default_rng(34)
    angle = 2 * np.pi * rng.random((40, 8))
    circle = np.stack([np.cos(angle), np.sin(angle), np.ones_like(angle)], axis=2)
    learner = SymmetryLearner(max_order=20, n_restarts=1, random_state=0)
    assert not learner.fit(circle * rng.uniform(1, 2, (40, 1, 1))).claimed_
    assert not learner.fit(circle).claimed_


@pytest.mark.parametrize("unit", [1e-200, 1e200])
def test_the_unit_of_the_data_does_not_matter(unit):
    X = orbits_of(GROUPS["C6"], 15, np.random.default_rng(35), noise=0.01)
    learner = SymmetryLearner(random_state=0).fit(X * unit)
    assert learner.claimed_ and learner.group_.name == "C6"
    assert learner.evidence_.noise / unit == pytest.approx(0.01, rel=0.2)
    plain = orbits_of(GROUPS["C6"], 15, np.random.default_rng(36)).reshape(-1, 6)
    assert SymmetryLearner(random_state=0).fit(plain * unit).claimed_


def test_global_random_state_is_left_alone():
    before = np.random.get_state()[1].copy()
    SymmetryLearner(random_state=0).fit(orbits_of(GROUPS["C6"], 10, np.random.default_rng(37)))
    assert (np.random.get_state()[1] == before).all()


def test_too_few_pairs_are_said_to_be_too_few():
    rng = np.random.default_rng(5)
    few = SymmetryLearner(random_state=0).fit(orbits_of(GROUPS["C6"], 4, rng))
    assert not few.claimed_ and "6 are needed" in few.reason_
    assert not SymmetryLearner(random_state=0).fit(orbits_of(GROUPS["D6"], 20, rng, 2)).claimed_
    assert "order 60" not in str(few.evidence_) and "no group claimed" in str(few.evidence_)


def test_equal_members_zeros_and_one_sample_claim_nothing():
    rng = np.random.default_rng(6)
    for X in (
        np.repeat(rng.standard_normal((20, 1, 3)), 4, axis=1),
        np.zeros((20, 4, 3)),
        rng.standard_normal((1, 3)),
        rng.standard_normal((20, 1, 3)),
    ):
        learner = SymmetryLearner(random_state=0).fit(X)
        assert not learner.claimed_ and learner.transform(X.reshape(-1, 3)).shape[1] == 3


def test_signs_of_numbers_prove_nothing_and_of_vectors_a_group_of_two():
    x = np.random.default_rng(7).standard_normal((60, 2))
    alone = SymmetryLearner(random_state=0).fit(
        x[:, :1], -x[:, :1]
    )  # all numbers of one size are related
    assert not alone.claimed_ and "too few dimensions" in alone.reason_
    learner = SymmetryLearner(random_state=0).fit(x, -x)
    assert learner.group_.name == "C2"
    assert learner.matrices_ == pytest.approx(np.array([np.eye(2), -np.eye(2)]), abs=1e-12)


def test_transform_and_distance_see_orbits_only():
    rng = np.random.default_rng(8)
    learner = SymmetryLearner(random_state=0).fit(orbits_of(GROUPS["C6"], 15, rng))
    x = rng.standard_normal((5, 6))
    for g in GROUPS["C6"]:
        assert learner.transform(x @ g.T) == pytest.approx(learner.transform(x), abs=1e-9)
        assert learner.distance(x, x @ g.T).max() < 1e-9
    assert learner.distance(x, x[:, [1, 0, 2, 3, 4, 5]]).min() > 0.01
    assert learner.transform(x).shape == (5, 36) == (5, len(learner.get_feature_names_out()))
    with pytest.raises(ValueError, match="one shape"):
        learner.distance(x, x[:2])


def test_the_same_seed_gives_the_same_answer_and_clones_fit():
    X = orbits_of(GROUPS["C6"], 15, np.random.default_rng(9), noise=0.01)
    first = SymmetryLearner(random_state=3).fit(X)
    second = clone(first).fit(X)
    assert (first.matrices_ == second.matrices_).all() and str(first.evidence_) == str(second.evidence_)


def test_it_stands_in_a_pipeline():
    X = orbits_of(GROUPS["C6"], 15, np.random.default_rng(10)).reshape(-1, 6)
    labels = np.repeat(np.arange(15), 6)
    from sklearn.neighbors import KNeighborsClassifier

    model = make_pipeline(SymmetryLearner(random_state=0), KNeighborsClassifier(3))
    assert model.fit(X, labels).score(X, labels) == 1.0


def test_scikit_learn_checks():
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        check_estimator(SymmetryLearner())


def test_a_search_that_is_interrupted_or_late_claims_nothing(monkeypatch):
    X = orbits_of(GROUPS["C6"], 15, np.random.default_rng(11))
    late = SymmetryLearner(random_state=0, budget=1e-9).fit(X)
    assert not late.claimed_ and "time ran out" in late.reason_

    def interrupted(*_, **__):
        raise KeyboardInterrupt

    monkeypatch.setattr("pindown.symmetry.discovery._search.find_maps", interrupted)
    assert "interrupted" in SymmetryLearner(random_state=0).fit(X).reason_


@pytest.mark.parametrize(
    ("parameters", "message"),
    [
        ({"method": "magic"}, "method must be one of"),
        ({"max_order": 1}, "max_order must be"),
        ({"n_restarts": 0}, "n_restarts must be"),
        ({"n_atoms": 0}, "n_atoms must be"),
        ({"budget": 0}, "budget must be"),
    ],
)
def test_bad_parameters_are_refused(parameters, message):
    with pytest.raises(ValueError, match=message):
        SymmetryLearner(**parameters).fit(np.ones((4, 2)))


def test_bad_data_are_refused():
    X = np.ones((4, 3))
    with pytest.raises(ValueError, match="labels of orbits"):
        SymmetryLearner().fit(X, [1, 2])
    with pytest.raises(ValueError, match="leave y out"):
        SymmetryLearner().fit(np.ones((4, 2, 3)), [1, 1, 1, 1])
    with pytest.raises(ValueError, match="NaN"):
        SymmetryLearner().fit(np.full((4, 2, 3), np.nan))
    with pytest.raises(ValueError, match=r"shape \(3, 3\) for 4 samples"):
        SymmetryLearner().fit(X, X[:3])
    with pytest.raises(ValueError, match="2 labels of orbits are missing"):
        SymmetryLearner().fit(X, [1.0, np.nan, 1.0, np.nan])
    with pytest.raises(ValueError, match="0 feature"):
        SymmetryLearner().fit(np.ones((4, 2, 0)))
