"""An estimator that finds a finite symmetry group in data made of orbits, or says that there is none."""

from __future__ import annotations

import sys
from dataclasses import replace
from typing import Any

import numpy as np
from sklearn.base import BaseEstimator, ClassNamePrefixFeaturesOutMixin, TransformerMixin
from sklearn.utils import check_array
from sklearn.utils.validation import check_is_fitted, validate_data

from pindown.affine import Array
from pindown.deadline import Deadline, checked_budget
from pindown.progress import silent
from pindown.symmetry.discovery._orbits import (
    Pairs,
    checked_labels,
    orbits_by_label,
    orbits_by_norm,
    unit_of,
)
from pindown.symmetry.discovery._orthogonal_maps import Maps, nearest_elements
from pindown.symmetry.discovery._search import Discovery, discover
from pindown.symmetry.discovery.identification import identify
from pindown.symmetry.groups import Group
from pindown.validation import choice, integer, optional

_METHODS = ("relations", "gramian")


class SymmetryLearner(ClassNamePrefixFeaturesOutMixin, TransformerMixin, BaseEstimator):  # type: ignore[misc]
    r"""Find the finite group of orthogonal maps whose orbits the data are made of.

    Samples come in orbits: which of them belong together is known (or visible in their norms), which
    element relates which is not. The group is looked for on some orbits and judged on the others. It is
    claimed only if its maps multiply by a table, predict the held-out members of orbits, do not predict
    hard negatives, map orbits onto themselves, and are used alike. The training loss counts for nothing.

    Parameters
    ----------
    method : {"relations", "gramian"}, default="relations"
        ``"relations"`` fits the maps between members one by one and completes them by their products.
        ``"gramian"`` is the route of the lectures: learn atoms under a penalty on their Gramian, read
        permutations off it.
    max_order : int, default=60
        The largest group to look for.
    complete : bool, default=True
        Whether orbits of three or more members must be whole, and pairs must use all elements alike.
        With False a few random members of each orbit will do.
    n_restarts : int, default=4
        Searches at each level of noise with other random candidates (or starts of the atoms).
    n_atoms : int, default=None
        Columns learned by ``"gramian"``; None is the number of features.
    budget : float, default=60.0
        Seconds after which no new candidate is tried.
    random_state : int, Generator or None, default=None
        Splits the orbits and chooses candidates.
    verbose : int, default=0
        1 prints to stderr what each attempt came to. Ctrl-C ends the search with what is known by then.

    Attributes:
    ----------
    claimed_ : bool
        Whether a group is claimed.
    reason_ : str
        Why, or why not.
    group_ : Group or None
        The group with its matrices, named if it is a known one; None without a claim.
    table_ : ndarray of shape (order, order) or None
        Its multiplication table.
    matrices_ : ndarray of shape (order, d, d)
        Its elements; the identity alone without a claim.
    score_ : float
        Share of held-out pairs explained minus share of hard negatives; 0 if nothing was found.
    evidence_ : GroupEvidence
        What the claim rests on, with the numbers.
    n_orbits_ : int
        Orbits of two or more members that were seen.

    Notes:
    -----
    Only the action on the data can be found: what a group does in directions that the data do not span,
    and elements that move nothing, leave no trace.

    Examples:
    --------
    >>> from pindown.symmetry import dihedral
    >>> hexagon = dihedral(6).permuting()
    >>> rng = np.random.default_rng(0)
    >>> orbits = np.array([rng.permutation(hexagon.orbit(x)) for x in rng.standard_normal((20, 6))])
    >>> learner = SymmetryLearner(random_state=0).fit(orbits)
    >>> learner.claimed_, learner.group_.name, learner.table_.shape
    (True, 'D6', (12, 12))
    >>> SymmetryLearner(random_state=0).fit(rng.standard_normal((20, 12, 6))).claimed_
    False

    Lecture course, slides on learning symmetries.
    """

    def __init__(
        self,
        method: str = "relations",
        *,
        max_order: int = 60,
        complete: bool = True,
        n_restarts: int = 4,
        n_atoms: int | None = None,
        budget: float = 60.0,
        random_state: Any = None,
        verbose: int = 0,
    ) -> None:
        self.method = method
        self.max_order = max_order
        self.complete = complete
        self.n_restarts = n_restarts
        self.n_atoms = n_atoms
        self.budget = budget
        self.random_state = random_state
        self.verbose = verbose

    def fit(self, X: Any, y: Any = None) -> SymmetryLearner:
        """Look for a group.

        Args:
            X: Samples (n, d), or orbits (n, m, d) with m members each.
            y: With samples: the label of the orbit of each, (n,); or a second member of the orbit of
                each, (n, d); or None, which takes samples of equal norm for an orbit.
        """
        self._check()
        orbits = self._orbits(X, y)
        self.n_orbits_ = len(orbits)
        rng = _generator(self.random_state)
        deadline = Deadline.after(self.budget)
        self._atoms: dict[int, Any] = {}
        find = self._by_gramian if self.method == "gramian" else None
        unit = unit_of(orbits)
        found = discover(
            [members / unit for members in orbits],
            self.n_features_in_,
            find,
            rng=rng,
            largest=self.max_order,
            complete=self.complete,
            n_restarts=1 if find else self.n_restarts,
            deadline=deadline,
            report=_printed if self.verbose else silent,
        )
        del self._atoms
        self._settle(found, unit)
        return self

    def _check(self) -> None:
        choice("method", self.method, _METHODS)
        integer("max_order", self.max_order, least=2)
        integer("n_restarts", self.n_restarts)
        optional(integer, "n_atoms", self.n_atoms)
        checked_budget(self.budget)

    def _orbits(self, X: Any, y: Any) -> list[Array]:
        """Return the orbits in any of the forms in which they may be given."""
        if (np.ndim(X) if isinstance(X, list | tuple) else getattr(X, "ndim", 2)) == 3:
            if y is not None:
                raise ValueError(
                    "X of shape (orbits, members, d) says what belongs together; leave y out."
                )
            stacked = np.asarray(X)
            n, members, d = stacked.shape
            if not d:
                raise ValueError(f"X of shape {stacked.shape} has 0 feature(s); at least 1 is needed.")
            flat = validate_data(self, stacked.reshape(-1, d), dtype=np.float64)
            return list(flat.reshape(n, members, d)) if members > 1 else []
        samples = validate_data(self, X, dtype=np.float64)
        if y is None:
            return orbits_by_norm(samples)
        given = np.asarray(y)
        if given.ndim == 2 and given.shape == samples.shape:
            partners = check_array(given, dtype=np.float64)
            return list(np.stack([samples, partners], axis=1))
        return orbits_by_label(samples, checked_labels(given, samples.shape))

    def _by_gramian(
        self, pairs: Pairs, noise: float, rng: np.random.Generator, deadline: Deadline
    ) -> Maps:
        """Learn atoms and read maps off their Gramian; the start that explains most pairs is taken."""
        from pindown.symmetry.discovery.group_from_gramian import group_recovery, learn_orbit

        d = pairs.first.shape[1]
        if d not in self._atoms:  # the atoms do not depend on the level of noise, what is read off does
            self._atoms[d] = learn_orbit(
                pairs, self.n_atoms, rng=rng, n_restarts=self.n_restarts, budget=deadline.left
            )
        found = [group_recovery(atoms.W, pairs, noise) for atoms in self._atoms[d]]
        best = int(np.argmax([maps.explained.mean() for maps in found]))
        found[best].out_of_time = deadline.passed
        return found[best]

    def _settle(self, found: Discovery, unit: float) -> None:
        self.evidence_ = replace(found.evidence, noise=found.evidence.noise * unit)
        self.claimed_ = found.evidence.claimed
        self.reason_ = found.evidence.reason
        self.score_ = found.evidence.score
        self.group_: Group | None = None
        self.table_ = None
        self.matrices_ = np.eye(self.n_features_in_)[None]
        if self.claimed_:
            self.group_ = _named_group(found)
            self.table_ = self.group_.table
            self.matrices_ = self.group_.matrices
        self._n_features_out = self.n_features_in_ * len(self.matrices_)

    def transform(self, X: Any) -> Array:
        """Return the signature of every sample: projections on the orbit of each axis, sorted.

        It is the same for all members of an orbit. Without a claim it is the sample itself.
        """
        check_is_fitted(self)
        samples = validate_data(self, X, dtype=np.float64, reset=False)
        images = np.einsum("gij,nj->nig", self.matrices_, samples)
        return np.asarray(np.sort(images, axis=2).reshape(len(samples), -1))

    def distance(self, X: Any, other: Any) -> Array:
        """Return how far each row of ``other`` is from the orbit of the same row of ``X``."""
        check_is_fitted(self)
        first = validate_data(self, X, dtype=np.float64, reset=False)
        second = check_array(other, dtype=np.float64)
        if first.shape != second.shape:
            raise ValueError(
                f"two arrays of one shape are compared; got {first.shape} and {second.shape}."
            )
        return nearest_elements(self.matrices_, first, second)[0]


def _named_group(found: Discovery) -> Group:
    """Return a discovered group under its known name and order of elements, if it has one."""
    match = identify(found.table)
    if match is None:
        order = len(found.table)
        plain = Group(f"G{order}", tuple(range(order)), found.table, tuple(range(1, order)))
        return plain.acting_by(found.matrices)
    known, image = match
    return known.acting_by(found.matrices[image])


def _printed(what: str, done: float, total: float | None) -> None:
    print(what, file=sys.stderr)


def _generator(random_state: Any) -> np.random.Generator:
    if isinstance(random_state, np.random.RandomState):
        return np.random.default_rng(random_state.randint(2**31))
    return np.random.default_rng(random_state)
