"""The steps of the search: fits, tables, rounding to exact matrices, and what counts as evidence."""

import numpy as np
import pytest
from scipy.linalg import orthogonal_procrustes
from scipy.stats import binom

from pindown.symmetry import dihedral, symmetric
from pindown.symmetry.discovery._orbits import noise_level, orbits_by_norm, pairs_of
from pindown.symmetry.discovery._orthogonal_maps import (
    NotClosedError,
    effect,
    exact_representation,
    procrustes,
    residual_limit,
    residuals,
    table_of,
)
from pindown.symmetry.discovery._relations import _chance_support, find_maps
from pindown.symmetry.discovery.group_from_gramian import group_recovery, learn_orbit
from pindown.symmetry.discovery.held_out import _objection, closure, hard_negatives, judge
from tests.symmetry.discovery.samples import GROUPS, orbits_of, rotation


def test_procrustes_equals_scipy():
    rng = np.random.default_rng(0)
    x, y = rng.standard_normal((2, 10, 4))
    assert pytest.approx(orthogonal_procrustes(x, y)[0]) == procrustes(x, y).T


def test_residual_limit_is_exceeded_by_noise_as_often_as_said():
    rng = np.random.default_rng(0)
    gaps = np.linalg.norm(
        0.3 * (rng.standard_normal((200_000, 5)) - rng.standard_normal((200_000, 5))), axis=1
    )
    assert (gaps > residual_limit(0.3, 5)).mean() == pytest.approx(1e-3, rel=0.4)


def test_noise_is_read_off_norms():
    rng = np.random.default_rng(1)
    pairs = pairs_of(list(orbits_of(GROUPS["D6"], 400, rng, 2, noise=0.05)), rng)
    assert noise_level(pairs) == pytest.approx(0.05, rel=0.15)


def test_norms_tell_orbits_apart():
    rng = np.random.default_rng(2)
    orbits = orbits_of(GROUPS["T"], 10, rng)
    found = orbits_by_norm(rng.permutation(orbits.reshape(-1, 6)))
    assert sorted(map(len, found)) == [12] * 10


def test_maps_between_members_are_the_elements():
    rng = np.random.default_rng(3)
    pairs = pairs_of(list(orbits_of(GROUPS["D6"], 200, rng, 2)), rng)
    maps = find_maps(pairs, 1e-6, rng, most=50)
    assert len(maps.matrices) == 12 and maps.explained.all()
    gaps = np.abs(np.array(maps.matrices)[:, None] - GROUPS["D6"]).max(axis=(2, 3))
    assert gaps.min(axis=1).max() < 1e-9 and gaps.min(axis=0).max() < 1e-9


@pytest.mark.parametrize("group", [dihedral(5).permuting(), symmetric(4).permuting()])
def test_blurred_elements_are_rounded_to_a_representation(group):
    rng = np.random.default_rng(4)
    blurred = group.matrices + 0.02 * rng.standard_normal(group.matrices.shape)
    blurred[0] = np.eye(group.degree)
    table = table_of(blurred, np.eye(group.degree), 0.5)
    assert (table == group.table).all()
    exact = exact_representation(blurred, table)
    assert np.abs(exact[:, None] @ exact[None] - exact[table]).max() < 1e-10
    # averaging over the group leaves less error than there was
    assert np.abs(exact - group.matrices).mean() < np.abs(blurred - group.matrices).mean()


def test_sets_that_are_no_group_have_no_table():
    rng = np.random.default_rng(5)
    maps = np.array([np.eye(4), *(rotation(4, rng) for _ in range(3))])
    with pytest.raises(NotClosedError, match="is none of the 4 maps"):
        table_of(maps, np.eye(4), 0.5)
    part = GROUPS["C6"][:4]
    with pytest.raises(NotClosedError):
        table_of(part, np.eye(6), 0.5)


def test_effect_is_the_mean_square_distance_between_images():
    rng = np.random.default_rng(6)
    X = rng.standard_normal((500, 3)) * [1.0, 2.0, 0.1]
    values, vectors = np.linalg.eigh(X.T @ X / len(X))
    root = vectors * np.sqrt(values)
    g, h = rotation(3, rng), rotation(3, rng)
    direct = np.sqrt((((X @ g.T) - (X @ h.T)) ** 2).sum(axis=1).mean())
    assert effect(g[None], h[None], root)[0, 0] == pytest.approx(direct)


def test_a_group_that_is_too_large_explains_hard_negatives_or_fails_elsewhere():
    rng = np.random.default_rng(7)
    held = list(orbits_of(GROUPS["C6"], 12, rng))
    right = judge(GROUPS["C6"], np.arange(36).reshape(6, 6), held, held, 1e-6, rng)
    assert right.claimed and right.coverage == 1.0 and right.false_coverage == 0.0
    everything = symmetric(6).permuting().matrices
    wrong = judge(everything, np.zeros((720, 720), dtype=np.int64), held, held, 1e-6, rng)
    assert wrong.coverage == 1.0 and not wrong.claimed  # all pairs explained, and still no claim
    assert wrong.closure < 0.1


def test_a_group_that_is_too_small_explains_too_few_pairs():
    rng = np.random.default_rng(8)
    held = list(orbits_of(GROUPS["D6"], 12, rng))
    verdict = judge(GROUPS["C6"], np.zeros((6, 6), dtype=np.int64), held, held, 1e-6, rng)
    assert not verdict.claimed and verdict.coverage == pytest.approx(5 / 11)


def test_hard_negatives_keep_the_norm_and_are_no_members():
    rng = np.random.default_rng(9)
    x, others = rng.standard_normal((2, 50, 6))
    negatives = hard_negatives(x, others, GROUPS["C6"], rng).reshape(3, 50, 6)
    usable = np.isfinite(negatives).all(axis=2)
    assert usable.mean() > 0.9
    norms = np.linalg.norm(negatives, axis=2)
    assert norms[usable] == pytest.approx(np.tile(np.linalg.norm(x, axis=1), (3, 1))[usable])
    images = np.einsum("gij,nj->gni", GROUPS["C6"], x)
    gaps = np.linalg.norm(negatives[:, None] - images, axis=3).min(axis=1)
    assert gaps[usable].min() > 1e-3


def test_the_gramian_route_reads_the_group_off_an_orbit():
    rng = np.random.default_rng(10)
    pairs = pairs_of(list(orbits_of(GROUPS["C6"], 100, rng, 2)), rng)
    W = (GROUPS["C6"] @ rng.standard_normal(6)).T
    maps = group_recovery(W + 1e-3 * rng.standard_normal(W.shape), pairs, 1e-6)
    assert len(maps.matrices) == 6 and maps.explained.all()  # 12 permutations keep the Gramian
    nothing = group_recovery(np.eye(6), pairs, 1e-6)
    assert len(nothing.matrices) in (1, 6)  # orthonormal atoms allow all 720; the pairs decide


def test_atoms_learn_to_agree_on_pairs():
    rng = np.random.default_rng(11)
    pairs = pairs_of(list(orbits_of(GROUPS["C6"][::3], 100, rng, 2)), rng)  # half turns
    best = learn_orbit(pairs, rng=rng, n_restarts=1, steps=100)[0]
    start = learn_orbit(pairs, rng=rng, n_restarts=1, steps=0)[0]
    assert best.loss < 0.3 * start.loss and best.W.shape == (6, 6)
    assert np.linalg.norm(best.W, axis=0) == pytest.approx(np.ones(6))


def test_orbits_of_many_members_give_few_pairs_without_listing_all():
    members = np.arange(200_000.0)[:, None]  # 2e10 pairs
    pairs = pairs_of([members, -members], np.random.default_rng(12), most=400)
    assert len(pairs) == 400 and (pairs.first != pairs.second).all()
    assert len(np.unique(np.sort(np.c_[pairs.first, pairs.second], axis=1), axis=0)) == 200


def test_averaging_over_the_group_is_the_mean_of_quotients():
    group = dihedral(4).permuting()
    rng = np.random.default_rng(13)
    blurred = group.matrices + 0.01 * rng.standard_normal(group.matrices.shape)
    exact = exact_representation(blurred, group.table)
    mean = [np.mean([exact[group.table[g, h]] @ exact[h].T for h in range(8)], axis=0) for g in range(8)]
    assert exact == pytest.approx(np.array(mean), abs=1e-12)  # a fixed point of the averaging
    assert exact == pytest.approx(group.matrices, abs=0.05)  # near where it began


def test_chance_support_is_what_random_maps_explain():
    rng = np.random.default_rng(14)
    pairs = pairs_of(list(orbits_of(GROUPS["C6"], 400, rng, 2)), rng)
    limit = 1.5  # wide enough to be met by chance
    met = [(residuals(rotation(6, rng), pairs) <= limit).mean() for _ in range(300)]
    expected = binom.ppf(1 - 1e-5, len(pairs), np.mean(met)) + 1
    assert _chance_support(pairs, limit, rng) == pytest.approx(expected, rel=0.15)


@pytest.mark.parametrize(
    "fact, value, words",
    [
        ("coverage", 0.89, "explain only"),
        ("false_coverage", 0.21, "hard negatives"),
        ("separation", 0.94, "hard negatives"),
        ("closure", 0.92, "not whole"),  # one of eight members is missing in most orbits
        ("evenness", 0.009, "unevenly"),
        ("chance", 2e-4, "exclude chance"),
    ],
)
def test_each_fact_alone_is_an_objection(fact, value, words):
    good = {"coverage": 0.91, "false_coverage": 0.19, "separation": 0.96, "closure": 0.94}
    good |= {"evenness": 0.011, "chance": 0.5e-4}
    assert _objection(good, 8) is None
    assert words in _objection(good | {fact: value}, 8)
    assert _objection(good | {"closure": 0.92}, 4) is None  # of four members few may be missing
    assert "only the identity" in _objection(good, 1)


def test_closure_is_the_share_of_images_that_are_members():
    x, y = np.random.default_rng(1).standard_normal((2, 3))
    signs = np.array([np.eye(3), -np.eye(3)])
    assert closure(signs, [np.array([x, -x]), np.array([x, y])], 1e-6) == pytest.approx(0.75)
    shifts = GROUPS["C6"]
    whole = shifts @ np.arange(6.0) ** 2
    assert closure(shifts, [whole, whole[:5], whole[:2]], 1e-6) == pytest.approx((1 + 5 / 6) / 2)
