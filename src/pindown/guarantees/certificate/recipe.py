r"""A risk certificate for a network on data: by a part held out, or PAC-Bayes with a trained prior.

Held out: the network learns from one part of the examples, and errors on the other part are binomial,

.. math:: L \le \max \{ p : P[\mathrm{Binomial}(m, p) \le \text{errors}] \ge \delta \} .

PAC-Bayes:

1. The examples are parted at random. The prior's mean is the network trained on the first part.
2. The posterior is moved by natural gradient steps on the small-kl bound of the second part.
3. Errors of the random classifier on the second part are counted over draws of weights,

.. math::
    \hat L \le \mathrm{kl}^{-1}\Big(\text{count}, \frac{\log(1/\delta')}{N}\Big), \qquad
    L \le \mathrm{kl}^{-1}\Big(\hat L,
        \frac{\mathrm{KL}(Q \| P) + \log(2 \sqrt m / (\delta - \delta'))}{m}\Big),

both inverses rounded outwards, in float64.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any, Literal

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor, nn

from pindown.deadline import Deadline
from pindown.evidence import Assumption
from pindown.guarantees.bounds.bound import INDEPENDENT, Bound
from pindown.guarantees.bounds.pac_bayes import held_out_bound, maurer_bound
from pindown.guarantees.certificate._evaluation import Count, module_errors
from pindown.guarantees.certificate.modules import (
    check_outputs,
    only_linear,
    part,
    read_examples,
    read_module,
    start_again,
)
from pindown.guarantees.certificate.posterior import WeightPosterior
from pindown.guarantees.certificate.run import Run
from pindown.guarantees.tuning import (
    HELD_OUT_SHARE,
    HELD_OUT_UNTIL,
    MAX_HELD_OUT_SHARE,
    MIN_HELD_OUT,
    PRIOR_SHARES,
    PRIOR_UNTIL,
)
from pindown.text import rounded_up
from pindown.torch_modules import own_randomness
from pindown.validation import choice, integer, number, positive, probability


def certify(
    module: nn.Module,
    X: Any,
    y: Any,
    delta: float = 0.05,
    *,
    method: Literal["auto", "holdout", "pac-bayes"] = "auto",
    prior: Literal["train", "given"] = "train",
    prior_share: float | None = None,
    epochs: int | None = None,
    learning_rate: float = 2e-3,
    batch_size: int | None = None,
    dropout: float = 0.2,
    noise: float | None = None,
    steps: int = 400,
    draws: int | None = None,
    budget: float | None = None,
    threads: int | None = 1,
    random_state: int = 0,
    verbose: int = 1,
) -> Certificate:
    """Bound the risk of a classifier of this architecture, trained on these examples.

    With ``method="holdout"`` it is about the network that was trained on most of the examples,
    ``certificate.network``, by its errors on the others: exact, quick, and the smaller bound wherever
    both were measured; ``"auto"`` takes it, without a look at the labels. With ``method="pac-bayes"`` it
    is about a *random* classifier: weights are drawn anew for every prediction,
    ``certificate.posterior.predict(X)``; the bound by holding out is reported beside it.

    One call makes one claim: the best of K calls, over seeds or settings, fails with probability K delta
    at most, so give each delta / K.

    The weights of ``module`` are not used, because they may have seen the examples: a copy starts again
    (``reset_parameters``). Say ``prior="given"`` only if they did not.

    Args:
        module: Network with one score per class, or one score for two classes. It is not changed.
            Frozen parameters (``requires_grad=False``) stay as they are. Batch normalisation learns from
            the prior's part and is fixed then; dropout is off in the certificate.
        X: Inputs (n, ...), at about unit scale.
        y: Classes 0 to k - 1, or -1 and 1.
        delta: Probability with which the certificate may fail, all in all.
        method: Which bound is the certificate: ``"holdout"``, ``"pac-bayes"``, or ``"auto"``.
        prior: ``"train"`` a fresh copy on the prior's part, or take the ``"given"`` weights, which must
            not have seen these examples; then the prior's part only chooses the noise.
        prior_share: Share of the examples that train the network, the prior's mean. None leaves a fifth
            to be held out, or 300 examples if that is more, or half of them; for PAC-Bayes it is 0.5, or
            0.1 for given weights. Given weights are held against all examples.
        epochs: Passes of the prior's training; None is 2,000 steps, at least 20 and at most 100 passes.
        learning_rate: Largest rate of Adam in the prior's training.
        batch_size: Batch size of the prior's training; None is a thirtieth of the part, 16 to 128.
        dropout: In the prior's training, before every layer; half of it before the first.
        noise: The prior's deviation relative to the size of a tensor's weights; None chooses it on the
            prior's part.
        steps: Natural gradient steps of the posterior; 0 takes the prior.
        draws: Independent draws of weights for the count; None is a million for networks of linear
            layers and 20,000 for others.
        budget: Seconds after which training stops; one pass of counting is always made.
        threads: Torch threads meanwhile; None leaves them.
        random_state: Seed of everything random.
        verbose: 0 for no progress bar; it shows on terminals only.

    Returns:
        The certificate, a :class:`Bound` that carries the classifier.

    Raises:
        TypeError: If the module is none, or X and y do not hold numbers.
        ValueError: If the module cannot be certified, X and y do not fit it, or training diverges.

    Example:
        >>> rng = np.random.default_rng(0)
        >>> X = rng.normal(size=(1000, 2))
        >>> net = nn.Sequential(nn.Linear(2, 8), nn.ReLU(), nn.Linear(8, 2))
        >>> certificate = certify(net, X, X[:, 0] > X[:, 1], epochs=20)
        >>> certificate.confidence, certificate.vacuous, 0.01 < certificate.value < 0.1
        (0.95, False, True)

    Perez-Ortiz et al. 2021, "Tighter risk certificates for neural networks"; Dziugaite et al. 2021, "On
    the role of data in PAC-Bayes bounds"; Maurer 2004; Langford 2005 for the test set.
    """
    choice("method", method, ("auto", "holdout", "pac-bayes"))
    by_errors = method != "pac-bayes"
    choice("prior", prior, PRIOR_SHARES)
    run = Run(
        probability("delta", delta),
        None if epochs is None else integer("epochs", epochs, least=0),
        positive("learning_rate", learning_rate),
        None if batch_size is None else integer("batch_size", batch_size),
        _dropout(dropout),
        None if noise is None else positive("noise", noise),
        integer("steps", steps, least=0),
        None if draws is None else integer("draws", draws),
        Deadline.after(None if budget is None else positive("budget", budget)),
        verbose,
    )
    given_share = None if prior_share is None else probability("prior_share", prior_share)
    # Draws that certify must know nothing of those that trained: each has its own stream.
    seeds = np.random.SeedSequence(integer("random_state", random_state, least=0)).generate_state(4)
    streams = [torch.Generator().manual_seed(int(seed)) for seed in seeds[1:]]
    with own_randomness(int(seeds[0]), None if threads is None else integer("threads", threads)):
        network, examples = read_module(module), read_examples(X, y)
        check_outputs(network, examples)
        share = _training_share(examples.n, by_errors, prior) if given_share is None else given_share
        seen, rows = part(examples.n, share, streams[0])
        if by_errors and prior == "given":
            seen, rows = rows[:0], torch.arange(examples.n)  # nothing is chosen: all of them count
        first, second = examples.at(seen), examples.at(rows)
        if prior == "train":
            start_again(network)
            run.train(network, first, streams[0], HELD_OUT_UNTIL if by_errors else PRIOR_UNTIL)
        network.eval()
        beside = held_out_bound(module_errors(network, second), second.n, run.delta)
        rests = (INDEPENDENT, *_assumptions(network, prior))
        if by_errors:
            return _held_out(beside, rests, network, rows, len(seen), run)
        local = only_linear(network, first)
        centre, level = run.surround(network, first, local, streams[1])
        posterior = run.move(centre, second, streams[1])
        counted = run.count(posterior, second, streams[2])
        extra = {
            "prior examples": float(first.n),
            "prior noise": level,
            "error of the mean network": module_errors(posterior.mean_module(), second) / second.n,
            "error of the prior network": beside.terms["observed error"],
            "test-set bound of the prior network": beside.value,
        }
    return _pac_bayes(posterior, counted, run, rests, network, rows, extra, beside)


def _training_share(n: int, by_errors: bool, prior: str) -> float:
    """Return the share of the examples that train, from their number alone.

    >>> [round(n * (1 - _training_share(n, True, "train"))) for n in (100, 1000, 10_000)]
    [50, 300, 2000]
    """
    if not by_errors:
        return PRIOR_SHARES[prior]
    return 1.0 - min(max(HELD_OUT_SHARE * n, MIN_HELD_OUT), MAX_HELD_OUT_SHARE * n) / n


def _dropout(value: float) -> float:
    return number("dropout", value, 0.0, 1.0, below=True)  # 1 leaves nothing to learn from


def _pac_bayes(
    posterior: WeightPosterior,
    counted: Count,
    run: Run,
    rests: tuple[Assumption, ...],
    network: nn.Module,
    rows: Tensor,
    extra: dict[str, float],
    beside: Bound,
) -> Certificate:
    above = counted.risk_above(run.monte_carlo_delta)
    bound = maurer_bound(above, posterior.kl(), counted.n, run.sample_delta)
    terms = {
        "counted risk": counted.share,
        "counted risk, bounded": above,
        "kl": bound.terms["kl"],
        "level": bound.terms["level"],
        "n": float(counted.n),
        "draws": float(counted.draws),
        **extra,
    }
    fair = Assumption("pseudo-random draws of weights behave like random ones")
    return Certificate(
        "PAC-Bayes certificate",
        bound.value,
        run.delta,
        "risk of the random classifier",
        terms,
        (*rests, fair),
        "Perez-Ortiz et al. 2021",
        posterior=posterior,
        network=network,
        test_set=beside,
        interrupted=run.interrupted or run.late,
        rows=rows.numpy(),
    )


def _held_out(
    bound: Bound, rests: tuple[Assumption, ...], network: nn.Module, rows: Tensor, n: int, run: Run
) -> Certificate:
    return Certificate(
        "held-out certificate",
        bound.value,
        run.delta,
        "risk of the network",
        {**bound.terms, "prior examples": float(n)},
        rests,
        bound.source,
        network=network,
        test_set=bound,
        interrupted=run.interrupted or run.late,
        rows=rows.numpy(),
    )


def _assumptions(network: nn.Module, prior: str) -> list[Assumption]:
    if prior == "given":
        return [Assumption("the given weights never saw these examples")]
    found = [Assumption("the prior was trained on examples that do not certify", "checked")]
    if not all(parameter.requires_grad for parameter in network.parameters()):
        found.append(Assumption("the frozen parameters never saw these examples"))
    # Parts without reset_parameters keep their buffers: scalings, masks, tables.
    if any(
        True
        for part in network.modules()
        if not hasattr(part, "reset_parameters")
        for _ in part.buffers(recurse=False)
    ):
        found.append(Assumption("the module's buffers never saw these examples"))
    return found


@dataclass(frozen=True)
class Certificate(Bound):
    """A :class:`Bound` on the risk of a classifier, together with the classifier.

    Attributes:
        posterior: The random classifier that the PAC-Bayes bound is about; None for ``"holdout"``.
        network: The network that was trained on the first part only, in evaluation mode.
        test_set: Bound on the risk of ``network`` from the same certifying examples. It holds with the
            same confidence, but not together with the certificate: pick one before looking, or give
            each half of delta.
        interrupted: Whether Ctrl-C or the budget cut something short; the bound holds all the same.
        rows: Which rows of X certify; the others made the prior.
    """

    posterior: WeightPosterior | None = None
    network: nn.Module | None = None
    test_set: Bound | None = None
    interrupted: bool = False
    rows: NDArray[np.int64] | None = field(default=None, compare=False)

    def to_dict(self) -> dict[str, Any]:
        """Return plain numbers and strings, for JSON."""
        beside = None if self.test_set is None else self.test_set.to_dict()
        return {**super().to_dict(), "test_set": beside, "interrupted": self.interrupted}

    def __str__(self) -> str:
        lines = super().__str__()
        if self.posterior is None or self.test_set is None:
            return lines
        return (
            f"{lines}\n"
            f"beside it: the network without noise, trained on {self.terms['prior examples']:,.0f} "
            f"examples, has risk at most {rounded_up(self.test_set.value)} "
            f"by {self.test_set.terms['n']:,.0f} held-out ones (either claim alone has this confidence)"
        )

    def __repr__(self) -> str:
        return str(self)
