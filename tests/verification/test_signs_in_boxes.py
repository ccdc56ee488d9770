"""Signs chosen inside boxes: bounds are true, and prove what linear bounds on the box do not."""

import numpy as np
import pytest

from pindown.deadline import NEVER, Deadline
from pindown.model import Builder
from pindown.model.from_network import model_of_network
from pindown.model.operations.dense import Dense
from pindown.model.operations.operation import Interval
from pindown.model.operations.relu import Relu
from pindown.relaxation.model_bounds import tighten
from pindown.relaxation.relaxed_model import RelaxedModel
from pindown.verification.box_splitting import BoxSplitting
from pindown.verification.portfolio import verify
from pindown.verification.properties import UnsafeSet
from pindown.verification.signs_in_boxes import bound_by_signs, lost_by_lines, open_units
from tests.verification.nets import SHARED, random_network


def boxes_of(rng, n, d, width):
    middle = rng.uniform(-1, 1, (n, d))
    return Interval(middle - width, middle + width)


def relaxed_on(model, box):
    relaxed = RelaxedModel.by_intervals(model, box)
    tighten(relaxed)
    return relaxed


@pytest.mark.parametrize("r", [1, 3])
@pytest.mark.parametrize("seed", range(4))
def test_bounds_are_above_every_sample_and_prove_more_than_linear_bounds(seed, r):
    """Limits just above the largest sample: what is proved is true, and much of it needs signs."""
    rng = np.random.default_rng(seed)
    net = random_network(rng, [3, 8, 8, 2])
    model = model_of_network(net)
    box = boxes_of(rng, 24, 3, 0.4)
    relaxed = relaxed_on(model, box)
    index = len(relaxed.values) - 1
    form = rng.standard_normal((24, r, 2)).reshape(24, r, *model.nodes[-1].shape[1:])
    own = rng.standard_normal((24, r, 3))
    x = box.lower + (box.upper - box.lower) * rng.random((4000, 24, 3))
    x[:8] = np.where(np.indices((8, 24, 3))[0] >> np.arange(3) & 1, box.upper, box.lower)
    y = model(x.reshape(-1, 3)).reshape(4000, 24, 2)
    rows = np.einsum("snk,nrk->snr", y, form.reshape(24, r, 2)) + np.einsum("snd,nrd->snr", x, own)
    largest = rows.min(axis=2).max(axis=0)
    form = form.reshape(24, r, *model.nodes[-1].shape)
    linear = relaxed.upper_ends(index, form, at_input=own).min(axis=1)
    proved, by_lines = 0, 0
    for margin in (-1e-3, 0.02, 0.2):
        limit = largest + margin * np.abs(largest)
        limits = np.repeat(-limit[:, None], r, axis=1)
        even = np.full((24, r), 1.0 / r)
        bounds = bound_by_signs(relaxed, index, form, limits, own, even, NEVER)
        assert np.all((bounds < 0.0) | (bounds == np.inf))
        if margin < 0:
            assert np.all(bounds == np.inf)  # the samples are above the limit
        assert np.all(bounds >= largest - limit)
        proved += np.count_nonzero(bounds < 0.0)
        by_lines += np.count_nonzero(linear < limit)
    assert proved > by_lines + 4


def test_all_signs_together_are_exact():
    """The hat ``relu(x + 1/2) - 2 relu(x) + relu(x - 1/2)`` is at most 1/2; lines around it are not."""
    graph = Builder((1, 1))
    bent = graph.add(Relu(), graph.add(Dense([[1.0]] * 3, [0.5, 0.0, -0.5]), graph.input))
    model = graph.model(graph.add(Dense([[1.0, -2.0, 1.0]]), bent), input_shape=(1,))
    relaxed = relaxed_on(model, Interval(np.array([[-1.0]]), np.array([[0.9]])))
    assert open_units(relaxed).tolist() == [3]
    index = len(relaxed.values) - 1
    form, one = np.ones((1, 1, *model.nodes[-1].shape)), np.ones((1, 1))
    linear = relaxed.upper_ends(index, form).item()
    assert bound_by_signs(relaxed, index, form, np.array([[-0.6]]), None, one, NEVER).item() < 0.0
    assert bound_by_signs(relaxed, index, form, np.array([[-0.499]]), None, one, NEVER).item() == np.inf
    assert linear > 0.8
    late = bound_by_signs(relaxed, index, form, np.array([[-0.6]]), None, one, Deadline.of(0.0))
    assert late.item() == np.inf


def test_what_lines_cost():
    """The chord of [-1, 3] is 3/4 above the ReLU at zero; a line below costs its distance."""
    form = np.array([2.0, -2.0, 2.0])
    at, below = np.array([0.0, 1.0, 3.0]), np.array([0.0, 0.5, 0.0])
    here, most = lost_by_lines(form, at, below, np.full(3, 0.75), np.full(3, 0.75))
    assert np.allclose(here, [1.5, 1.0, 0.0]) and np.allclose(most, [1.5, 0.0, 1.5])


def test_fewer_boxes_are_cut():
    """With signs in boxes a tight property of a random network needs a fraction of the boxes."""
    rng = np.random.default_rng(5)
    model = model_of_network(random_network(rng, [3, 12, 12, 12, 1]))
    low, high = -np.ones(3), np.ones(3)
    x = rng.uniform(-1, 1, (20_000, 3))
    y = model(x)[:, 0]
    unsafe = UnsafeSet(low, high, np.array([[-1.0]]), np.array([-(y.max() + 0.01 * np.ptp(y))]))
    counts = []
    for closely in (0, 12):
        search = BoxSplitting(model, [unsafe], _closely=closely)
        while not search.done and search.n_parts < 20_000:
            search.round(NEVER)
        assert search.done
        counts.append(search.n_parts)
    assert counts[1] < 0.8 * counts[0]


@pytest.mark.slow
def test_the_hardest_property_of_acas_xu():
    """Network 3_3 never advises clear-of-conflict most where property 2 looks: by 0.001."""
    folder = SHARED / "vnncomp/acasxu"
    found = verify(
        folder / "ACASXU_run2a_3_3_batch_2000.onnx.gz",
        folder / "prop_2.vnnlib.gz",
        budget=None,
        n_jobs=1,
    )
    assert found.verdict == "holds" and found.n_parts < 10_000
