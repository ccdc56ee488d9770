"""A classifier whose network has exits: it can answer early, on a budget, or at any time."""

from __future__ import annotations

import math
from typing import Any

import numpy as np
import torch
from numpy.typing import NDArray
from sklearn.utils import check_random_state
from sklearn.utils.multiclass import check_classification_targets
from sklearn.utils.validation import validate_data

from pindown.affine import Array
from pindown.learn.gates.progress import watched
from pindown.learn.multi_exit.costs import exit_costs
from pindown.learn.multi_exit.distiller import MultiExitDistiller
from pindown.learn.multi_exit.frame import InputFrame, as_images
from pindown.learn.multi_exit.making import check_model, make_model
from pindown.learn.multi_exit.parameters import check_parameters
from pindown.learn.multi_exit.prediction import ExitPrediction
from pindown.learn.multi_exit.training import make_optimiser, train
from pindown.learn.torch_isolation import own_torch, usable_device

# Of training, if the number of epochs is left open: steps for tables and for images.
_STEPS, _IMAGE_STEPS = 150, 600
_FEWEST_EPOCHS, _MOST_EPOCHS, _MOST_IMAGE_EPOCHS = 10, 40, 100
_RATES = {"adam": 1e-2, "sgd": 0.05}
_IMAGE_RATES = {"adam": 5e-3, "sgd": 0.1}
_FEWEST_HELD = 10  # rows: from fewer, no policy can be chosen


class MultiExitClassifier(ExitPrediction):
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
        check_parameters(self)
        flat, shape = as_images(X)
        rows, y = validate_data(self, flat, y, dtype=np.float64)
        rows, y, free = self._unlabelled(rows, y, X_unlabelled, shape)
        check_classification_targets(y)
        self.classes_, places = np.unique(y, return_inverse=True)
        if len(self.classes_) < 2:
            raise ValueError(
                f"a classifier needs two classes or more; y holds one class, {self.classes_[0]}."
            )
        shape = shape or (rows.shape[1],)
        self.frame_ = InputFrame.of(np.concatenate([rows, free]), shape, self.standardise)
        rng = check_random_state(self.random_state)
        kept, held = self._split(places, rng)
        with own_torch(), torch.random.fork_rng(devices=[]):
            torch.manual_seed(int(rng.randint(2**31 - 1)))
            self._train(rows[kept], places[kept], free)
            self._validate(rows, places, kept, held)
        return self

    # ------------------------------------------------------------------ steps of fit

    def _unlabelled(
        self, rows: Array, y: NDArray[Any], extra: Any, shape: tuple[int, ...]
    ) -> tuple[Array, NDArray[Any], Array]:
        """Return labelled rows, their labels, and all rows without labels."""
        free = np.empty((0, rows.shape[1]))
        if extra is not None:
            more, other = as_images(extra)
            if other != shape:
                raise ValueError(
                    f"X has inputs of shape {shape or 'rows'}, X_unlabelled {other or 'rows'}."
                )
            free = validate_data(self, more, dtype=np.float64, reset=False)
        if self.unlabelled_label is None:
            return rows, y, free
        mark = self.unlabelled_label
        if y.dtype.kind in "US" and not isinstance(mark, str):  # numpy calls these different, always
            raise ValueError(f"labels are text, so unlabelled_label must be; got {mark!r}.")
        if y.dtype.kind in "biuf" and isinstance(mark, str):
            raise ValueError(f"labels are numbers, so unlabelled_label must be one; got {mark!r}.")
        known = np.asarray(y != mark)
        if not known.any():
            raise ValueError(f"no row has a label: all are {self.unlabelled_label!r}.")
        return rows[known], y[known], np.concatenate([rows[~known], free])

    def _split(self, places: NDArray[np.int64], rng: Any) -> tuple[NDArray[np.int64], NDArray[np.int64]]:
        """Hold out the same share of every class, or nothing if that is too little."""
        held: list[int] = []
        for place in np.unique(places):
            own = rng.permutation(np.flatnonzero(places == place))
            held += own[: int(self.validation_fraction * len(own))].tolist()
        if len(held) < _FEWEST_HELD:
            held = []
        return np.setdiff1d(np.arange(len(places)), held), np.sort(np.array(held, dtype=np.int64))

    def _train(self, rows: Array, places: NDArray[np.int64], free: Array) -> None:
        device = usable_device(self.device)
        classes = len(self.classes_)
        model = make_model(self.network, self.module, self.frame_.shape, classes).to(device)
        x = self.frame_.inputs(rows, torch.float32).to(device)
        check_model(model, x[:2], classes)
        distiller = MultiExitDistiller(
            model,
            self.teachers if self.loss == "distil" else "none",
            mu=(1 + 1 / classes) / 2 if self.mu is None else self.mu,
            tau_star=self.tau_star,
            temperature=self.temperature,
        )
        batch = min(self.batch_size, len(x))
        epochs = self.max_epochs
        if epochs is None:
            steps = math.ceil(len(x) / batch)
            image = self.frame_.is_image
            wanted, most = (_IMAGE_STEPS, _MOST_IMAGE_EPOCHS) if image else (_STEPS, _MOST_EPOCHS)
            epochs = min(max(wanted // steps, _FEWEST_EPOCHS), most)
        rates = _IMAGE_RATES if self.frame_.is_image else _RATES
        rate = rates[self.optimiser] if self.learning_rate is None else self.learning_rate
        self.history_ = train(
            model,
            distiller,
            make_optimiser(self.optimiser, model, rate, self.weight_decay),
            x,
            torch.as_tensor(places, device=device),
            unlabelled=self.frame_.inputs(free, torch.float32).to(device) if len(free) else None,
            epochs=watched(epochs, self.verbose, "training"),
            n_epochs=epochs,
            batch_size=batch,
            generator=torch.Generator().manual_seed(torch.initial_seed()),
        )
        # In single precision answers would depend, in the last digits, on the rows beside them.
        self.model_ = model if self.frame_.is_image else model.double()
        self.temperature_, self.n_iter_ = distiller.temperature, len(self.history_.loss)

    def _validate(
        self, rows: Array, places: NDArray[np.int64], kept: NDArray[np.int64], held: NDArray[np.int64]
    ) -> None:
        where = held if len(held) else kept
        x = self.frame_.inputs(rows[where], self._dtype).to(usable_device(self.device))
        self._held_probabilities, self._held_labels = self._all_probabilities(x), places[where]
        self.validated_on_ = "held-out rows" if len(held) else "training rows"
        self.costs_ = exit_costs(self.model_, x[:1])
        self._forget_policies()
