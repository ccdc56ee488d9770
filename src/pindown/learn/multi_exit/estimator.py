"""A classifier whose network has exits: it can answer early, on a budget, or at any time."""

from __future__ import annotations

import math
from collections.abc import Iterator
from os import PathLike
from pathlib import Path
from typing import Any

import numpy as np
import torch
from numpy.typing import NDArray
from sklearn.base import BaseEstimator, ClassifierMixin
from sklearn.utils import check_random_state
from sklearn.utils.multiclass import check_classification_targets
from sklearn.utils.validation import check_is_fitted, validate_data
from torch import Tensor

from pindown.affine import Array
from pindown.deadline import Deadline, Stopwatch
from pindown.learn.multi_exit._inputs import InputScaling, as_images, checked_rows
from pindown.learn.multi_exit.calibration import MODES, ExitCalibration, timed_policy
from pindown.learn.multi_exit.costs import ExitCosts, exit_costs, measured_costs
from pindown.learn.multi_exit.inference import EarlyAnswers, FittedNetwork, anytime, early_exit
from pindown.learn.multi_exit.latency import LatencyCurve, latency_curve
from pindown.learn.multi_exit.model import export_prefixes, prefix_network
from pindown.learn.multi_exit.networks import NETWORKS, check_model, make_model
from pindown.learn.multi_exit.policy import ExitPolicy
from pindown.learn.multi_exit.self_distillation import STRATEGIES, MultiExitDistiller
from pindown.learn.multi_exit.training import (
    OPTIMISERS,
    default_epochs,
    default_rate,
    make_optimiser,
    split_off_unlabelled,
    stratified_split,
    train,
)
from pindown.learn.multi_exit.tuning import ROWS_PER_CHUNK, TIMED_CALLS
from pindown.network import ReluNetwork
from pindown.progress import watched
from pindown.torch_modules import own_torch, usable_device
from pindown.validation import choice, integer, is_number, number, optional, positive


class MultiExitClassifier(ClassifierMixin, BaseEstimator):  # type: ignore[misc]
    r"""A network with exits, whose early exits learn from labels and from its last exit.

    Args:
        network: ``"mlp"`` (tables), ``"cnn"`` or ``"msdnet"`` (images), or ``"auto"``: by X's shape.
        module: A :class:`MultiExitModel` of your own (copied, never changed), or a function of the shape
            of an input and the number of classes that makes one; in place of ``network``.
        loss: ``"distil"``, or ``"exit-wise"``: labels alone.
        teachers: Who teaches: ``"last"``, ``"later"``, ``"next"``, ``"ensemble"``, or a list of exits
            for each exit.
        mu: Tempered confidence of the teachers above which the temperature rises; None for halfway
            between a guess and certainty.
        tau_star: Factor by which it rises.
        temperature: A constant temperature in place of the rising one.
        max_epochs: Epochs; None for a number that suits the size of the data, from 10 to 100.
        batch_size: Rows in a step.
        optimiser: ``"adam"``, or ``"sgd"`` with Nesterov's momentum.
        learning_rate: None for 1e-2 (Adam) or 0.05 on tables, 5e-3 or 0.1 on images.
        weight_decay: Decay of the weights.
        ensemble: Whether an exit answers with the mean of its probabilities and those before it.
        validation_fraction: Share of the labelled rows that is held out to choose policies; where that
            is too few, policies are chosen on training rows, as ``validated_on_`` then says.
        standardise: Whether features (channels of images) are scaled to mean 0 and deviation 1.
        unlabelled_label: The label of rows without one, such as -1; None if all rows have one.
        device: Where the network is trained and used, as torch names it. Only ``"cpu"`` is tested.
        verbose: 0 for silence; else a progress bar after two seconds, on a terminal.
        random_state: Seed; the same seed gives the same network.

    Attributes:
        classes_: The classes.
        model_: The network.
        costs_: Operations of its stages and heads.
        scaling_: Shape and scale of inputs, learned from the training rows.
        history_: Loss, temperature and confidence of every epoch.
        temperature_: At the end.
        exit_accuracy_: Accuracy of each exit on held-out rows.
        validated_on_: Where policies are chosen.
        n_iter_: Epochs done.

    >>> from sklearn.datasets import load_iris
    >>> X, y = load_iris(return_X_y=True)
    >>> model = MultiExitClassifier(random_state=0).fit(X, y)
    >>> bool(model.score(X, y) > 0.9), model.predict(X[:2], budget=0.5).tolist()
    (True, [0, 0])

    Phuong 2021, chapter 6.
    """

    def __init__(
        self,
        network: str = "auto",
        *,
        module: Any = None,
        loss: str = "distil",
        teachers: Any = "last",
        mu: float | None = None,
        tau_star: float = 1.05,
        temperature: float | None = None,
        max_epochs: int | None = None,
        batch_size: int = 64,
        optimiser: str = "adam",
        learning_rate: float | None = None,
        weight_decay: float = 1e-4,
        ensemble: bool = False,
        validation_fraction: float = 0.1,
        standardise: bool = True,
        unlabelled_label: Any = None,
        device: str = "cpu",
        verbose: int = 0,
        random_state: Any = None,
    ) -> None:
        self.network = network
        self.module = module
        self.loss = loss
        self.teachers = teachers
        self.mu = mu
        self.tau_star = tau_star
        self.temperature = temperature
        self.max_epochs = max_epochs
        self.batch_size = batch_size
        self.optimiser = optimiser
        self.learning_rate = learning_rate
        self.weight_decay = weight_decay
        self.ensemble = ensemble
        self.validation_fraction = validation_fraction
        self.standardise = standardise
        self.unlabelled_label = unlabelled_label
        self.device = device
        self.verbose = verbose
        self.random_state = random_state

    def __sklearn_tags__(self) -> Any:
        tags = super().__sklearn_tags__()
        tags.input_tags.three_d_array = True
        return tags

    def fit(self, X: Any, y: Any, X_unlabelled: Any = None) -> MultiExitClassifier:
        """Train the network; Ctrl-C keeps the weights once the first epoch is done.

        Args:
            X: Rows (n, features), or images (n, height, width) or (n, channels, height, width).
            y: Labels.
            X_unlabelled: Rows without labels, alike; early exits learn from the last one there too.

        Raises:
            ValueError: If a parameter or the data mean nothing, or training diverged.
        """
        self._check_parameters()
        flat, shape = as_images(X)
        rows, y = validate_data(self, flat, y, dtype=np.float64)
        rows, y, unmarked = split_off_unlabelled(rows, y, self.unlabelled_label)
        free = np.concatenate([unmarked, self._free_rows(X_unlabelled, shape)])
        check_classification_targets(y)
        self.classes_, labels = np.unique(y, return_inverse=True)
        if len(self.classes_) < 2:
            raise ValueError(
                f"a classifier needs two classes or more; y holds one class, {self.classes_[0]}."
            )
        shape = shape or (rows.shape[1],)
        self.scaling_ = InputScaling.of(np.concatenate([rows, free]), shape, self.standardise)
        rng = check_random_state(self.random_state)
        kept, held = stratified_split(labels, self.validation_fraction, rng)
        with own_torch(), torch.random.fork_rng(devices=[]):
            torch.manual_seed(int(rng.randint(2**31 - 1)))
            self._train(rows[kept], labels[kept], free)
            where = held if len(held) else kept
            x = self._fitted.inputs(rows[where])
            self.calibration_ = ExitCalibration(
                self._fitted.all_probabilities(x),
                labels[where],
                exit_costs(self.model_, x[:1]),
                "held-out rows" if len(held) else "training rows",
            )
        return self

    # ------------------------------------------------------------------ steps of fit

    def _check_parameters(self) -> None:
        choice("network", self.network, NETWORKS)
        choice("loss", self.loss, ("distil", "exit-wise"))
        choice("optimiser", self.optimiser, OPTIMISERS)
        if isinstance(self.teachers, str):
            choice("teachers", self.teachers, STRATEGIES)
        optional(integer, "max_epochs", self.max_epochs)
        integer("batch_size", self.batch_size, least=2)
        optional(positive, "learning_rate", self.learning_rate)
        positive("weight_decay", self.weight_decay, zero=True)
        number("validation_fraction", self.validation_fraction, 0.0, 1.0, below=True)

    def _free_rows(self, extra: Any, shape: tuple[int, ...]) -> Array:
        """Return the rows that were given without labels."""
        if extra is None:
            return np.empty((0, self.n_features_in_))
        more, other = as_images(extra)
        if other != shape:
            raise ValueError(f"X has inputs of shape {shape or 'rows'}, X_unlabelled {other or 'rows'}.")
        return np.asarray(validate_data(self, more, dtype=np.float64, reset=False))

    def _train(self, rows: Array, labels: NDArray[np.int64], free: Array) -> None:
        device, image = usable_device(self.device), self.scaling_.is_image
        classes = len(self.classes_)
        model = make_model(self.network, self.module, self.scaling_.shape, classes).to(device)
        x = self.scaling_.inputs(rows, torch.float32).to(device)
        check_model(model, x[:2], classes)
        distiller = MultiExitDistiller(
            model,
            self.teachers if self.loss == "distil" else "none",
            mu=(1 + 1 / classes) / 2 if self.mu is None else self.mu,
            tau_star=self.tau_star,
            temperature=self.temperature,
        )
        batch = min(self.batch_size, len(x))
        steps = math.ceil(len(x) / batch)
        epochs = default_epochs(steps, image) if self.max_epochs is None else self.max_epochs
        given = self.learning_rate
        rate = default_rate(self.optimiser, image) if given is None else given
        self.history_ = train(
            model,
            distiller,
            make_optimiser(self.optimiser, model, rate, self.weight_decay),
            x,
            torch.as_tensor(labels, device=device),
            unlabelled=self.scaling_.inputs(free, torch.float32).to(device) if len(free) else None,
            epochs=watched(range(epochs), "training", verbose=self.verbose),
            n_epochs=epochs,
            batch_size=batch,
            generator=torch.Generator().manual_seed(torch.initial_seed()),
        )
        # In single precision answers would depend, in the last digits, on the rows beside them.
        self.model_ = model if image else model.double()
        self.temperature_, self.n_iter_ = distiller.temperature, len(self.history_.loss)

    # ------------------------------------------------------------------ where rows leave

    def calibrate(self, X: Any, y: Any = None) -> MultiExitClassifier:
        """Choose future policies on these rows in place of those held out in training.

        Args:
            X: Rows that training has not seen.
            y: Their labels; without them policies follow confidence and cost alone.
        """
        x = self._inputs(X)
        labels = None if y is None else self._class_numbers(y, len(x))
        probabilities = self._fitted.all_probabilities(x)
        where = "rows given to calibrate"
        self.calibration_ = ExitCalibration(probabilities, labels, self.costs_, where)
        return self

    def measure_costs(self, X: Any, *, batch_size: int = 1, runs: int = 31) -> MultiExitClassifier:
        """Let budgets be shares of the full network's time on this machine, not of its operations.

        Args:
            X: Rows, of which the first batch is used.
            batch_size: Rows that will be handed over at once.
            runs: The median of this many is taken.
        """
        integer("batch_size", batch_size)
        costs = measured_costs(self.model_, self._inputs(X)[:batch_size], runs=runs)
        self.calibration_ = self.calibration_.with_costs(costs)
        return self

    def keep_time(
        self, X: Any, y: Any = None, *, budget: float, batch_size: int = 1, runs: int = 5
    ) -> ExitPolicy:
        """Let this budget be a share of the time of ``predict``, checked with the clock on these rows.

        From now on ``predict(X, budget=budget)`` uses the policy that is returned.

        Args:
            X: Rows that training has not seen.
            y: Their labels, or None.
            budget: Share of the full network's time, in (0, 1].
            batch_size: Rows that will be handed over at once.
            runs: The median of this many is taken.
        """
        integer("batch_size", batch_size)
        x = self._inputs(X)
        labels = None if y is None else self._class_numbers(y, len(x))
        settings: dict[str, Any] = {"batch_size": batch_size, "runs": runs, "ensemble": self.ensemble}
        share = self._overhead(X[:batch_size], x[:batch_size])
        policy = timed_policy(self.model_, x, budget, labels, overhead=share, **settings)
        self.timed_policies_[float(budget)] = policy
        return policy

    def _overhead(self, rows: Any, x: Tensor) -> float:
        """Return the time that checking and scaling rows takes, in times of the full network."""
        ready, answered = [], []
        for _ in range(TIMED_CALLS):
            watch = Stopwatch()
            self._inputs(rows)
            ready.append(watch.seconds)
            self._fitted.probabilities_at(x, self.model_.n_exits, ensemble=self.ensemble)
            answered.append(watch.seconds - ready[-1])
        return float(np.median(ready) / np.median(answered))

    def policy(self, budget: float, *, mode: str = "confidence") -> ExitPolicy:
        """Return the policy for a share of the full network's operations, or of its time if measured."""
        check_is_fitted(self)
        return self.calibration_.policy(budget, mode, self.ensemble)

    @property
    def costs_(self) -> ExitCosts:
        """What exits cost: operations, or seconds once they were measured."""
        return self.calibration_.costs

    @property
    def validated_on_(self) -> str:
        """Where policies are chosen."""
        return self.calibration_.validated_on

    @property
    def timed_policies_(self) -> dict[float, ExitPolicy]:
        """Policies of :meth:`keep_time`, by their budgets."""
        return self.calibration_.timed

    @property
    def exit_accuracy_(self) -> Array:
        """Accuracy of each exit (of each ensemble so far, with ``ensemble``) on the held-out rows.

        Not a number if they have no labels.
        """
        return self.calibration_.accuracy(self.ensemble)

    # ------------------------------------------------------------------ answers

    def predict(
        self, X: Any, *, budget: float | None = None, exit: int | None = None, mode: str = "confidence"
    ) -> NDArray[Any]:
        """Return classes; arguments as in :meth:`predict_proba`."""
        probabilities = self.predict_proba(X, budget=budget, exit=exit, mode=mode)
        return self.classes_[probabilities.argmax(axis=1)]

    def predict_proba(
        self, X: Any, *, budget: float | None = None, exit: int | None = None, mode: str = "confidence"
    ) -> Array:
        """Return the probabilities of the classes, (n, classes).

        Args:
            X: Rows, or images.
            budget: Share of the full network's operations to spend per row on average, in (0, 1]; None
                for the whole network.
            exit: The exit to answer at, from 1, in place of a budget.
            mode: ``"confidence"``: rows leave where the network is sure; ``"fixed"``: all at the most
                accurate exit within the budget.
        """
        choice("mode", mode, MODES)
        if budget is not None:
            if exit is not None:
                raise ValueError("give a budget or an exit, not both.")
            return self.early_answers(X, budget, mode=mode).probabilities.double().numpy()
        x = self._inputs(X)
        m = self.model_.n_exits if exit is None else exit
        self.model_.require_exit(m)
        chunks, ensemble = torch.split(x, ROWS_PER_CHUNK), self.ensemble
        parts = [self._fitted.probabilities_at(part, m, ensemble=ensemble) for part in chunks]
        return torch.cat(parts).double().numpy()

    def early_answers(self, X: Any, budget: float, *, mode: str = "confidence") -> EarlyAnswers:
        """Return probabilities and the exit at which each row left, computing no more than needed."""
        x = self._inputs(X)
        thresholds = self.policy(budget, mode=mode).thresholds
        parts = [
            early_exit(self.model_, part, thresholds, ensemble=self.ensemble)
            for part in torch.split(x, ROWS_PER_CHUNK)
        ]
        return EarlyAnswers(
            torch.cat([part.probabilities for part in parts]).cpu(),
            torch.cat([part.exits for part in parts]),
        )

    def anytime(self, X: Any) -> Iterator[tuple[int, Array]]:
        """Yield after every exit its number and the mean probabilities of the exits so far.

        The next stage is computed when it is asked for: leave the loop to stop.
        """
        for m, answer in anytime(self.model_, self._inputs(X)):
            yield m, answer.cpu().double().numpy()

    def predict_within(self, X: Any, seconds: float) -> NDArray[Any]:
        """Return the classes of the last anytime answer that was begun before the time was over.

        The first exit is always waited for, and a stage that has begun is finished.
        """
        deadline = Deadline.after(positive("seconds", seconds, zero=True))
        answers = self.anytime(X)
        _, answer = next(answers)
        while not deadline.passed:
            try:
                _, answer = next(answers)
            except StopIteration:
                break
        return self.classes_[answer.argmax(axis=1)]

    # ------------------------------------------------------------------ measures

    def exit_scores(self, X: Any, y: Any) -> Array:
        """Return the accuracy of each exit on rows with labels."""
        x = self._inputs(X)
        labels = self._class_numbers(y, len(x))
        return np.asarray((self._fitted.all_probabilities(x).argmax(axis=2) == labels).mean(axis=1))

    def latency_curve(
        self,
        X: Any,
        y: Any = None,
        budgets: Any = (0.25, 0.5, 0.75, 1.0),
        *,
        batch_size: int = 1,
        runs: int = 11,
    ) -> LatencyCurve:
        """Measure speed and accuracy at several budgets; those below the first exit's are left out."""
        x = self._inputs(X)
        least = self.costs_.on_the_way[0] / self.costs_.full
        # A budget that means nothing is refused by the policy.
        policies = [self.policy(b) for b in budgets if not (is_number(b) and 0 < b < least)]
        if not policies:
            raise ValueError(
                f"no budget is enough for the first exit, which costs {least:.3f}; got {budgets!r}."
            )
        labels = None if y is None else self._class_numbers(y, len(x))
        return latency_curve(
            self.model_, x, policies, labels, batch_size=batch_size, runs=runs, ensemble=self.ensemble
        )

    # ------------------------------------------------------------------ files

    def exit_network(self, exit: int) -> ReluNetwork:
        """Return an exit as a :class:`pindown.ReluNetwork` from rows to logits, scaling included."""
        check_is_fitted(self)
        before = self.scaling_.module(self._fitted.dtype)
        return prefix_network(self.model_, exit, self.scaling_.shape, before)

    def export(self, folder: str | PathLike[str], *, dtype: str = "auto") -> list[Path]:
        """Write every exit as an ONNX file from unscaled rows to logits; return the files.

        Args:
            folder: Where to; made if it is not there.
            dtype: Numbers that the files take: ``"float32"``, ``"float64"``, or ``"auto"`` for those of
                the training.
        """
        check_is_fitted(self)
        before = self.scaling_.module(self._fitted.dtype)
        return export_prefixes(self.model_, folder, self.scaling_.shape, before=before, dtype=dtype)

    # ------------------------------------------------------------------ rows and labels

    @property
    def _fitted(self) -> FittedNetwork:
        return FittedNetwork(self.model_, self.scaling_)

    def _inputs(self, X: Any) -> Tensor:
        rows = checked_rows(self, X)
        return self._fitted.inputs(rows)

    def _class_numbers(self, y: Any, n: int) -> NDArray[np.int64]:
        """Return the numbers of n labels among the classes, one more than the last for unknown ones."""
        y = np.asarray(y)
        if y.shape != (n,):
            raise ValueError(f"y must hold {n} labels; got shape {y.shape}.")
        numbers = np.searchsorted(self.classes_, y).clip(max=len(self.classes_) - 1)
        # A class that was never learned is always wrong.
        return np.where(self.classes_[numbers] == y, numbers, len(self.classes_))
