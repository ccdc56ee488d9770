import pytest
import torch

from pindown.learn.one_class._networks import build, initialise

CRITIC = {"kind": "paper critic", "channels": 1, "width": 4}
MAKER = {"kind": "paper generator", "channels": 3, "width": 4}


def test_the_source_s_image_networks_have_its_shapes():
    assert build(CRITIC)(torch.zeros(2, 1, 32, 32)).shape == (2, 1)
    maker = initialise(build(MAKER), torch.Generator().manual_seed(0))
    image = maker(torch.randn(2, 3, 32, 32, generator=torch.Generator().manual_seed(0)))
    assert image.shape == (2, 3, 32, 32)
    assert image.abs().max() <= 1
    assert sum(isinstance(m, torch.nn.Conv2d) for m in build(CRITIC).modules()) == 4
    assert sum(isinstance(m, torch.nn.Conv2d) for m in build(MAKER).modules()) == 5
    assert sum(isinstance(m, torch.nn.ConvTranspose2d) for m in build(MAKER).modules()) == 5


def test_initialisation_depends_on_the_generator_only():
    torch.manual_seed(1)
    first = initialise(build(CRITIC), torch.Generator().manual_seed(3)).state_dict()
    torch.manual_seed(2)
    second = initialise(build(CRITIC), torch.Generator().manual_seed(3)).state_dict()
    assert all(torch.equal(first[key], second[key]) for key in first)


def test_weights_keep_the_size_of_what_goes_through():
    """Of variance two over the number of inputs, which rectifiers halve."""
    wide = {"kind": "perceptron", "inputs": 200, "hidden": [300], "outputs": 50, "bound": 8.0}
    net = initialise(build(wide), torch.Generator().manual_seed(0))
    for layer in (m for m in net.modules() if isinstance(m, torch.nn.Linear)):
        square = float(layer.weight.detach().square().mean())
        assert square * layer.in_features == pytest.approx(2, rel=0.05)
        assert not layer.bias.any()


@pytest.mark.parametrize(
    "description",
    [
        {"kind": "os.system"},
        {"kind": "perceptron", "inputs": 2**40, "hidden": [3], "outputs": 1, "bound": 8.0},
        {"kind": "perceptron", "inputs": 2, "hidden": ["a"], "outputs": 1, "bound": 8.0},
        {"kind": "perceptron", "inputs": 2},
        {"kind": "paper critic", "channels": -1, "width": 4},
    ],
)
def test_damaged_descriptions_are_refused(description):
    with pytest.raises(ValueError, match=r"kind|must be|incomplete"):
        build(description, "meta")
