"""Training on whole orbits: the exact loss of augmentation, its gradient, and weights that stay orbits.

Augmentation forbids directions to the gradient, which moves with the weights. Averaging over a window of
shifts only, in place of all, is a low-pass filter.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, Literal

import numpy as np
from numpy.typing import ArrayLike, NDArray

from pindown.affine import Array
from pindown.symmetry.families import Family
from pindown.symmetry.groups import Group
from pindown.torch_modules import is_module
from pindown.validation import choice, integer, positive, refuse


def orbit_loss(
    model: Any,
    loss: Callable[[Any, Any], Any],
    X: Any,
    y: Any,
    group: Family,
    *,
    n_samples: int | None = None,
    seed: int = 0,
) -> Any:
    r"""Return the mean loss over the orbits of the data.

    .. math:: L(w) = \frac1N \sum_i \frac1{|G|} \sum_g \ell(f_w(g x_i), y_i)

    For a linear layer at the input and an orthogonal action, :math:`L(g w) = L(w)` for every g, as the
    whole group is averaged. Random augmentation estimates it, and is invariant in expectation only.

    Args:
        model: A torch module, or a function of tensors or arrays, as X is.
        loss: ``loss(outputs, y)``: one number for the batch, or one per sample.
        X: Samples; a tensor if gradients are wanted of a function that is no module.
        y: Targets, unchanged along orbits.
        group: The group with its action on samples.
        n_samples: How many elements to draw; by default all of them, exactly.
        seed: Seed of the elements drawn.

    Returns:
        A tensor with gradients for a module or a tensor X, else a float.

    >>> from pindown.symmetry import cyclic
    >>> first = lambda X: X[:, 0]
    >>> square = lambda out, y: (out - y) ** 2
    >>> orbit_loss(first, square, np.array([[1.0, 3.0]]), np.array([0.0]), cyclic(2))
    5.0

    Lecture course, slides on augmentation, with the lost 1/N kept.
    """
    chosen = _chosen(group, n_samples, seed)
    array, as_input = _inputs(model, X)
    if len(array) == 0 or array.ndim < 2 or len(y) != len(array):
        raise ValueError(
            f"X holds samples (n, ...) and y one target for each; got {array.shape} and {len(y)}."
        )
    total: Any = 0.0
    for index in chosen:
        values = loss(model(as_input(group.act(int(index), array))), y)
        total = total + (values.mean() if getattr(values, "ndim", 0) else values)
    mean = total / len(chosen)
    return mean if hasattr(mean, "backward") else float(mean)


def _chosen(group: Family, n_samples: int | None, seed: int) -> NDArray[np.int64]:
    if n_samples is None:
        return np.arange(group.order)
    return np.random.default_rng(seed).integers(group.order, size=integer("n_samples", n_samples))


def _inputs(model: Any, X: Any) -> tuple[Array, Callable[[Array], Any]]:
    """Return the samples as an array to move, and how to hand moved ones to the model."""
    tensor = hasattr(X, "detach")
    array = np.asarray(X.detach().cpu() if tensor else X, dtype=float)
    if not (tensor or is_module(model)):
        return array, lambda moved: moved
    from pindown.extras import torch

    like = X if tensor else next(iter(model.parameters()), torch.zeros((), dtype=torch.float64))
    return array, lambda moved: torch.as_tensor(
        np.ascontiguousarray(moved), dtype=like.dtype, device=like.device
    )


def orbit_gradient_component(
    loss: Callable[[Any], Any], weights: ArrayLike, generator: ArrayLike
) -> float:
    r"""Return the cosine between the gradient and the direction along the orbit.

    If :math:`L(e^{\alpha A} w) = L(w)` for all :math:`\alpha`, then :math:`\langle \nabla L(w), A w
    \rangle = 0`: gradient flow, :math:`\dot w = -\nabla L`, never moves along the orbit.

    Args:
        loss: Takes a float64 tensor of weights, gives a scalar tensor.
        weights: One weight vector ``(d,)``, or rows ``(k, d)``.
        generator: The matrix A, ``(d, d)``.

    Returns:
        The cosine; 0 if the gradient or the direction vanishes.

    >>> turn = [[0.0, -1.0], [1.0, 0.0]]
    >>> orbit_gradient_component(lambda w: (w**2).sum() ** 2, [3.0, 4.0], turn)
    0.0
    >>> round(orbit_gradient_component(lambda w: w[1], [1.0, 0.0], turn), 12)
    1.0

    Lecture course, slides on augmentation and rotated digits, with the sign of gradient flow corrected.
    """
    W, A = np.asarray(weights, dtype=float), np.asarray(generator, dtype=float)
    if W.ndim not in (1, 2) or A.shape != (W.shape[-1],) * 2:
        raise ValueError(
            f"weights are (d,) or (k, d) and the generator (d, d); got {W.shape} and {A.shape}."
        )
    along = W @ A.T
    gradient = loss_gradient(loss, W)
    length = float(np.linalg.norm(gradient) * np.linalg.norm(along))
    return float(np.sum(gradient * along)) / length if length else 0.0


def gradient_equivariance_error(loss: Callable[[Any], Any], weights: ArrayLike, group: Family) -> float:
    r"""Return the largest relative difference of :math:`\nabla L(g W)` and :math:`g \nabla L(W)`.

    It vanishes for the augmented loss of a network whose first layer has the rows W, under an
    orthogonal action on each row and whole orbits of data.

    Args:
        loss: Takes a float64 tensor of weights, gives a scalar tensor.
        weights: Rows ``(k, d)``.
        group: The group with its action on rows.

    Returns:
        The largest difference over elements, divided by the length of the gradient.

    >>> from pindown.symmetry import cyclic
    >>> gradient_equivariance_error(lambda W: (W**4).sum(), [[1.0, 2.0, 3.0]], cyclic(3))
    0.0

    Lecture course, slides on gradient equivariance.
    """
    W = np.asarray(weights, dtype=float)
    if W.ndim != 2:
        raise ValueError(f"weights are rows (k, d); got shape {W.shape}.")
    here = loss_gradient(loss, W)
    length = float(np.linalg.norm(here))
    gaps = [
        float(np.linalg.norm(loss_gradient(loss, group.act(i, W)) - group.act(i, here)))
        for i in range(group.order)
    ]
    return max(gaps) / length if length else max(gaps)


def loss_gradient(loss: Callable[[Any], Any], weights: NDArray[np.float64]) -> NDArray[np.float64]:
    """Return the gradient of a loss at some weights, in float64.

    >>> loss_gradient(lambda w: (w**2).sum(), np.array([1.0, 2.0])).tolist()
    [2.0, 4.0]
    """
    from pindown.extras import torch

    w = torch.tensor(weights, dtype=torch.float64, requires_grad=True)
    value = loss(w)
    if not isinstance(value, torch.Tensor) or value.numel() != 1 or not value.requires_grad:
        raise ValueError("the loss must give one number that depends on its tensor by torch operations.")
    (gradient,) = torch.autograd.grad(value.reshape(()), w)
    return np.asarray(gradient.numpy())


def orbit_init(
    group: Group, n_templates: int, d: int, random_state: int | np.random.Generator = 0
) -> NDArray[np.float64]:
    r"""Return weights whose rows are the orbits of random templates, ``(n_templates * order, d)``.

    With equal output weights along each orbit, full-batch gradient descent on the augmented loss keeps
    them orbits: rows :math:`g w` move as :math:`g` moves the first of them.

    Args:
        group: The group with its action on rows of length d.
        n_templates: How many orbits.
        d: Length of a row; templates are Gaussian of variance 1 / d.
        random_state: Seed or generator.

    >>> from pindown.symmetry import cyclic
    >>> orbit_init(cyclic(3), 2, 3).shape
    (6, 3)

    Lecture course, slides on gradient equivariance.
    """
    shape = integer("n_templates", n_templates), integer("d", d)
    templates = np.random.default_rng(random_state).standard_normal(shape) / np.sqrt(d)
    return np.concatenate([group.orbit(template) for template in templates])


def orbit_deviation(W: ArrayLike, group: Family, how: Literal["worst", "mean"] = "worst") -> float:
    r"""Return how far rows are from being whole orbits, relative to their typical length.

    .. math:: \max_{g, i} \min_j \|g w_i - w_j\| \Big/ \sqrt{\textstyle\frac1k \sum_j \|w_j\|^2}

    Args:
        W: Rows ``(k, d)``.
        group: The group with its action on rows.
        how: ``"worst"`` as above, or the ``"mean"`` over g and i other than the identity.

    Returns:
        0 exactly if the group carries every row to a row, whatever their multiplicities; also for W = 0.

    >>> from pindown.symmetry import cyclic
    >>> orbit_deviation([[1.0, 0.0], [0.0, 1.0]], cyclic(2))
    0.0
    >>> round(orbit_deviation([[1.0, 0.0]], cyclic(2)), 6)
    1.414214

    Lecture course, slides on gradient equivariance.
    """
    rows = np.asarray(W, dtype=float)
    if rows.ndim != 2 or 0 in rows.shape or not np.isfinite(rows).all():
        raise ValueError(f"W holds finite rows (k, d); got shape {rows.shape}.")
    choice("how", how, ("worst", "mean"))
    size = float(np.sqrt((rows**2).sum(axis=1).mean()))
    if size == 0.0:
        return 0.0
    from scipy.spatial.distance import cdist

    first = 1 if isinstance(group, Group) and group.order > 1 else 0
    gaps = [cdist(group.act(i, rows), rows).min(axis=1) for i in range(first, group.order)]
    return float((np.max if how == "worst" else np.mean)(gaps)) / size


def window_multiplier(k: ArrayLike, a: float) -> NDArray[np.float64]:
    r"""Return by what integrating over shifts in [-a, a] multiplies the frequency k.

    .. math:: \int_{-a}^{a} e^{ikt}\,dt = \frac{2 \sin(k a)}{k} = 2a\,\mathrm{sinc}(ka/\pi),

    with :math:`\mathrm{sinc}(u) = \sin(\pi u)/(\pi u)`. Divided by 2a it multiplies the average.
    The whole line leaves only k = 0. The source prints :math:`2a\,\mathrm{sinc}(2ka)`, which belongs to
    frequencies in cycles.

    Args:
        k: Angular frequencies, any shape.
        a: Half the width of the window, from 0.

    >>> window_multiplier([0.0, np.pi], 1.0).round(12).tolist()
    [2.0, 0.0]

    Lecture course, slides on augmentation, with the constant corrected.
    """
    positive("a", a, zero=True)
    return np.asarray(2.0 * a * np.sinc(np.asarray(k, dtype=float) * a / np.pi))


def grid_window_multiplier(k: ArrayLike, half_width: int, n: int) -> NDArray[np.float64]:
    r"""Return the multiplier of a window on a periodic grid of n points, the Dirichlet kernel.

    .. math:: \sum_{|s| \le m} e^{2\pi i k s/n} = \frac{\sin(\pi k (2m+1)/n)}{\sin(\pi k/n)}

    Args:
        k: Whole frequencies, cycles over the grid.
        half_width: m, how many shifts to each side.
        n: Points of the grid.

    >>> grid_window_multiplier([0, 1], 1, 4).round(12).tolist()
    [3.0, 1.0]
    """
    integer("n", n)
    shifts = np.arange(1, integer("half_width", half_width, least=0) + 1)
    waves = np.cos(2.0 * np.pi * np.multiply.outer(np.asarray(k, dtype=float), shifts) / n)
    return np.asarray(1.0 + 2.0 * waves.sum(axis=-1))


def box_average(signal: ArrayLike, half_width: int) -> NDArray[np.float64]:
    """Return the mean of the circular shifts of a signal by at most so many steps, along the last axis.

    >>> box_average([3.0, 0.0, 0.0, 0.0], 1).tolist()
    [1.0, 1.0, 0.0, 1.0]
    """
    values = np.asarray(signal, dtype=float)
    if values.ndim == 0:
        refuse("signal", "an array with at least one axis", signal)
    reach = integer("half_width", half_width, least=0)
    shifts = range(-reach, reach + 1)
    return np.asarray(np.mean([np.roll(values, s, axis=-1) for s in shifts], axis=0))
