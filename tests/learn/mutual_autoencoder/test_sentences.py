"""Sentences: entropy by counting, the decoder's probabilities by enumeration, a short fit."""

import math
from itertools import product

import numpy as np
import pytest
import torch

from pindown.learn.mutual_autoencoder import grammar
from pindown.learn.mutual_autoencoder.grammar import film_sentences, position_baseline, word_matches
from pindown.learn.mutual_autoencoder.sentences import SentenceDecoder, fit_sentences


def test_every_sentence_has_one_derivation_and_the_entropy_follows():
    chances = {}
    for form in grammar._FORMS:
        choices = [grammar._WORDS.get(slot, (slot,)) for slot in form]
        for words in product(*choices):
            sentence = " ".join(words)
            assert sentence not in chances and len(words) <= grammar.LONGEST
            chances[sentence] = 1 / len(grammar._FORMS) / math.prod(map(len, choices))
    p = np.array(list(chances.values()))
    assert p.sum() == pytest.approx(1.0)
    assert -(p @ np.log(p)) == pytest.approx(grammar.grammar_entropy())
    assert set(film_sentences(200)) <= set(chances)


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
    assert "31 words" in str(first)


def test_bad_sentences_are_explained():
    with pytest.raises(ValueError, match="at least one sentence"):
        fit_sentences([], 1.0)
    with pytest.raises(ValueError, match="1 to 8 words"):
        fit_sentences(["a " * 9], 1.0)
    with pytest.raises(ValueError, match="information and penalty"):
        fit_sentences(["a b"], -1.0)
    with pytest.warns(UserWarning, match="no code can carry it"):
        model = fit_sentences(["a b", "b a"] * 5, 3.0, steps=1, width=4, batch_size=4, verbose=0)
    with pytest.raises(ValueError, match="the word 'c'"):
        model.encode(["c"])
    with pytest.raises(ValueError, match="as many sentences back"):
        word_matches(["a"], [])
    assert position_baseline(["a"]) == 1.0
