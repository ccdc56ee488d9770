"""Orbits to learn from, and data that look like orbits and are none."""

import numpy as np

from pindown.symmetry import cyclic, dihedral, pyritohedral, tetrahedral


def on_the_octahedron(group):
    """Return a group of three dimensions as permutation matrices of the corners of the octahedron."""
    corners = np.vstack([np.eye(3), -np.eye(3)])
    matrices = np.zeros((group.order, 6, 6))
    for number, matrix in enumerate(group.matrices):
        images = np.argmin(((corners @ matrix.T)[:, None] - corners) ** 2 @ np.ones(3), axis=1)
        matrices[number, images, np.arange(6)] = 1.0
    return matrices


GROUPS = {
    "C6": cyclic(6).permuting().matrices,
    "D6": dihedral(6).permuting().matrices,
    "T": on_the_octahedron(tetrahedral()),
    "Th": on_the_octahedron(pyritohedral()),
}


def orbits_of(matrices, n, rng, members=None, noise=0.0):
    """Return orbits (n, members, d) of normal vectors, members in random order."""
    found = []
    for x in rng.standard_normal((n, matrices.shape[1])):
        chosen = rng.permutation(len(matrices))[:members]
        found.append(matrices[chosen] @ x)
    moved = np.array(found)
    return moved + noise * rng.standard_normal(moved.shape)


def rotation(d, rng):
    return np.linalg.qr(rng.standard_normal((d, d)))[0]


def triangle_beside_square():
    """Return seven vectors whose Gramian has columns of equal entries; no group moves them all."""
    adjacency = np.zeros((7, 7))
    for cycle in ([0, 1, 2], [3, 4, 5, 6]):
        for one, two in zip(cycle, cycle[1:] + cycle[:1], strict=True):
            adjacency[one, two] = adjacency[two, one] = 1.0
    return np.linalg.cholesky(2.5 * np.eye(7) + adjacency).T  # columns


def without_a_group(seed):
    """Yield a name, X and y of data sets that no group explains."""
    rng = np.random.default_rng([seed, 2024])
    d, hexagon, T = 6, GROUPS["C6"], GROUPS["T"]
    yield "unrelated orbits", rng.standard_normal((30, 6, d)), None
    unit = rng.standard_normal((100, 6, d))
    yield "unrelated, unit norm", unit / np.linalg.norm(unit, axis=2, keepdims=True), None
    X = rng.standard_normal((250, d))
    yield "a fresh map for every pair", X, np.array([rotation(d, rng) @ x for x in X])
    for n_maps in (1, 4):
        maps = [rotation(d, rng) for _ in range(n_maps)]
        yield f"{n_maps} maps, pairs", X, np.array([maps[rng.integers(n_maps)] @ x for x in X])
        yield f"{n_maps} maps, orbits", np.array([[x, *(m @ x for m in maps)] for x in X[:25]]), None
    windows = ((hexagon, [0, 1, 2, 3]), (hexagon, [1, 2, 3]), (hexagon, range(5)), (T, range(11)))
    for matrices, part in windows:
        some = matrices[list(part)]
        yield "part of an orbit", np.einsum("gij,nj->ngi", some, X[:30]), None
        yield "pairs by a part", X, np.array([some[rng.integers(len(some))] @ x for x in X])
    W = triangle_beside_square()
    yield "triangle beside square", np.array([W.T * rng.uniform(0.5, 2) for _ in range(30)]), None
    yield "the same, turned", np.array([W.T @ rotation(7, rng) for _ in range(30)]), None
    yield "no labels", rng.standard_normal((200, d)), None
    yield "signs", rng.choice([-1.0, 1.0], (40, 5, d)), None
    yield "drowned in noise", orbits_of(hexagon, 30, rng, noise=0.7), None
    mixed = np.concatenate(orbits_of(hexagon, 30, rng))
    yield "shuffled labels", mixed, rng.permutation(np.repeat(np.arange(30), 6))
    turned = orbits_of(hexagon, 15, rng) @ rotation(d, rng)
    yield "two groups", np.concatenate([orbits_of(hexagon, 15, rng), turned]), None
    angle = 2 * np.pi * rng.random((60, 8))
    circle = np.stack([np.cos(angle), np.sin(angle)], axis=2)
    yield "all rotations of the plane", circle * rng.uniform(1, 2, (60, 1, 1)), None
