"""Canonical pieces of pictures: uniqueness, levels against layers, and pictures drawn by hand."""

import numpy as np
import pytest

from pindown.box import Box
from pindown.geometry.folds.canonical_surface import canonical_surface, merge_segments
from pindown.geometry.folds.fold_set import fold_set
from tests.geometry.fold_nets import gaussian, symmetric_copy, transparent
from tests.geometry.oracles import KINDS, degenerate_network

SQUARE = Box.cube(2, -1, 1)


def picture(net, box=SQUARE):
    folds = fold_set(net, box)
    return folds, canonical_surface(folds.segments, box)


def layers_of(surface, folds, piece):
    """The layers of the folds that lie on a piece, whose carriers they share."""
    normal = surface.lines.normals[surface.carriers[piece]]
    offset = surface.lines.offsets[surface.carriers[piece]]
    along = np.array([-normal[1], normal[0]])
    low, high = np.sort((surface.ends[piece] - surface.lines.origin) @ along)
    position = (folds.centres - surface.lines.origin) @ along
    near = (
        np.abs((folds.segments - surface.lines.origin) @ normal - offset).max(axis=1)
        <= 10 * surface.lines.tolerance
    )
    return set(folds.layers[near & (position > low) & (position < high)].tolist())


def same_pieces(one, two, tol=1e-7):
    """Whether two surfaces consist of the same segments with the same levels."""
    if len(one) != len(two):
        return False

    def rows(surface):
        ends = np.array([sorted(pair.tolist()) for pair in surface.ends.round(7)]).reshape(-1, 4)
        table = np.column_stack([surface.levels, ends])
        return table[np.lexsort(table.T[::-1])]

    return bool(np.abs(rows(one) - rows(two)).max(initial=0) <= tol)


NETS = [(2, 4, 1), (2, 4, 5, 1), (2, 4, 4, 4, 1), (2, 3, 3, 3, 3, 1)]


@pytest.mark.parametrize("widths", NETS)
@pytest.mark.parametrize("seed", range(8))
def test_levels_never_exceed_layers(widths, seed):
    """Phuong 2021, Corollary A.1 and (A.63)."""
    folds, surface = picture(gaussian(np.random.default_rng(seed), widths))
    assert surface.order <= len(widths) - 2 and len(surface.rest) == 0
    for piece in range(len(surface)):
        owners = layers_of(surface, folds, piece)
        assert len(owners) == 1 and surface.levels[piece] <= min(owners)
    assert np.isclose(surface.lengths.sum(), folds.size)


@pytest.mark.parametrize("seed", range(4))
def test_visible_folds_of_transparent_networks(seed):
    """Phuong 2021, Lemma 2.2."""
    net = transparent(np.random.default_rng(seed), (2, 3, 3, 3, 1), SQUARE)
    folds = fold_set(net, SQUARE)
    seen = canonical_surface(folds.only(folds.visible).segments, SQUARE)
    assert seen.order <= 3 and len(seen.rest) == 0 and np.isclose(seen.lengths.sum(), folds.size)


@pytest.mark.parametrize("widths", NETS)
def test_pieces_are_their_own_canonical_form(widths):
    """Phuong 2021, Lemmas A.2 and A.6: the form is unique, and box_i box_j = box_min(i, j)."""
    _, surface = picture(gaussian(np.random.default_rng(1), widths))
    assert same_pieces(surface, canonical_surface(surface.ends, SQUARE))
    for level in range(1, surface.order + 1):
        part = canonical_surface(surface.up_to(level), SQUARE)
        assert part.order == level
        for below in range(1, surface.order + 1):
            expected = canonical_surface(surface.up_to(min(level, below)), SQUARE)
            assert same_pieces(canonical_surface(part.up_to(below), SQUARE), expected)


@pytest.mark.parametrize("seed", range(4))
def test_bound_in_the_union_lemma_is_a_minimum(seed):
    """Phuong 2021, Lemma A.1: the union has the larger order; (A.1) must stop at min{l - 1, k_2}."""
    rng = np.random.default_rng(seed)
    (_, one), (_, two) = picture(gaussian(rng, (2, 3, 1))), picture(gaussian(rng, (2, 3, 3, 1)))
    union = canonical_surface(np.concatenate([one.ends, two.ends]), SQUARE)
    assert union.order <= max(one.order, two.order) and len(union.rest) == 0
    # With max{l - 1, k_2} a line of level 1 would be cut by the pieces of level 2 of the other surface;
    # it is one piece.
    lines_of_first = {tuple(row) for row in one.ends[one.levels == 1].round(6).reshape(-1, 4).tolist()}
    across = {tuple(row) for row in union.ends[union.levels == 1].round(6).reshape(-1, 4).tolist()}
    flipped = {row[2:] + row[:2] for row in across}
    assert lines_of_first <= across | flipped


@pytest.mark.parametrize("seed", range(4))
def test_invariant_under_permutation_scaling_order_and_cuts(seed):
    rng = np.random.default_rng(seed)
    net = gaussian(rng, (2, 4, 4, 1))
    folds, surface = picture(net)
    assert same_pieces(surface, picture(symmetric_copy(net, rng))[1])
    a, b = folds.segments[:, 0], folds.segments[:, 1]
    share = rng.uniform(0.2, 0.8, (len(a), 1))
    middle = a + share * (b - a)
    pieces = np.concatenate([np.stack([middle, a], axis=1), np.stack([middle, b], axis=1)])
    assert same_pieces(surface, canonical_surface(pieces[rng.permutation(len(pieces))], SQUARE))


@pytest.mark.parametrize("kind", KINDS)
def test_networks_that_are_not_in_general_position(kind):
    """Phuong 2021, Corollary A.1 holds for every network."""
    for seed in range(3):
        folds, surface = picture(degenerate_network(kind, 2, np.random.default_rng(seed), (4, 4)))
        assert surface.order <= 2 and len(surface.rest) == 0
        owners = [layers_of(surface, folds, piece) for piece in range(len(surface))]
        assert all(o and level <= max(o) for o, level in zip(owners, surface.levels, strict=True))


def test_greedy_levels_can_be_below_the_layers():
    """Phuong 2021, Figure 2.3: a deep fold that crosses its cell straight gets a low level."""
    below = 0
    for seed in range(20):
        folds, surface = picture(gaussian(np.random.default_rng(seed), (2, 4, 4, 1)))
        owners = [min(layers_of(surface, folds, i)) for i in range(len(surface))]
        below += any(owner > level for owner, level in zip(owners, surface.levels, strict=True))
    assert below > 0


# ---------------------------------------------------------------- pictures drawn by hand


def test_a_broken_line_needs_a_line_to_break_at():
    wall, left, right = [[0, -1], [0, 1]], [[-1, -0.5], [0, 0]], [[0, 0], [1, 0.9]]
    surface = canonical_surface([wall, left, right], SQUARE)
    assert surface.levels.tolist() == [1, 2, 2] and surface.order == 2
    alone = canonical_surface([left, right], SQUARE)
    assert len(alone) == 0 and len(alone.rest) == 2 and "2 segments left over" in repr(alone)


def test_same_line_in_two_cells_is_two_pieces_of_one_carrier():
    wall = [[[0, -1], [0, 1]], [[0.5, -1], [0.5, 1]]]
    gap = [[[-1, 0], [0, 0]], [[0.5, 0], [1, 0]]]  # nothing between the walls
    surface = canonical_surface([*wall, *gap], SQUARE)
    assert surface.levels.tolist() == [1, 1, 2, 2]
    assert surface.carriers[2] == surface.carriers[3] and len(surface.lines) == 3


def test_lines_through_one_point_and_along_the_diagonal():
    star = [[[-1, -1], [1, 1]], [[-1, 1], [1, -1]], [[0, -1], [0, 1]], [[-1, 0], [1, 0]]]
    surface = canonical_surface(star, SQUARE)
    assert surface.levels.tolist() == [1, 1, 1, 1]
    halves = [[[x, y], [0, 0]] for x, y in [(1, 1), (-1, 1), (0, -1), (1, 0)]]
    assert len(canonical_surface(halves, SQUARE)) == 0


def test_merging_reads_segments_within_the_tolerance():
    cut = [[[-1, 0], [-0.3, 1e-11]], [[-0.3, 0], [0.2, -1e-11]], [[0.1, 0], [1, 0]]]
    lines = merge_segments(cut, SQUARE, 1e-8)
    assert len(lines) == 1 and len(lines.intervals) == 1
    apart = [[[-1, 0], [-0.3, 0]], [[-0.2, 0], [1, 0]]]
    assert merge_segments(apart, SQUARE, 1e-8).intervals.shape == (2, 2)
    parallel = [[[-1, 0], [1, 0]], [[-1, 1e-6], [1, 1e-6]]]
    assert (
        len(merge_segments(parallel, SQUARE, 1e-8)) == 2
        and len(merge_segments(parallel, SQUARE, 1e-5)) == 1
    )
    dust = [[[0, 0], [1e-12, 1e-12]]]
    assert len(merge_segments(dust, SQUARE, 1e-8)) == 0


@pytest.mark.parametrize(("scale", "shift"), [(1e-6, 0.0), (1e6, 0.0), (1.0, 1e4), (1e-6, 1e-3)])
def test_size_and_place_of_the_domain_do_not_matter(scale, shift):
    folds, surface = picture(gaussian(np.random.default_rng(0), (2, 10, 10, 1)))
    box = Box(SQUARE.lower * scale + shift, SQUARE.upper * scale + shift)
    moved = canonical_surface(folds.segments * scale + shift, box)
    assert sorted(moved.levels) == sorted(surface.levels) and moved.order == 2
    assert np.isclose(moved.lengths.sum(), surface.lengths.sum() * scale, rtol=1e-6)


def test_empty_picture():
    surface = canonical_surface(np.zeros((0, 2, 2)), SQUARE)
    assert (
        len(surface) == 0 and surface.order == 0 and repr(surface) == "CanonicalSurface(0 pieces: none)"
    )


def test_bad_input():
    with pytest.raises(ValueError, match=r"shape \(n, 2, 2\); got \(1, 2\)"):
        canonical_surface([[0, 1]], SQUARE)
    with pytest.raises(ValueError, match="leave the box"):
        canonical_surface([[[0, 0], [2, 0]]], SQUARE)
    with pytest.raises(ValueError, match="must be finite"):
        canonical_surface([[[0, 0], [np.nan, 0]]], SQUARE)
    with pytest.raises(ValueError, match="the box is flat"):
        canonical_surface([[[0, 0], [0, 1]]], Box([0, 0], [0, 1]))
    with pytest.raises(ValueError, match="tolerance is a share"):
        canonical_surface([[[0, 0], [0, 1]]], SQUARE, tolerance=-1)
