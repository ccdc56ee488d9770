"""Findings on symmetries: planted ones are seen, broken ones measured, other inputs refused."""

import numpy as np
import pytest

from pindown import ReluNetwork
from pindown._audit import audit

SIDE = 6


def image_net(weights, outputs=2):
    """A network whose first layer reads each image through the given filters."""
    rng = np.random.default_rng(0)
    W = np.reshape(weights, (len(weights), -1))
    last = rng.standard_normal((outputs, len(W)))
    return ReluNetwork.from_layers(
        [(W, np.zeros(len(W))), (last, np.zeros(outputs))], input_shape=(SIDE, SIDE)
    )


def ask(net, X, code, **settings):
    return audit(net, X, only=[code], **settings)[code]


@pytest.fixture
def images():
    return np.random.default_rng(1).standard_normal((80, SIDE, SIDE))


def changes(finding):
    return {name: change for name, change, *_ in finding.table.rows}


def test_planted_mirror_symmetry_is_seen_and_others_are_not(images):
    drawn = np.random.default_rng(2).standard_normal((10, SIDE, SIDE))
    finding = ask(image_net(drawn + drawn[:, :, ::-1]), images, "SYM-02")
    shown = changes(finding)
    assert (
        shown["mirrored left-right"] < 1e-12
        and "kept up to rounding on these rows: mirrored left-right" in finding.verdict
    )
    assert shown["mirrored up-down"] > 0.3 and shown["moved by a pixel"] > 0.3
    assert finding.table.rows[0][3] == 1.0 and finding.table.rows[1][3] < 1.0
    assert all(fresh > 0.3 for _, _, fresh, _ in finding.table.rows)


def test_a_network_that_sums_pixels_keeps_every_symmetry(images):
    finding = ask(image_net(np.ones((2, SIDE, SIDE))), images, "SYM-02")
    assert max(changes(finding).values()) < 1e-12 and finding.number.value < 1e-12
    assert finding.number.kind == "estimate" and finding.number.n == 80


def test_the_change_is_that_of_the_definition(images):
    net = image_net(np.random.default_rng(3).standard_normal((5, SIDE, SIDE)))
    outputs = net(images)
    pairs = outputs[:, None] - outputs
    between = np.sqrt((pairs**2).sum(axis=2).sum() / (80 * 79))
    mirrored = np.sqrt(((net(images[:, ::-1]) - outputs) ** 2).sum(axis=1).mean())
    assert changes(ask(net, images, "SYM-02"))["mirrored up-down"] == pytest.approx(mirrored / between)


def test_oblong_images_are_not_turned(images):
    rng = np.random.default_rng(4)
    net = ReluNetwork.from_layers([(rng.standard_normal((3, 40)), np.zeros(3))], input_shape=(1, 5, 8))
    shown = changes(ask(net, rng.standard_normal((20, 1, 5, 8)), "SYM-02"))
    assert "turned by quarters" not in shown and len(shown) == 3


def test_a_pooled_network_does_not_notice_the_order_of_a_set():
    rng = np.random.default_rng(5)
    X = rng.standard_normal((50, 7, 3))
    pooled = ReluNetwork.from_layers(
        [(np.tile(rng.standard_normal((4, 3)), (1, 7)), np.zeros(4)), (np.ones((1, 4)), [0.0])],
        input_shape=(7, 3),
    )
    finding = ask(pooled, X, "SYM-03")
    assert max(changes(finding).values()) < 1e-12 and "decisions" not in finding.reading
    ordered = ReluNetwork.from_layers([(rng.standard_normal((2, 21)), np.zeros(2))], input_shape=(7, 3))
    noticed = ask(ordered, X, "SYM-03")
    assert 0.1 < changes(noticed)["the first two swapped"] < changes(noticed)["shuffled"]


def test_other_inputs_are_refused(images):
    flat = ReluNetwork.from_layers([(np.eye(6), np.zeros(6))])
    assert "no images" in ask(flat, np.zeros((3, 6)), "SYM-02").verdict
    assert "no sets" in ask(flat, np.zeros((3, 6)), "SYM-03").verdict
    net = image_net(np.ones((1, SIDE, SIDE)))
    assert "rather images" in ask(net, images, "SYM-03").verdict
    assert "fewer than two rows" in ask(net, images[:1], "SYM-02").verdict
    assert "outputs of all rows are equal" in ask(net, 0 * images, "SYM-02").verdict


def test_the_same_seed_gives_the_same_finding_and_time_is_kept(images):
    net = image_net(np.random.default_rng(3).standard_normal((5, SIDE, SIDE)))
    assert ask(net, images, "SYM-02", seed=4) == ask(net, images, "SYM-02", seed=4)
    assert ask(net, images, "SYM-02", budget=1e-9).status == "not run"


def test_columns_are_no_sets_and_small_changes_are_not_called_none(images):
    column = ReluNetwork.from_layers([(np.eye(6), np.zeros(6))], input_shape=(6, 1))
    assert "rather vectors" in ask(column, np.random.default_rng(0).random((5, 6, 1)), "SYM-03").verdict
    nearly = np.ones((2, SIDE, SIDE))
    nearly[:, 0, 0] += 1e-4
    finding = ask(image_net(nearly), images, "SYM-02")
    assert 1e-6 < max(changes(finding).values()) < 4e-4
    assert "up to rounding" not in finding.verdict
    assert not any(part.strip().endswith(" 0") for part in finding.verdict.split(","))
