"""Where torch trains is the user's choice: what is not there is refused in a line, nothing is mixed."""

import numpy as np
import pytest
import torch

from pindown.learn.max_pooling.estimator import MaxPoolClassifier
from pindown.learn.multi_exit.estimator import MultiExitClassifier
from pindown.learn.mutual_autoencoder._networks import (
    GaussianDecoder,
    GaussianEncoder,
    MixtureGuess,
    Numbers,
)
from pindown.learn.mutual_autoencoder._objective import evidence_bound, information_surrogate
from pindown.learn.mutual_autoencoder.estimator import MutualAutoencoder
from pindown.learn.mutual_autoencoder.sentences import fit_sentences
from pindown.learn.one_class.detector import LocalMaximaDetector
from pindown.torch_modules import on_processor

X = np.random.default_rng(0).standard_normal((24, 2))
Y = np.arange(24) % 2
TRAININGS = {
    "max pooling": lambda device: MaxPoolClassifier(
        2, schedule="joint", max_iter=10, device=device, verbose=0
    ).fit(X, Y),
    "multi-exit": lambda device: MultiExitClassifier(device=device, verbose=0).fit(X, Y),
    "mutual autoencoder": lambda device: MutualAutoencoder(max_iter=3, device=device, verbose=0).fit(X),
    "sentences": lambda device: fit_sentences(["a b", "b a"], 0.1, steps=2, device=device, verbose=0),
    "detector": lambda device: LocalMaximaDetector(max_epochs=1, device=device).fit(X),
}


@pytest.mark.parametrize("device", ["meta", "cuda:99", "gpu", 7])
@pytest.mark.parametrize("name", TRAININGS)
def test_a_device_that_is_not_there_is_refused_in_a_line(name, device):
    with pytest.raises(ValueError, match=r"device must be one that (torch knows|is here)") as caught:
        TRAININGS[name](device)
    assert "\n" not in str(caught.value)


def test_the_processor_is_the_default_and_can_be_named():
    default, named = (
        MaxPoolClassifier(2, schedule="joint", max_iter=10, verbose=0, **place).fit(X, Y)
        for place in ({}, {"device": torch.device("cpu")})
    )
    assert np.array_equal(default.units_, named.units_)


def test_no_tensor_is_left_behind_on_the_processor():
    """On a device without numbers, mixing it with the processor is an error all the same."""
    random = torch.Generator().manual_seed(0)
    encoder = GaussianEncoder(Numbers(3), 2, (4,), random).to("meta")
    decoder = GaussianDecoder(3, 2, (4,), random).to("meta")
    guess = MixtureGuess(Numbers(3), 2, (4,), 2, random).to("meta")
    x, z = torch.zeros(5, 3, device="meta"), torch.zeros(5, 2, device="meta")
    assert evidence_bound(encoder, decoder, x, random).device.type == "meta"
    assert evidence_bound(encoder, decoder, x, random, k=3).device.type == "meta"
    assert information_surrogate(decoder, guess, z, random).device.type == "meta"
    own = torch.nn.Linear(2, 2)
    assert on_processor(own) is own
