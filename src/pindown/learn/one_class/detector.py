"""One-class learning with two answers: does it belong, and is it a good one."""

from __future__ import annotations

import warnings
from collections.abc import Iterator
from contextlib import contextmanager
from functools import partial
from os import PathLike
from typing import Any

import numpy as np
from sklearn.base import BaseEstimator, OutlierMixin
from sklearn.utils import check_array, check_random_state
from sklearn.utils.validation import check_is_fitted, validate_data

from pindown.affine import Array
from pindown.learn._inputs import n_axes
from pindown.learn.conformal import DriftWarning, order_drift
from pindown.learn.conformal.detector import judged
from pindown.learn.one_class._calibrating import Companions, companions
from pindown.learn.one_class._density import NeighbourDensity
from pindown.learn.one_class._inputs import InputScaling, flat, image_layout, layout_text
from pindown.learn.one_class._learning import learned
from pindown.learn.one_class._plan import (
    Plan,
    check_goes_on,
    check_parameters,
    chosen_ingredients,
    plan_for,
)
from pindown.learn.one_class.ensemble import Ensemble, warn_of_nothing_learned
from pindown.learn.one_class.report import (
    DetectorReport,
    detector_report,
    learned_network,
    membership_network,
    two_network_bound,
)
from pindown.learn.one_class.scoring import Mixture, Path, Scorer, walk
from pindown.learn.one_class.tuning import EDGE, OTHER_SCALE
from pindown.network import ReluNetwork
from pindown.torch_modules import usable_device
from pindown.validation import integer, is_integer, is_number, positive, refuse


class LocalMaximaDetector(OutlierMixin, BaseEstimator):  # type: ignore[misc]
    r"""A membership score c and a quality score h, learned from members only.

    The log-odds of membership are those of a hybrid: a *density part* (nearest-neighbour distances, of
    standardised features or of orientation histograms of images, weighed by what tells rows from
    generic negatives) plus a *learned part* (networks trained against such negatives and against a
    generator's). The comparator h says which of two similar points is better; ``quality`` is its
    judgement of a point against itself.

    Inside ``pindown.parallel.workers`` the networks that are averaged are trained side by side, with the
    same scores in the end.

    Args:
        preset: ``"auto"`` (by the shape of X), ``"tabular"``, ``"image"``, or ``"paper"``: the printed
            algorithm and nothing else.
        n_estimators: Networks to average; None for 3 (1 for ``"paper"``).
        max_epochs: Epochs of each; None for a number that suits the size of the data. With 0 nothing
            is trained, and every row scores 0 (not with ``"paper"``, nor where density or negatives are
            left out).
        hidden: Widths of the hidden layers, or of the convolutions; None for automatic sizes.
        contamination: Share of the training rows to call outliers, in (0, 0.5]; ``"auto"`` draws the
            line at even odds.
        expects: Share of the training rows that may be outliers themselves, in (0, 0.5]; None for
            members only. Distances are then means to that share of all rows: outliers in a group of
            less than half of it have most neighbours elsewhere; the networks learn without the share of
            rows that is farthest away, and with ``contamination="auto"`` that share is called outliers.
            (``"paper"`` takes no notice.)
        batch_size: Rows in a step; None for 128 (64 for images, 32 for ``"paper"``).
        learning_rate: Learning rate of Adam; None for 5e-3 (2e-3 for images, 2e-4 for ``"paper"``).
        learned_weight: Weight of the networks beside the density; None for the preset's. Networks that
            were not trained, or whose ``held_out_losses_`` show that they learned nothing, have none.
        ingredients: Names of those that take part, of density, negatives, generators, comparator,
            averaging, bending; None for all. (``"paper"`` has its own and takes no notice.)
        ablation: ``"c"`` (c alone with its generator), ``"h"`` (h alone with its own; scores are then
            h(x, x)), ``"only_g_c"``, ``"only_g_h"`` (both, with one generator), or None.
        symmetric: Whether h also learns h(x, G(x)) = 1; None for yes (no for ``"paper"``).
        calibration: Where ``p_values`` come from: ``"split"`` (one companion that learns from half of
            the rows, the others to compare with), ``"cross"`` (five, each with a fifth held out),
            ``"auto"`` (a split; nothing for ``"paper"``), or None for no p-values and a faster fit.
        image_shape: Shape of one image, (h, w), (h, w, c) or (c, h, w), if the rows of X are flat.
        device: Where the networks are trained, as torch names it; scores are computed on the processor.
            Only ``"cpu"`` is tested, and other devices round differently.
        warm_start: Whether ``fit`` goes on with the networks and the scales there are.
        verbose: 0 for silence; else a progress bar after two seconds, on a terminal.
        random_state: Seed; the same seed gives the same scores.

    Attributes:
        offset_: Score below which a row is an outlier.
        history_: Losses of each member's epochs, a list of dictionaries.
        held_out_losses_: Losses of telling training rows from made-up ones that training has not seen,
            for the networks c and their untrained copies: means of -log c(x) - log(1 - c(x')), and
            shares of pairs in the right order. A warning says so if they learned nothing. None where c
            is not trained on made-up rows (``"paper"``, some ablations).
        networks_: The torch modules, ``{"c": [...], "h": [...]}``.
        scorer_: All that was learned, as one value; the following are its parts.
        scaling_: Scales and shapes learned from the training rows.
        density_: The density part, or None; its ``weights`` say how much the distances to 2 and to 5
            neighbours count.
        ensemble_: The networks.
        plan_: Sizes and ingredients used.
        calibration_: The companions of ``p_values`` and the scores that they compare with, or None.
        n_features_in_: Features of a row; pixels times channels of an image.

    >>> import numpy as np
    >>> X = np.random.default_rng(0).normal(size=(60, 2))
    >>> model = LocalMaximaDetector(random_state=0).fit(X)
    >>> model.predict([[0.1, 0.0], [9.0, -9.0]]).tolist()
    [1, -1]
    >>> better, worse = [[0.1, 0.0]], [[5.0, 5.0]]
    >>> bool(model.compare(better, worse) > 0 > model.compare(worse, better))
    True

    Adversarial training of a one-class loss by Wolf et al. 2019, Algorithm 1, with the DCGAN blocks for
    images; where the default departs from it is said in the user guide.
    """

    def __init__(
        self,
        preset: str = "auto",
        *,
        n_estimators: int | None = None,
        max_epochs: int | None = None,
        hidden: Any = None,
        contamination: Any = "auto",
        expects: float | None = None,
        batch_size: int | None = None,
        learning_rate: float | None = None,
        learned_weight: float | None = None,
        ingredients: Any = None,
        ablation: str | None = None,
        symmetric: bool | None = None,
        calibration: str | None = "auto",
        image_shape: tuple[int, ...] | None = None,
        device: str = "cpu",
        warm_start: bool = False,
        verbose: int = 0,
        random_state: Any = None,
    ) -> None:
        self.preset = preset
        self.n_estimators = n_estimators
        self.max_epochs = max_epochs
        self.hidden = hidden
        self.contamination = contamination
        self.expects = expects
        self.batch_size = batch_size
        self.learning_rate = learning_rate
        self.learned_weight = learned_weight
        self.ingredients = ingredients
        self.ablation = ablation
        self.symmetric = symmetric
        self.calibration = calibration
        self.image_shape = image_shape
        self.device = device
        self.warm_start = warm_start
        self.verbose = verbose
        self.random_state = random_state

    def __sklearn_tags__(self) -> Any:
        tags = super().__sklearn_tags__()
        tags.input_tags.three_d_array = True
        return tags

    # ------------------------------------------------------------------ learning

    def fit(self, X: Any, y: Any = None) -> LocalMaximaDetector:
        """Learn from members; Ctrl-C keeps what is trained once the first epoch is done.

        Args:
            X: (n, features), or images (n, h, w), (n, h, w, c) or (n, c, h, w).
            y: Not used.

        Raises:
            ValueError: If a parameter or X means nothing, or training diverged. Whatever was learned
                before is then still there.

        Warns:
            ConvergenceWarning: If the networks had time to learn and are no better than untrained.
        """
        check_parameters(self)
        with self._all_or_nothing():
            if self.warm_start and hasattr(self, "scorer_"):
                self._learn(self._more_rows(X, "fit with warm_start"), self.scaling_, self.scorer_)
                return self
            layout, channels_first = self._layout(X)
            with np.errstate(all="ignore"):  # sums of the largest numbers overflow while checked
                rows = validate_data(self, flat(X), dtype=np.float64, ensure_min_samples=2)
            bent = self.preset != "paper" and "bending" in chosen_ingredients(self.ingredients)
            self._learn(rows, InputScaling.of(rows, layout, channels_first, bent))
        return self

    def partial_fit(self, X: Any, y: Any = None) -> LocalMaximaDetector:
        """Go on learning with more members; scales stay as the first rows set them.

        Earlier rows stay in the density part; the networks, the calibration and ``offset_`` see the new
        rows only.
        """
        if not hasattr(self, "scorer_"):
            return self.fit(X)
        check_parameters(self)
        with self._all_or_nothing():
            rows = self._more_rows(X, "partial_fit")
            self._learn(rows, self.scaling_, self.scorer_, keeps_points=True)
        return self

    @contextmanager
    def _all_or_nothing(self) -> Iterator[None]:
        """Put every attribute back if learning does not come to its end."""
        before = dict(self.__dict__)
        try:
            yield
        except BaseException:
            self.__dict__ = before
            raise

    def _learn(
        self,
        rows: Array,
        scaling: InputScaling,
        earlier: Scorer | None = None,
        keeps_points: bool = False,
    ) -> None:
        rng = np.random.default_rng(check_random_state(self.random_state).randint(2**31 - 1))
        device = usable_device(self.device)
        plan = plan_for(self, scaling, len(rows))
        if earlier is not None:
            check_goes_on(plan, earlier.plan, len(earlier.ensemble.members))
        self.scorer_, self.held_out_losses_ = learned(
            rows,
            scaling,
            plan,
            rng,
            device=device,
            verbose=self.verbose,
            earlier=earlier,
            keeps_points=keeps_points,
        )
        self.offset_ = self._offset(rows)
        self.calibration_ = self._companions(rows, rng, device)
        warn_of_nothing_learned(self.held_out_losses_, self.ensemble_, len(rows))

    def _companions(self, rows: Array, rng: np.random.Generator, device: Any) -> Companions | None:
        method = self.calibration
        if method == "auto":
            method = None if self.preset == "paper" else "split"
        if method is None or self.ensemble_.interrupted:
            return None
        made = companions(
            rows,
            self.scaling_,
            partial(plan_for, self),
            method,
            rng,
            device=device,
            verbose=self.verbose,
        )
        if made is not None and (words := order_drift(made.held_out)):
            warnings.warn(words, DriftWarning, stacklevel=4)
        return made

    def _offset(self, rows: Array) -> float:
        if isinstance(self.contamination, str) and self.plan_.expects:
            return float(np.quantile(self.scorer_.log_odds(rows), self.plan_.expects))
        if isinstance(self.contamination, str):
            # Printed log-odds are not calibrated: nearly everything is above even odds.
            return float(np.quantile(self.scorer_.log_odds(rows), EDGE)) if self.plan_.printed else 0.0
        return float(np.percentile(self.scorer_.log_odds(rows), 100.0 * float(self.contamination)))

    def _more_rows(self, X: Any, caller: str) -> Any:
        rows = self._rows(X)
        if len(rows) < 2:
            raise ValueError(f"{caller} needs at least 2 rows; got 1.")
        return rows

    def _layout(self, X: Any) -> tuple[tuple[int, ...], bool]:
        axes = n_axes(X)
        if axes == 2 and self.image_shape is None:
            if self.preset == "image":
                raise ValueError("preset 'image' needs images, or image_shape for flat rows of pixels.")
            return (), False
        if axes < 2 or self.preset == "tabular":
            return (), False
        return image_layout(X, self.image_shape)

    def _rows(self, X: Any, named: bool = True) -> Array:
        """Return checked rows, (n, d).

        Args:
            X: What the user gave.
            named: Whether a missing name of a feature is worth a warning.
        """
        check_is_fitted(self)
        axes = n_axes(X)
        if axes in (3, 4) and self.scaling_.is_image:
            shape, first = image_layout(X, None)
            # With one channel, first and last are the same.
            if shape != self.scaling_.image_shape or (
                shape[2] > 1 and first != self.scaling_.channels_first
            ):
                wanted = layout_text(self.scaling_.image_shape, self.scaling_.channels_first)
                raise ValueError(
                    f"the detector was fitted on images of {wanted}; got {layout_text(shape, first)}."
                )
        with np.errstate(all="ignore"):  # sums of the largest numbers overflow while they are checked
            if not named and n_axes(X) in (2, 3, 4):
                return check_array(flat(X), dtype=np.float64)
            rows = validate_data(self, flat(X), dtype=np.float64, reset=False)
        self._check_range(rows)
        return rows

    def _check_range(self, rows: Array) -> None:
        """Warn of images on another scale than those of the training: answers about them mean little."""
        if not self.scaling_.is_image:
            return
        least, most = float(self.scaling_.scaled(rows).min()), float(self.scaling_.scaled(rows).max())
        if least < -OTHER_SCALE or most > 1 + OTHER_SCALE:
            low, size = float(self.scaling_.centre[0]), float(self.scaling_.scale[0])
            warnings.warn(
                f"pixels from {rows.min():.4g} to {rows.max():.4g}, those of the training images are "
                f"from {low:.4g} to {low + size:.4g}; bring them to the same scale.",
                stacklevel=4,
            )

    # ------------------------------------------------------------------ answers

    def score_samples(self, X: Any) -> Array:
        """Return the log-odds of membership, (n,): higher for members."""
        rows = self._rows(X)
        return self.scorer_.log_odds(rows)

    def decision_function(self, X: Any) -> Array:
        """Return ``score_samples(X) - offset_``: negative for outliers."""
        return self.score_samples(X) - self.offset_

    def p_values(self, X: Any) -> Array:
        r"""Return conformal p-values of new rows, (n,), in (0, 1]: small for outliers.

        .. math:: p(x) = \frac{1 + \#\{i : s_i \le s(x)\}}{n + 1}

        with the scores of a companion on rows that it has not seen (see ``calibration``). A new member
        that is exchangeable with them has :math:`P[p(x) \le \alpha] \le \alpha`. Training rows are not
        new: most of them are known to the companion.

        Raises:
            ValueError: If there is no calibration.

        Example:
            >>> X = np.random.default_rng(0).normal(size=(400, 2))
            >>> model = LocalMaximaDetector(max_epochs=5, n_estimators=1, random_state=0).fit(X)
            >>> model.p_values([[9.0, 9.0]]).tolist() == [1 / 201]
            True
        """
        rows = self._rows(X)
        return self._calibrated().p_values(rows)

    def _calibrated(self) -> Companions:
        if self.calibration_ is None:
            raise ValueError(
                "this detector was fitted without a calibration, so it has no p-values: fit it with "
                "calibration='split' (files of earlier versions and interrupted fits have none)."
            )
        return self.calibration_

    def predict(
        self, X: Any, *, fdr: float | None = None, false_alarms: float | None = None
    ) -> np.ndarray[Any, Any]:
        """Return 1 for members and -1 for outliers.

        Args:
            X: The rows; with ``fdr`` they are judged together.
            fdr: Share of members among those called outliers, in expectation (Benjamini and Hochberg).
            false_alarms: Rate at which new members are called outliers. If both are None, rows with a
                score below ``offset_`` are outliers, at no particular rate.

        Warns:
            DriftWarning: If the bulk of the rows does not look like the rows of the calibration.
        """
        if fdr is None and false_alarms is None:
            return np.where(self.decision_function(X) >= 0, 1, -1)
        p_values = self.p_values(X)
        return np.where(judged(p_values, self._calibrated().held_out, fdr, false_alarms), -1, 1)

    def quality(self, X: Any) -> Array:
        r"""Return the log-odds of h(x, x), (n,): higher for better examples of their kind.

        .. math:: q(x) + \min(0,\; c(x) + \log 19)

        with the networks' potential q and the log-odds c of membership: what is certainly no member is
        no good example either, whatever networks say so far from all that they have seen (``"paper"``
        has h alone).
        """
        rows = self._rows(X)
        self.scorer_.require_comparator()
        return self.scorer_.quality(rows)

    def compare(self, X1: Any, X2: Any) -> Array:
        """Return the log-odds that rows of X1 are at least as good as those of X2, (n,).

        h(a, b) and h(b, a) are two questions, not one: of two equally good rows both answers are yes.
        Which of two is the better one, ``compare(a, b) - compare(b, a)`` says; that changes its sign
        with the order, and is three times the difference of their qualities (not with ``"paper"``).
        """
        first, second = self._rows(X1), self._rows(X2)
        self.scorer_.require_comparator()
        if len(first) != len(second):
            raise ValueError(f"X1 and X2 must have as many rows; got {len(first)} and {len(second)}.")
        return self.scorer_.compared(first, second)

    def reasons(self, X: Any, groups: Any = None) -> Array:
        """Return which columns made the scores: by how much each score rises without them.

        The columns of a group are given the values that the nearest training rows have there, the others
        stay; what the score gains is what those columns took from it.

        Args:
            X: Rows of vectors.
            groups: Lists of numbers of columns that belong together; None for every column alone.

        Returns:
            Gains in log-odds, (n, groups).

        Example:
            >>> X = np.random.default_rng(0).normal(size=(60, 3))
            >>> model = LocalMaximaDetector(max_epochs=20, random_state=0).fit(X)
            >>> model.reasons([[0.0, 7.0, 0.0]]).argmax()
            np.int64(1)
        """
        rows = self._rows(X)
        if self.scaling_.is_image:
            raise ValueError("reasons are told of the columns of vectors; these are images.")
        wanted = [[j] for j in range(self.n_features_in_)] if groups is None else groups
        return self.scorer_.gains(rows, wanted)

    def improve(
        self,
        x: Any,
        steps: int = 20,
        *,
        step_size: float = 0.1,
        floor: float | None = None,
        fixed: Any = (),
    ) -> Path:
        """Walk uphill in h from one point while membership stays high.

        Args:
            x: One point, of the shape of a row of the training data.
            steps: Most steps.
            step_size: Length of a step, in standard deviations, or in ranges of the pixels.
            floor: Least log-odds of membership on the way; None for ``offset_``, or the start's own
                if that is lower, -inf for no floor.
            fixed: Features that keep their values: numbers of columns, or their names where ``fit`` saw
                names. Of images, numbers of pixels of a flat row.

        Example:
            >>> X = np.random.default_rng(0).normal(size=(60, 2))
            >>> model = LocalMaximaDetector(max_epochs=20, random_state=0).fit(X)
            >>> path = model.improve([1.5, 1.5], steps=5, fixed=[0])
            >>> path.points[:, 0].tolist() == [1.5] * len(path.points)
            True
        """
        self._require_comparator()
        integer("steps", steps, least=0)
        positive("step_size", step_size)
        if floor is not None and floor != -np.inf and not is_number(floor):
            refuse("floor", "a number, -inf for no floor, or None", floor)
        if self.plan_.printed and self.scaling_.is_image:
            raise ValueError("improve works on images with the default preset, not with 'paper'.")
        point = np.asarray(x)
        if point.size != self.n_features_in_:
            raise ValueError(
                f"improve starts at one point of {self.n_features_in_} features; got {point.shape}."
            )
        row = self._rows(point[None], named=False)  # it need not carry the names of its features
        if floor is None:
            floor = min(self.offset_, float(self.scorer_.log_odds(row)[0]))
        return walk(
            self.scorer_,
            row,
            np.shape(x),
            steps=int(steps),
            step_size=float(step_size),
            floor=floor,
            fixed=self._columns(fixed),
        )

    def _columns(self, named: Any) -> np.ndarray[Any, Any]:
        """Return the numbers of columns that are named or numbered."""
        names = list(getattr(self, "feature_names_in_", []))
        found = []
        for column in named:
            if isinstance(column, str) and column in names:
                found.append(names.index(column))
            elif is_integer(column, least=0) and int(column) < self.n_features_in_:
                found.append(int(column))
            else:
                refuse("fixed", f"names or numbers of the {self.n_features_in_} columns", column)
        return np.array(found, dtype=np.int64)

    def report(self) -> DetectorReport:
        """Return what was learned in a few numbers, Theorem 1's network size among them."""
        check_is_fitted(self)
        return detector_report(self.scorer_, self.held_out_losses_)

    def two_network_bound(
        self, X: Any, *, radius: float, margins: Any = (1.0, 1.0), delta: float = 0.05
    ) -> Any:
        """Return a bound on the chance that a new row is no local maximum of h, or no member for c.

        Args:
            X: The sample, training rows included: such bounds hold for what was learned from it.
            radius: Radius of the balls in which a member should be a maximum of h.
            margins: Margins of h and of c.
            delta: Probability with which the bound may fail.
        """
        self._require_comparator()
        rows, scorer = self._rows(X), self.scorer_
        return two_network_bound(scorer, rows, radius=radius, margins=margins, delta=delta)

    def _require_comparator(self) -> None:
        check_is_fitted(self)
        self.scorer_.require_comparator()

    # ------------------------------------------------------------------ what was learned

    @property
    def scaling_(self) -> InputScaling:
        """Scales and shapes learned from the training rows."""
        return self.scorer_.scaling

    @property
    def plan_(self) -> Plan:
        """Sizes and ingredients used."""
        return self.scorer_.plan

    @property
    def density_(self) -> NeighbourDensity | None:
        """The density part, or None."""
        return self.scorer_.density

    @property
    def ensemble_(self) -> Ensemble:
        """The networks."""
        return self.scorer_.ensemble

    @property
    def mixture_(self) -> Mixture | None:
        """How density and networks are added up; None as printed."""
        return self.scorer_.mixture

    @property
    def history_(self) -> list[dict[str, float]]:
        """Losses of each member's epochs."""
        return self.ensemble_.history

    @property
    def networks_(self) -> dict[str, list[Any]]:
        """The networks c and h (or its potential), as they are evaluated."""
        check_is_fitted(self)
        return {"c": self.ensemble_.members, "h": self.ensemble_.comparators}

    @property
    def learned_network_(self) -> ReluNetwork:
        """The networks' mean log-odds of c, before calibration, as one ReLU network of a row of X."""
        check_is_fitted(self)
        return learned_network(self.scorer_)

    @property
    def membership_network_(self) -> ReluNetwork:
        """C as one ReLU network of a row of X, where it is one: without the density part."""
        check_is_fitted(self)
        return membership_network(self.scorer_)

    # ------------------------------------------------------------------ files

    def save(self, path: str | PathLike[str]) -> None:
        """Write the fitted detector as a safetensors file; nothing in it is ever executed."""
        from pindown.learn.one_class._storage import write

        check_is_fitted(self)
        write(self, path)

    @classmethod
    def load(cls, path: str | PathLike[str]) -> LocalMaximaDetector:
        """Read what :meth:`save` wrote.

        Raises:
            ValueError: If the file is missing, damaged, or something else.
        """
        from pindown.learn.one_class._storage import read

        return read(cls, path)
