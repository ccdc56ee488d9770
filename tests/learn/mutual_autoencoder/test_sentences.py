"""Sentences: entropy by counting, the decoder's probabilities by enumeration, a short fit."""

import math
from itertools import product

import numpy as np
import pytest
import torch

from pindown.learn.mutual_autoencoder import sentences as grammar
from pindown.learn.mutual_autoencoder._networks import SentenceDecoder
from pindown.learn.mutual_autoencoder.sentences import (
    exact_matches,
    film_sentences,
    fit_sentences,
    grammar_entropy,
    position_baseline,
    word_matches,
)


def test_every_sentence_has_one_derivation_and_the_entropy_follows():
    chances = {}
    for form in grammar._FORMS:
        choices = [grammar._WORDS.get(slot, (slot,)) for slot in form]
        for words in product(*choices):
            sentence = " ".join(words)
            assert sentence not in chances and len(words) <= grammar.MAX_WORDS
            chances[sentence] = 1 / len(grammar._FORMS) / math.prod(map(len, choices))
    p = np.array(list(chances.values()))
    assert p.sum() == pytest.approx(1.0)
    assert -(p @ np.log(p)) == pytest.approx(grammar_entropy(3))
    assert set(film_sentences(200, forms=3)) <= set(chances)
    assert len(set(film_sentences(20_000))) == 768 and grammar_entropy() == pytest.approx(math.log(768))


def test_matches_by_hand():
    """Missing and surplus words count against; shares are of the words that were given."""
    given, back = ["a b c", "d e"], ["a x c y", "d e"]
    assert exact_matches(given, back) == 1 / 2
    assert word_matches(given, back) == 4 / 5
    assert word_matches(["a b"], ["b"]) == 0.0
    assert position_baseline(["a b", "a c", "a c"]) == 5 / 6


def test_the_decoder_is_a_distribution_over_sentences():
    random = torch.Generator().manual_seed(0)
    decoder = SentenceDecoder(3, 3, 2, 8, random).double()
    every = torch.tensor(list(product(range(3), repeat=3)))
    z = torch.randn((1, 2), generator=random, dtype=torch.float64)
    with torch.no_grad():
        p = decoder.log_prob(every, z.expand(27, 2)).exp()
        stacked = decoder.log_prob(every, z.expand(4, 27, 2)).exp()
    assert float(p.sum()) == pytest.approx(1.0)
    torch.testing.assert_close(stacked, p.expand(4, 27))
    draws = decoder.sample(z.expand(20_000, 2), random)
    counts = np.bincount((draws * torch.tensor([9, 3, 1])).sum(1).numpy(), minlength=27) / 20_000
    assert (np.abs(counts - p.numpy()) < 5 * np.sqrt(p.numpy() / 20_000) + 1e-3).all()


def test_a_short_fit_runs_end_to_end():
    sentences = film_sentences(300)
    options = {"steps": 5, "width": 8, "latent": 2, "batch_size": 16, "verbose": 0}
    first, second = (fit_sentences(sentences, 1.0, **options) for _ in range(2))
    back = first.reconstruct(sentences[:20])
    assert back == second.reconstruct(sentences[:20])
    assert 0.0 <= word_matches(sentences[:20], back) <= 1.0
    assert len(first.interpolate(sentences[0], sentences[1], 4)) == 4
    assert first.encode(sentences[:3]).shape == (3, 2)
    assert "20 words; information between" in str(first)


@pytest.mark.slow
def test_the_more_is_asked_for_the_more_comes_back():
    """Plain and M = 0 return the commonest words; M = 2 about half, M = 4 most."""
    sentences = film_sentences(2000)
    words, exact = [], []
    for target in (0.0, 2.0, 4.0):
        model = fit_sentences(sentences, target, verbose=0)
        back = model.reconstruct(sentences[:500])
        words.append(word_matches(sentences[:500], back))
        exact.append(exact_matches(sentences[:500], back))
        print(f"asked {target:g}: {model}; words {words[-1]:.3f}, exact {exact[-1]:.3f}")
        assert abs(model.at_most.value - target) < 0.5
        assert model.measured.value < model.at_most.value + 5 * model.at_most.standard_error + 0.01
    assert words[0] < position_baseline(sentences) + 0.05
    assert words[1] > words[0] + 0.15 and words[2] > words[1] + 0.05
    assert exact[2] > exact[1] > exact[0]


def test_bad_sentences_are_explained():
    with pytest.raises(ValueError, match="at least one sentence"):
        fit_sentences([], 1.0)
    with pytest.raises(ValueError, match="1 to 8 words"):
        fit_sentences(["a " * 9], 1.0)
    with pytest.raises(ValueError, match="information must be"):
        fit_sentences(["a b"], -1.0)
    with pytest.raises(ValueError, match="warm_start must be"):
        fit_sentences(["a b"], 1.0, warm_start=0.7)
    with pytest.raises(ValueError, match="forms must be an integer of at least 1 and at most 3"):
        film_sentences(3, forms=4)
    with pytest.warns(UserWarning, match="no code can carry it"):
        model = fit_sentences(["a b", "b a"] * 5, 3.0, steps=1, width=4, batch_size=4, verbose=0)
    with pytest.raises(ValueError, match="the word 'c'"):
        model.encode(["c"])
    with pytest.raises(ValueError, match="as many sentences back"):
        word_matches(["a"], [])
    assert position_baseline(["a"]) == 1.0
