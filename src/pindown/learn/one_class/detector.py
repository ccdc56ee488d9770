"""One-class learning with two answers: does it belong, and is it a good one."""

from __future__ import annotations

from os import PathLike
from typing import Any

import numpy as np
from sklearn.utils.validation import check_is_fitted, validate_data

from pindown.learn.one_class.checks import check_parameters, chosen_ingredients, flat
from pindown.learn.one_class.frame import Frame
from pindown.learn.one_class.improvement import Path, walk
from pindown.learn.one_class.learning import Learner
from pindown.learn.one_class.report import DetectorReport, detector_report, two_network_bound
from pindown.validation import integer, is_number


class LocalMaximaDetector(Learner):
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
        batch_size: Rows in a step; None for 128 (64 for images, 32 for ``"paper"``).
        learning_rate: Of Adam; None for 5e-3 (2e-3 for images, 2e-4 for ``"paper"``).
        learned_weight: Weight of the networks beside the density; None for the preset's. Networks that
            were not trained, or whose ``prices_`` show that they learned nothing, have none.
        ingredients: Names of those that take part, of density, negatives, generators, comparator,
            averaging, bending; None for all. (``"paper"`` has its own and takes no notice.)
        ablation: ``"c"`` (c alone with its generator), ``"h"`` (h alone with its own; scores are then
            h(x, x)), ``"only_g_c"``, ``"only_g_h"`` (both, with one generator), or None.
        symmetric: Whether h also learns h(x, G(x)) = 1; None for yes (no for ``"paper"``).
        image_shape: Shape of one image, (h, w), (h, w, c) or (c, h, w), if the rows of X are flat.
        device: Where the networks are trained, as torch names it; scores are computed on the processor.
            Only ``"cpu"`` is tested, and other devices round differently.
        warm_start: Whether ``fit`` goes on with the networks and the scales there are.
        verbose: 0 for silence; else a progress bar after two seconds, on a terminal.
        random_state: Seed; the same seed gives the same scores.

    Attributes:
        offset_: Score below which a row is an outlier.
        history_: Losses of each member's epochs, a list of dictionaries.
        prices_: What telling training rows from made-up ones costs the networks c, and their untrained
            copies: means of -log c(x) - log(1 - c(x')), and shares of pairs in the right order. A
            warning says so if they learned nothing. None where c is not trained on made-up rows
            (``"paper"``, some ablations).
        networks_: The torch modules, ``{"c": [...], "h": [...]}``.
        frame_: Scales and shapes learned from the training rows.
        density_: The density part, or None; its ``weights`` say how much the distances to 2 and to 5
            neighbours count.
        ensemble_: The networks.
        plan_: Sizes and ingredients used.
        n_features_in_: Features of a row; pixels times channels of an image.

    >>> import numpy as np
    >>> X = np.random.default_rng(0).normal(size=(200, 2))
    >>> model = LocalMaximaDetector(random_state=0).fit(X)
    >>> model.predict([[0.1, 0.0], [9.0, -9.0]]).tolist()
    [1, -1]
    >>> better, worse = [[0.1, 0.0]], [[5.0, 5.0]]
    >>> bool(model.compare(better, worse) > 0 > model.compare(worse, better))
    True

    Wolf et al. 2019, Algorithm 1; where the default departs from it is said in the user guide.
    """

    def __init__(
        self,
        preset: str = "auto",
        *,
        n_estimators: int | None = None,
        max_epochs: int | None = None,
        hidden: Any = None,
        contamination: Any = "auto",
        batch_size: int | None = None,
        learning_rate: float | None = None,
        learned_weight: float | None = None,
        ingredients: Any = None,
        ablation: str | None = None,
        symmetric: bool | None = None,
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
        self.batch_size = batch_size
        self.learning_rate = learning_rate
        self.learned_weight = learned_weight
        self.ingredients = ingredients
        self.ablation = ablation
        self.symmetric = symmetric
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
        if self.warm_start and hasattr(self, "ensemble_"):
            with self._all_or_nothing():
                self._learn(self._more_rows(X, "fit with warm_start"), self.ensemble_)
            return self
        with self._all_or_nothing():
            layout, channels_first = self._layout(X)
            with np.errstate(all="ignore"):  # sums of the largest numbers overflow while checked
                rows = validate_data(self, flat(X), dtype=np.float64, ensure_min_samples=2)
            bent = self.preset != "paper" and "bending" in chosen_ingredients(self.ingredients)
            self.frame_ = Frame.of(rows, layout, channels_first, bent)
            self._learn(rows, None)
        return self

    def partial_fit(self, X: Any, y: Any = None) -> LocalMaximaDetector:
        """Go on learning with more members; scales stay as the first rows set them.

        Earlier rows stay in the density part; the networks, the calibration and ``offset_`` see the new
        rows only.
        """
        if not hasattr(self, "ensemble_"):
            return self.fit(X)
        check_parameters(self)
        with self._all_or_nothing():
            self._learn(self._more_rows(X, "partial_fit"), self.ensemble_, self.density_)
        return self

    def _more_rows(self, X: Any, caller: str) -> Any:
        rows = self._rows(X)
        if len(rows) < 2:
            raise ValueError(f"{caller} needs at least 2 rows, got 1.")
        return rows

    # ------------------------------------------------------------------ using it

    def improve(
        self, x: Any, steps: int = 20, *, step_size: float = 0.1, floor: float | None = None
    ) -> Path:
        """Walk uphill in h from one point while membership stays high.

        Args:
            x: One point, of the shape of a row of the training data.
            steps: Most steps.
            step_size: Length of a step, in standard deviations, or in ranges of the pixels.
            floor: Least log-odds of membership on the way; None for ``offset_``, or the start's own
                if that is lower, -inf for no floor.
        """
        self._need_fitted_comparator()
        integer("steps", steps, least=0)
        if not (is_number(step_size) and step_size > 0):
            raise ValueError(f"step_size must be a positive number, got {step_size!r}.")
        if floor is not None and floor != -np.inf and not is_number(floor):
            raise ValueError(f"floor must be a number, -inf for no floor, or None; got {floor!r}.")
        if self.plan_.printed and self.frame_.is_image:
            raise ValueError("improve works on images with the default preset, not with 'paper'.")
        return walk(self, x, int(steps), float(step_size), floor)

    def report(self) -> DetectorReport:
        """Return what was learned in a few numbers, Theorem 1's network size among them."""
        check_is_fitted(self)
        return detector_report(self)

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
        self._need_fitted_comparator()
        return two_network_bound(self, self._rows(X), radius=radius, margins=margins, delta=delta)

    # ------------------------------------------------------------------ files

    def save(self, path: str | PathLike[str]) -> None:
        """Write the fitted detector as a safetensors file; nothing in it is ever executed."""
        from pindown.learn.one_class.storage import write

        check_is_fitted(self)
        write(self, path)

    @classmethod
    def load(cls, path: str | PathLike[str]) -> LocalMaximaDetector:
        """Read what :meth:`save` wrote.

        Raises:
            ValueError: If the file is missing, damaged, or something else.
        """
        from pindown.learn.one_class.reading import read

        return read(cls, path)
