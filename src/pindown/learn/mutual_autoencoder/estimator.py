"""The variational autoencoder with a dial: how many nats the code carries."""

from __future__ import annotations

import math
import warnings
from typing import Any

import numpy as np
import torch
from sklearn.base import BaseEstimator, ClassNamePrefixFeaturesOutMixin, TransformerMixin
from sklearn.exceptions import ConvergenceWarning
from sklearn.utils import check_random_state
from sklearn.utils.validation import check_array, check_is_fitted, validate_data

from pindown.affine import Array
from pindown.learn.mutual_autoencoder._networks import (
    CategoricalDecoder,
    GaussianDecoder,
    GaussianEncoder,
    MixtureGuess,
)
from pindown.learn.mutual_autoencoder._rows import NumberRows, SymbolRows
from pindown.learn.mutual_autoencoder.evaluation import (
    InformationReport,
    blockwise,
    evidence,
    mean_codes,
    report_on,
)
from pindown.learn.mutual_autoencoder.information import (
    can_be_exact,
    measure_information,
    quick_information,
)
from pindown.learn.mutual_autoencoder.training import (
    Networks,
    Recipe,
    drop_idle_code,
    project_onto_target,
    train,
)
from pindown.learn.mutual_autoencoder.tuning import (
    GUESS_STEPS_FACTOR,
    MAX_STEPS,
    MIN_STEPS,
    ROWS_SQUARED_PER_STEP,
    TOLD_MISS,
    TOLD_STANDARD_ERRORS,
)
from pindown.torch_modules import on_processor, own_torch, usable_device
from pindown.validation import boolean, choice, integer, integers, optional, positive

_ROUNDING = 1e-9  # nats by which a computed entropy may be too small


class MutualAutoencoder(
    ClassNamePrefixFeaturesOutMixin,  # type: ignore[misc]
    TransformerMixin,  # type: ignore[misc]
    BaseEstimator,  # type: ignore[misc]
):
    r"""A variational autoencoder whose code carries a chosen number of nats.

    It maximises :math:`\mathrm{ELBO} - C\,|\hat I(z; x) - M|`, where :math:`\hat I` is the information
    between code and data under the model, estimated from below by a third network. A plain variational
    autoencoder (``penalty=0``) leaves that number to accident; a code that does not pay is dropped.

    Args:
        information: M, in nats (not bits).
        n_components: Length of the code.
        decoder: ``"gaussian"`` for numbers, ``"categorical"`` for columns of symbols.
        encoder: ``"gaussian"``, or ``"resampling"``: of ``n_proposals`` draws it keeps one.
        n_proposals: Draws of the resampling encoder.
        hidden: Widths of the hidden layers of all networks; ``()`` makes them affine.
        mixture: Normals in the guess r(z | x); None for as the encoder is: 1, or 4 when it resamples.
        penalty: C; 0 for a plain variational autoencoder.
        drop_code: Whether a plain one with one column and a code of one number drops the code if all n
            rows together gain less than log n nats of evidence by it, as they may by chance.
        control: ``"integral"``, ``"clip"`` or ``"sign"``: how the push follows the error.
        width: Error in nats at which ``"clip"`` pushes with full force.
        max_iter: Training steps; None for a hundredth of the rows squared, from 10 to 1,200.
        batch_size: Rows, and draws from the model, per step.
        learning_rate: First step size of Adam.
        guess_steps: Updates of the guess per step.
        device: Where the networks are trained, as torch names it; the code is measured and used on the
            processor. Only ``"cpu"`` is tested, and other devices round differently.
        random_state: Seed; the same seed gives the same model.
        verbose: 0 for silence; else a progress bar after two seconds, on a terminal. An interruption
            keeps the networks so far, with a warning.

    Attributes:
        information_: Measured information of the fitted model, in nats.
        measurement_: The same with its standard error and how it was measured.
        code_gain_: Nats of evidence that all rows together gain by the code, over the best model without
            one, before it was dropped; None unless that was asked.
        code_dropped_: Whether the code was dropped.
        entropy_: Entropy of the training rows if they are symbols, else None.
        history_: Per step ``evidence``, ``information`` (estimated) and ``push``.
        networks_: Encoder, decoder and guess, torch modules.
        rows_: How data became tensors: scales, or symbols.
        n_iter_: Steps taken.

    >>> X = np.random.default_rng(0).standard_normal((500, 1))
    >>> model = MutualAutoencoder(hidden=(), learning_rate=0.05, max_iter=150).fit(X)
    >>> abs(model.information_ - 1.0) < 0.1
    True

    Phuong 2021, chapter 4.
    """

    def __init__(
        self,
        information: float = 1.0,
        *,
        n_components: int = 1,
        decoder: str = "gaussian",
        encoder: str = "gaussian",
        n_proposals: int = 5,
        hidden: Any = (32, 32),
        mixture: int | None = None,
        penalty: float = 5.0,
        drop_code: bool = True,
        control: str = "integral",
        width: float = 0.02,
        max_iter: int | None = None,
        batch_size: int = 256,
        learning_rate: float = 5e-3,
        guess_steps: int = 1,
        device: str = "cpu",
        random_state: Any = 0,
        verbose: int = 1,
    ) -> None:
        self.information = information
        self.n_components = n_components
        self.decoder = decoder
        self.encoder = encoder
        self.n_proposals = n_proposals
        self.hidden = hidden
        self.mixture = mixture
        self.penalty = penalty
        self.drop_code = drop_code
        self.control = control
        self.width = width
        self.max_iter = max_iter
        self.batch_size = batch_size
        self.learning_rate = learning_rate
        self.guess_steps = guess_steps
        self.device = device
        self.random_state = random_state
        self.verbose = verbose

    # ------------------------------------------------------------------ learning

    def fit(self, X: Any, y: Any = None) -> MutualAutoencoder:
        """Train on rows of numbers, or of symbols.

        Raises:
            ValueError: If a parameter or X means nothing, or training diverged.
        """
        check_parameters(self)
        usable_device(self.device)
        self.rows_: NumberRows | SymbolRows
        if self.decoder == "gaussian":
            self.rows_ = NumberRows.of(validate_data(self, X, dtype=np.float64, ensure_min_samples=2))
        else:
            self.rows_ = SymbolRows.of(validate_data(self, X, dtype=None, ensure_min_samples=2))
        self.entropy_ = self.rows_.entropy
        if (
            self.penalty > 0
            and self.entropy_ is not None
            and self.information > self.entropy_ + _ROUNDING
        ):
            warnings.warn(
                f"information={self.information:g} is more than the {self.entropy_:.4g} nats of entropy "
                "of the rows; no code can carry it. Ask for less.",
                stacklevel=2,
            )
        seed = check_random_state(self.random_state).randint(np.iinfo(np.int32).max)
        with own_torch():
            self._train(torch.Generator().manual_seed(seed))
        self._tell_if_missed()
        return self

    def _train(self, random: torch.Generator) -> None:
        self.networks_ = self._networks(random)
        steps = default_steps(len(self.rows_.training)) if self.max_iter is None else self.max_iter
        recipe = Recipe(
            float(self.information),
            penalty=float(self.penalty),
            control=self.control,  # type: ignore[arg-type]
            width=float(self.width),
            proposals=self._proposals,
            steps=steps,
            batch_size=self.batch_size,
            learning_rate=float(self.learning_rate),
            guess_steps=self.guess_steps,
        )
        decoder, device = self.networks_.decoder, usable_device(self.device)
        exact = (lambda: quick_information(on_processor(decoder))) if can_be_exact(decoder) else None
        rows = self.rows_.training.to(device)
        trace = train(self.networks_.to(device), rows, recipe, random, exact=exact, verbose=self.verbose)
        self.networks_.to("cpu")
        self.n_iter_ = len(trace.evidence)
        self.history_ = {name: np.array(values) for name, values in vars(trace).items()}
        if not np.isfinite(self.history_["evidence"]).all():
            raise ValueError("training diverged; use a smaller learning_rate, or scale the data down.")
        decoder.double()
        if exact is not None and self.penalty > 0 and self.n_iter_ == steps:
            project_onto_target(decoder, min(float(self.information), self._most))
        for net in (self.networks_.encoder, self.networks_.decoder, self.networks_.guess):
            net.double().requires_grad_(False)
        self.code_gain_, self.code_dropped_ = None, False
        if exact is not None and self.penalty == 0 and self.drop_code and self.n_iter_ == steps:
            given = self.rows_.training if self.entropy_ is not None else self.rows_.training.double()
            self.code_gain_, self.code_dropped_ = drop_idle_code(self.networks_, given, self._proposals)
        self.rows_.forget_training()
        fresh = self._guess(random)
        self.measurement_ = measure_information(
            self.networks_.decoder,
            fresh,
            random,
            steps=GUESS_STEPS_FACTOR * steps,
            batch_size=self.batch_size,
        )
        self.information_ = self.measurement_.value

    def _networks(self, random: torch.Generator) -> Networks:
        latent, hidden = self.n_components, tuple(self.hidden)
        decoder: Any
        if isinstance(self.rows_, SymbolRows):
            decoder = CategoricalDecoder(self.rows_.sizes, latent, hidden, random)
        else:
            decoder = GaussianDecoder(len(self.rows_.scale), latent, hidden, random)
        encoder = GaussianEncoder(self.rows_.reader(), latent, hidden, random)
        return Networks(encoder, decoder, self._guess(random))

    def _guess(self, random: torch.Generator) -> MixtureGuess:
        # A guess richer than the encoder rewards folded decoders, whose posteriors no encoder matches.
        normals = self.mixture or (1 if self.encoder == "gaussian" else 4)
        return MixtureGuess(self.rows_.reader(), self.n_components, tuple(self.hidden), normals, random)

    def _tell_if_missed(self) -> None:
        wanted = min(float(self.information), self._most)
        off = abs(self.information_ - wanted) - TOLD_STANDARD_ERRORS * self.measurement_.standard_error
        if self.penalty > 0 and off > TOLD_MISS:
            warnings.warn(
                f"asked for {wanted:.3g} nats, measured {self.measurement_}; raise max_iter "
                f"(it was {self.n_iter_}) or penalty.",
                ConvergenceWarning,
                stacklevel=3,
            )

    @property
    def _most(self) -> float:
        """Nats that a code can carry at most."""
        return math.inf if self.entropy_ is None else self.entropy_

    @property
    def _proposals(self) -> int | None:
        return self.n_proposals if self.encoder == "resampling" else None

    # ------------------------------------------------------------------ using it

    def transform(self, X: Any) -> Array:
        """Return the mean code of every row, (n, n_components)."""
        rows = self._rows(X)
        with own_torch():
            return mean_codes(self.networks_.encoder, self.networks_.decoder, rows, self._proposals)

    def inverse_transform(self, X: Any) -> Array:
        """Return for every code the decoder's mean, or its likeliest symbols."""
        check_is_fitted(self)
        codes = check_array(X, dtype=np.float64)
        if codes.shape[1] != self.n_components:
            raise ValueError(f"codes have {self.n_components} entries each; got {codes.shape[1]}.")
        with own_torch():
            found = blockwise(self.networks_.decoder.likeliest, torch.as_tensor(codes))
        return self.rows_.back(found)

    def sample(self, n_samples: int = 1, random_state: Any = None) -> Array:
        """Draw new rows from the model: a code from the prior, a row from the decoder."""
        check_is_fitted(self)
        n = integer("n_samples", n_samples)
        seed = check_random_state(random_state).randint(np.iinfo(np.int32).max)
        random = torch.Generator().manual_seed(seed)
        with own_torch(), torch.no_grad():
            z = torch.randn((n, self.n_components), generator=random, dtype=torch.float64)
            return self.rows_.back(self.networks_.decoder.sample(z, random).numpy())

    def score_samples(self, X: Any) -> Array:
        """Return the evidence bound of every row, in nats of a density in the data's units."""
        rows = self._rows(X)
        networks = self.networks_
        with own_torch():
            return (
                evidence(networks.encoder, networks.decoder, rows, self._proposals) - self.rows_.log_unit
            )

    def score(self, X: Any, y: Any = None) -> float:
        """Return the mean evidence bound."""
        return float(self.score_samples(X).mean())

    def information_report(self, X: Any) -> InformationReport:
        """Return target, measurement, evidence, rate and reconstruction on given rows."""
        return report_on(self, X, self._rows(X))

    def _rows(self, X: Any) -> torch.Tensor:
        check_is_fitted(self)
        kind = np.float64 if isinstance(self.rows_, NumberRows) else None
        return self.rows_.tensor(validate_data(self, X, dtype=kind, reset=False))

    @property
    def _n_features_out(self) -> int:
        return int(self.networks_.latent)


def default_steps(rows: int) -> int:
    """Return how many steps to train where nobody said: tens of rows do not deserve thousands.

    >>> default_steps(10), default_steps(200), default_steps(100_000)
    (10, 400, 1200)
    """
    return min(max(rows * rows // ROWS_SQUARED_PER_STEP, MIN_STEPS), MAX_STEPS)


def check_parameters(model: Any) -> None:
    """Refuse what means nothing.

    Raises:
        ParameterError: With the name, what was given and what is accepted.
    """
    choice("decoder", model.decoder, ("gaussian", "categorical"))
    choice("encoder", model.encoder, ("gaussian", "resampling"))
    choice("control", model.control, ("integral", "clip", "sign"))
    for name in ("n_components", "n_proposals", "batch_size", "guess_steps"):
        integer(name, getattr(model, name))
    for name in ("mixture", "max_iter"):
        optional(integer, name, getattr(model, name))
    for name in ("information", "penalty"):
        positive(name, getattr(model, name), zero=True)
    for name in ("width", "learning_rate"):
        positive(name, getattr(model, name))
    boolean("drop_code", model.drop_code)
    integers("hidden", model.hidden)
