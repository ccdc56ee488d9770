r"""The tied autoencoder :math:`y \mapsto W^\top \mathrm{relu}(W y - \epsilon)` as a transformer."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
from sklearn.base import BaseEstimator, ClassNamePrefixFeaturesOutMixin, TransformerMixin
from sklearn.utils import check_random_state
from sklearn.utils.validation import check_array, check_is_fitted, validate_data

from pindown.affine import Array
from pindown.datasets.sparse_codes import coherence
from pindown.evidence import Kind
from pindown.learn.sparse_coding.atom_search import likely_atoms
from pindown.learn.sparse_coding.gradient_descent import dead_fraction, descend, reconstruction_loss
from pindown.learn.sparse_coding.support_recovery import RecoveryCertificate, certify_weights
from pindown.learn.sparse_coding.tuning import (
    ATOMS_PER_SIGNAL,
    THRESHOLD_SHARES,
    THRESHOLD_SIGNALS,
)
from pindown.network import ReluNetwork
from pindown.validation import integer, is_number, positive, refuse


@dataclass(frozen=True)
class SparseCodingGuarantee:
    """What is proved about the codes of a fitted autoencoder.

    Attributes:
        kind: ``"exact"`` if, for signals of the model, units are on exactly for the atoms in the signal;
            ``"heuristic"`` if that is not proved.
        certificate: Where it comes from; None if ``sparsity`` or ``code_range`` was not given.
        assumes: What no code can check.
    """

    kind: Kind
    certificate: RecoveryCertificate | None
    assumes: tuple[str, ...]

    def __str__(self) -> str:
        if self.certificate is None:
            return "heuristic: give sparsity and code_range for a certificate"
        return f"{self.kind}: {self.certificate}; assuming {', '.join(self.assumes)}"


class SparseCodingAutoencoder(
    ClassNamePrefixFeaturesOutMixin,  # type: ignore[misc]
    TransformerMixin,  # type: ignore[misc]
    BaseEstimator,  # type: ignore[misc]
):
    r"""Sparse codes by one layer of ReLUs, with the dictionary learnt by gradient descent.

    Codes are :math:`r = \mathrm{relu}(W y - \epsilon)` and reconstructions :math:`W^\top r`; W minimises
    the mean of :math:`\frac12 \lVert W^\top r - y \rVert^2`.

    Args:
        n_components: Number h of units; None for twice the number of features, or as ``init`` has.
        threshold: :math:`\epsilon`: a number, ``"theory"`` for :math:`2 m_1 k (\delta + \mu / \sqrt n)`,
            or ``"auto"``: that if it is certified at the start, otherwise, of a few, the one with which
            likely atoms reconstruct best, and 0 from any other start.
        sparsity: Number k of atoms in a signal, if known.
        code_range: Least and largest non-zero entry of the codes, if known.
        delta: Distance of the weights to the atoms that the theory assumes.
        init: ``"atoms"`` for likely atoms (:func:`~pindown.learn.sparse_coding.likely_atoms`),
            ``"samples"`` for random signals scaled to norm one, from which descent finds none, or
            weights (h, n).
        max_iter: Most steps of gradient descent; 0 keeps ``init``.
        tol: Stop when the gradient is this share of its first norm.
        random_state: Seed of the start.
        verbose: 0 for silence; else a progress bar after two seconds, on a terminal. An interruption
            keeps the weights so far, with a warning.

    Attributes:
        components_: W, (h, n).
        threshold_: :math:`\epsilon`.
        network_: Signal to reconstruction, a :class:`pindown.ReluNetwork`.
        losses_: Loss at the start and after every step.
        loss_: The last of them.
        converged_: Whether the gradient fell below the tolerance.
        dead_fraction_: Share of units that are off on all training signals.
        guarantee_: What is proved about the codes.
        n_iter_: Steps.

    >>> from pindown.datasets.sparse_codes import SparseCodingModel, hadamard_dictionary, near_dictionary
    >>> model = SparseCodingModel(hadamard_dictionary(64), sparsity=1, low=1.0, high=1.2)
    >>> Y, X = model.sample(200)
    >>> start = near_dictionary(model.dictionary, 0.02)
    >>> coder = SparseCodingAutoencoder(
    ...     sparsity=1, code_range=(1.0, 1.2), delta=0.02, init=start, max_iter=0
    ... ).fit(Y)
    >>> coder.guarantee_.kind, bool(((coder.transform(Y) > 0) == (X > 0)).all())
    ('exact', True)

    Mukherjee 2020, chapter 4.
    """

    def __init__(
        self,
        n_components: int | None = None,
        *,
        threshold: float | str = "auto",
        sparsity: int | None = None,
        code_range: tuple[float, float] | None = None,
        delta: float = 0.05,
        init: Any = "atoms",
        max_iter: int = 20,
        tol: float = 1e-4,
        random_state: Any = 0,
        verbose: int = 1,
    ) -> None:
        self.n_components = n_components
        self.threshold = threshold
        self.sparsity = sparsity
        self.code_range = code_range
        self.delta = delta
        self.init = init
        self.max_iter = max_iter
        self.tol = tol
        self.random_state = random_state
        self.verbose = verbose

    def fit(self, X: Any, y: Any = None) -> SparseCodingAutoencoder:
        """Learn the dictionary from signals, one per row."""
        self._check_parameters()
        signals = validate_data(self, X, dtype=np.float64)
        # With signals and threshold in one unit the weights have none: descend at scale one.
        scale = float(np.abs(signals).max()) or 1.0
        unit = signals / scale
        start = self._start(unit)
        self.threshold_ = self._threshold(start, unit, scale)
        eps = self.threshold_ / scale
        steps, tol = self.max_iter, self.tol
        with np.errstate(over="ignore", invalid="ignore"):
            found = descend(start, unit, eps, max_iter=steps, tol=tol, verbose=self.verbose)
            self.losses_ = found.losses * scale * scale
        if not np.isfinite(self.losses_).all():
            raise ValueError("signals or init are too large for float64 arithmetic; scale them down.")
        self.components_, self.converged_ = found.weights, found.converged
        self.loss_, self.n_iter_ = float(self.losses_[-1]), found.n_iter
        self.dead_fraction_ = dead_fraction(self.components_, unit, eps)
        self.guarantee_ = self._guarantee()
        h, n = self.components_.shape
        self.network_ = ReluNetwork.from_layers(
            [(self.components_, np.full(h, -self.threshold_)), (self.components_.T, np.zeros(n))]
        )
        return self

    def transform(self, X: Any) -> Array:
        """Return the codes, one per row."""
        check_is_fitted(self)
        signals = validate_data(self, X, dtype=np.float64, reset=False)
        return np.maximum(signals @ self.components_.T - self.threshold_, 0.0)

    def inverse_transform(self, X: Any) -> Array:
        """Return the signals made of codes."""
        check_is_fitted(self)
        codes = check_array(X, dtype=np.float64)
        if codes.shape[1] != len(self.components_):
            raise ValueError(f"codes have {len(self.components_)} entries each; got {codes.shape[1]}.")
        return codes @ self.components_

    @property
    def _n_features_out(self) -> int:
        return len(self.components_)

    def _start(self, signals: Array) -> Array:
        if not isinstance(self.init, str):  # checked to be an array
            W = check_array(self.init, dtype=np.float64, copy=True)
            h = len(W) if self.n_components is None else self.n_components
            if W.shape != (h, signals.shape[1]):
                raise ValueError(f"init must have shape {(h, signals.shape[1])}; got {W.shape}.")
            return W
        rng = check_random_state(self.random_state)
        h = 2 * signals.shape[1] if self.n_components is None else self.n_components
        if self.init == "atoms":
            return likely_atoms(signals, h, self.sparsity or ATOMS_PER_SIGNAL, rng)
        W = signals[rng.randint(len(signals), size=h)]
        # A jitter tells units apart that start at the same signal.
        W = W + 0.1 * rng.standard_normal(W.shape) * (np.abs(W).max() or 1.0)
        return W / np.linalg.norm(W, axis=1, keepdims=True)

    def _threshold(self, start: Array, signals: Array, scale: float) -> float:
        if not isinstance(self.threshold, str):
            return float(self.threshold)
        if self.sparsity is None or self.code_range is None:
            if self.threshold == "theory":
                raise ValueError("threshold='theory' needs sparsity and code_range")
            return scale * self._tried_threshold(start, signals)
        low, high = map(float, self.code_range)
        norms = np.linalg.norm(start, axis=1)
        mixed = coherence(start.T / np.where(norms > 0.0, norms, 1.0))
        eps = (low + high) * self.sparsity * (self.delta + mixed)
        if self.threshold == "theory" or self._certificate(start, eps):
            return eps
        return scale * self._tried_threshold(start, signals)

    def _tried_threshold(self, start: Array, signals: Array) -> float:
        if not isinstance(self.init, str) or self.init != "atoms":
            return 0.0
        some = signals[:: -(-len(signals) // THRESHOLD_SIGNALS)]
        tried = np.array(THRESHOLD_SHARES) * float(np.max(some @ start.T))
        losses = [reconstruction_loss(start, some, threshold) for threshold in tried]
        return float(tried[int(np.argmin(losses))])

    def _certificate(self, W: Array, eps: float) -> RecoveryCertificate:
        low, high = map(float, self.code_range)  # type: ignore[arg-type]
        k = self.sparsity or 1
        return certify_weights(W, eps, sparsity=k, low=low, high=high, delta=float(self.delta))

    def _guarantee(self) -> SparseCodingGuarantee:
        if self.sparsity is None or self.code_range is None:
            return SparseCodingGuarantee("heuristic", None, ())
        certificate = self._certificate(self.components_, self.threshold_)
        assumes = (
            f"signals are sums of at most {self.sparsity} atoms",
            f"with entries in [{self.code_range[0]:g}, {self.code_range[1]:g}]",
            f"of atoms within {self.delta:g} of the weights",
        )
        kind: Kind = "exact" if certificate.kind == "exact" else "heuristic"
        return SparseCodingGuarantee(kind, certificate, assumes)

    def _check_parameters(self) -> None:
        for name in ("n_components", "sparsity"):
            if getattr(self, name) is not None:
                integer(name, getattr(self, name))
        integer("max_iter", self.max_iter, least=0)
        for name in ("tol", "delta"):
            positive(name, getattr(self, name), zero=True)
        eps = self.threshold
        if eps not in ("auto", "theory") if isinstance(eps, str) else not is_number(eps):
            refuse("threshold", "a finite number, 'auto' or 'theory'", eps)
        words = isinstance(self.init, str) and self.init not in ("atoms", "samples")
        if words or (not isinstance(self.init, str) and np.ndim(self.init) != 2):
            refuse("init", "'atoms', 'samples' or an array (n_components, n)", self.init)
        self._check_code_range()

    def _check_code_range(self) -> None:
        if self.code_range is None:
            return
        ends = np.atleast_1d(np.asarray(self.code_range, dtype=object))
        numbers = ends.shape == (2,) and all(is_number(v, 0) for v in ends)
        if not numbers or ends[0] > ends[1]:
            refuse("code_range", "two numbers 0 <= low <= high", self.code_range)
