"""Motions, sets and graphs: composition laws, and what is left unchanged."""

import itertools

import numpy as np
import pytest

from pindown.symmetry.actions import (
    Transformations,
    act_images,
    act_points,
    graph_permutations,
    pack_graphs,
    planar_rotations,
    se2,
    set_permutations,
    set_shuffles,
    unpack_graphs,
)


def test_motions_compose_invert_and_keep_distances():
    rng = np.random.default_rng(0)
    P = rng.standard_normal((5, 2))
    (a, b), distances = rng.standard_normal((2, 3)), np.linalg.norm(P[:, None] - P, axis=2)
    assert np.allclose(act_points(se2(*a) @ se2(*b), P), act_points(se2(*a), act_points(se2(*b), P)))
    assert np.linalg.det(se2(*a)) == pytest.approx(1.0)
    moved = act_points(se2(*a), P)
    assert np.allclose(np.linalg.norm(moved[:, None] - moved, axis=2), distances)
    assert np.allclose(act_points(np.linalg.inv(se2(*a)), moved), P)
    assert np.allclose(se2(a[0]) @ se2(b[0]), se2(a[0] + b[0]))


def test_printed_matrix_of_a_motion_is_no_rotation():
    """With +sin in both places the determinant is cos 2 theta and lengths change."""
    theta = 0.4
    c, s = np.cos(theta), np.sin(theta)
    printed, ours = np.array([[c, s], [s, c]]), se2(theta)[:2, :2]
    assert np.linalg.det(printed) == pytest.approx(np.cos(2 * theta)) and np.linalg.det(printed) < 0.9
    assert np.abs(printed @ printed - np.array([[np.cos(0.8), np.sin(0.8)]] * 2)).max() > 0.1
    assert np.abs(printed.T @ printed - np.eye(2)).max() > 0.5
    assert np.allclose(ours.T @ ours, np.eye(2)) and np.linalg.det(ours) == pytest.approx(1.0)


def test_images_move_as_their_points_do():
    image = np.zeros((1, 9, 9))
    image[0, 4 - 2, 4 + 3] = 1.0  # x = 3, y = 2 from the centre
    motion = se2(np.pi / 2, 1.0, -1.0)
    (x, y) = act_points(motion, [3.0, 2.0]).round()
    moved = act_images(motion, image)
    assert moved[0, int(4 - y), int(4 + x)] == pytest.approx(1.0) and moved.sum() == pytest.approx(1.0)


def test_planar_rotations_turn_points():
    group = planar_rotations(7).verify()
    x = np.array([[2.0, -1.0]])
    assert np.allclose(np.linalg.norm(group.orbit(x[0]), axis=1), np.sqrt(5))
    assert np.allclose(group.act(3, x), act_points(se2(6 * np.pi / 7), x))
    z = (2 - 1j) * np.exp(6j * np.pi / 7)  # against the clock
    assert np.allclose(group.act(3, x), [[z.real, z.imag]])


@pytest.mark.parametrize("kind", ["set", "graph"])
def test_renumbering_is_an_action(kind):
    rng = np.random.default_rng(0)
    if kind == "set":
        group, X = set_permutations(4), rng.standard_normal((2, 4, 3))
    else:
        group = graph_permutations(4)
        X = pack_graphs(rng.standard_normal((2, 4, 4)), rng.standard_normal((2, 4, 3)))
    for i, j in itertools.product(range(24), repeat=2):
        assert np.array_equal(group.act(i, group.act(j, X)), group.act(int(group.table[i, j]), X))


def test_graphs_keep_their_spectrum_and_their_edges_follow_the_nodes():
    rng = np.random.default_rng(1)
    A, F = rng.standard_normal((1, 5, 5)), rng.standard_normal((1, 5, 2))
    group = graph_permutations(5)
    moved, features = unpack_graphs(group.act(77, pack_graphs(A, F)))
    order = group.points[77]
    assert all(moved[0, order[i], order[j]] == A[0, i, j] for i in range(5) for j in range(5))
    assert all((features[0, order[i]] == F[0, i]).all() for i in range(5))


def test_shuffles_move_members_and_the_first_is_a_swap():
    X = np.arange(20.0).reshape(1, 10, 2)
    shuffles = set_shuffles(10, 4, seed=2)
    assert shuffles.act(0, X)[0, :3].tolist() == [[2.0, 3.0], [0.0, 1.0], [4.0, 5.0]]
    assert np.array_equal(np.sort(shuffles.act(3, X), axis=1), X)


@pytest.mark.parametrize(
    ("call", "message"),
    [
        (lambda: se2(np.inf), "finite"),
        (lambda: act_points(np.eye(2), [[0.0, 0.0]]), "last row"),
        (lambda: act_points(np.eye(3), [[0.0, 0.0, 1.0]]), "two coordinates"),
        (lambda: set_permutations(3).act(1, np.zeros((2, 4, 1))), "sets of 3 members"),
        (lambda: set_shuffles(1), "at least two members"),
        (lambda: graph_permutations(3).act(1, np.zeros((2, 4, 5))), "3 nodes"),
        (lambda: pack_graphs(np.zeros((2, 3, 4)), np.zeros((2, 3, 1))), "graphs are"),
        (lambda: unpack_graphs(np.zeros((3, 3))), "packed graphs"),
        (lambda: Transformations("none", (), ()), "at least one"),
    ],
)
def test_what_does_not_fit_is_refused(call, message):
    with pytest.raises(ValueError, match=message):
        call()


def test_no_shuffle_leaves_everything_in_place():
    for m in (2, 3):
        X = np.arange(float(m))[None]
        shuffles = set_shuffles(m, 20, seed=0)
        assert all((shuffles.act(i, X) != X).any() for i in range(shuffles.order))
