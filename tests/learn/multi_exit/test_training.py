"""One step of training beside the same step written out; crops and mirror images by search."""

import copy

import numpy as np
import pytest
import torch
from torch.nn.functional import cross_entropy, log_softmax, softmax

from pindown.learn.multi_exit import MultiExitDistiller, MultiExitModel
from pindown.learn.multi_exit.training import _step, crop_and_flip


def small_model(seed=0):
    torch.manual_seed(seed)
    stages = [torch.nn.Sequential(torch.nn.Linear(4, 5), torch.nn.Tanh()), torch.nn.Linear(5, 5)]
    return MultiExitModel(stages, [torch.nn.Linear(5, 3), torch.nn.Linear(5, 3)]).double()


@pytest.mark.parametrize("semi", [False, True])
def test_a_step_by_hand(semi):
    """Labels at both exits, and the first exit after the last at the temperature so far."""
    source = torch.Generator().manual_seed(1)
    x, extra = (torch.randn(n, 4, generator=source, dtype=torch.float64) for n in (6, 9))
    y = torch.tensor([0, 1, 2, 0, 1, 2])
    model = small_model()
    with torch.no_grad():
        model.heads[1].weight *= 20  # sure teachers: the temperature rises
    other = copy.deepcopy(model)
    distiller = MultiExitDistiller(model, mu=0.4, tau_star=1.5, weight=0.7)
    distiller.annealer.tau = 2.0
    optimiser = torch.optim.SGD(model.parameters(), lr=0.1)
    total, part = _step(model, distiller, optimiser, x, y, extra if semi else None)

    first, last = other(x)
    classification = (cross_entropy(first, y) + cross_entropy(last, y)) / 2
    first, last = other(extra if semi else x)
    teacher = softmax(last.detach() / 2.0, dim=1)
    told = -4.0 * (teacher * log_softmax(first / 2.0, dim=1)).sum(dim=1).mean() / 2
    loss = classification + 0.7 * told
    assert part == pytest.approx(float(classification.detach()))
    assert total == pytest.approx(float(loss.detach()))
    loss.backward()
    for ours, theirs in zip(model.parameters(), other.parameters(), strict=True):
        assert torch.allclose(ours, theirs - 0.1 * theirs.grad)
    assert float(teacher.max(dim=1).values.mean()) > 0.4 and distiller.temperature == 3.0


def test_crops_are_parts_of_the_padded_image_half_of_them_mirrored():
    source = torch.Generator().manual_seed(0)
    x = torch.rand(40, 1, 5, 6, generator=source)
    moved = crop_and_flip(x, torch.Generator().manual_seed(1), 2, fill=-1.0).numpy()
    padded = np.pad(x.numpy(), ((0, 0), (0, 0), (2, 2), (2, 2)), constant_values=-1.0)
    mirrored, places = 0, set()
    for image, found in zip(padded[:, 0], moved[:, 0], strict=True):
        hits = [
            (top, left, flip)
            for top in range(5)
            for left in range(5)
            for flip in (False, True)
            if np.array_equal(image[top : top + 5, left : left + 6][:, :: -1 if flip else 1], found)
        ]
        assert len(hits) == 1
        mirrored += hits[0][2]
        places.add(hits[0][:2])
    assert 10 <= mirrored <= 30 and len(places) > 12
    still = crop_and_flip(x, torch.Generator().manual_seed(1), 0, mirror=False)
    assert torch.equal(still, x)
