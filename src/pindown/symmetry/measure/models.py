"""Any model as a function of arrays, and the same architecture with freshly drawn weights."""

from __future__ import annotations

import copy
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Any

import numpy as np
import scipy.sparse as sp

from pindown.affine import Affine, Array
from pindown.network import ReluNetwork
from pindown.symmetry.tuning import MIN_SHARING
from pindown.torch_modules import in_evaluation, is_module

# What a fitted estimator offers, the richest answer first: decisions alone hide small changes.
_METHODS = ("predict_proba", "decision_function", "transform", "predict")

# Squares of larger outputs overflow.
_MAX_OUTPUT = 1e150


def as_function(model: Any) -> Callable[[Array], Array]:
    """Return a model as a function from samples (n, ...) to finite numbers (n, ...).

    Args:
        model: A :class:`~pindown.network.ReluNetwork`, a torch module (run in evaluation mode, without
            gradients, in the precision of its weights), a fitted scikit-learn estimator (predictions of
            a regressor; else its probabilities, decision function, features or predictions; of flattened
            samples), or any function of arrays. Complex outputs become pairs of real ones.

    Raises:
        TypeError: If it is none of these.
        ValueError: When called: if the model fails, gives another number of rows, or no finite numbers.

    >>> as_function(lambda X: X.sum(axis=1))(np.array([[1.0, 2.0]])).tolist()
    [3.0]
    """
    plain = _plain(model)

    def evaluate(X: Array) -> Array:
        try:
            outputs = plain(X.copy())  # layers that work in place must not move the samples
            outputs = np.asarray(outputs.detach().cpu() if hasattr(outputs, "detach") else outputs)
        except Exception as error:
            raise ValueError(f"the model failed on inputs of shape {X.shape}: {error}") from error
        if outputs.dtype.kind == "c":
            outputs = np.stack([outputs.real, outputs.imag], axis=-1)
        if outputs.dtype.kind not in "biuf":
            raise ValueError(f"the model must give numbers; it gave {outputs.dtype}.")
        if outputs.shape[:1] != (len(X),):
            raise ValueError(
                f"the model must give one output per sample; {len(X)} gave shape {outputs.shape}."
            )
        values = outputs.astype(float)
        if not (np.abs(values) <= _MAX_OUTPUT).all():
            raise ValueError(
                f"the model must give finite numbers up to {_MAX_OUTPUT:g}; some outputs are NaN, "
                f"infinite or larger."
            )
        return values

    return evaluate


def untrained_copy(model: Any, rng: np.random.Generator) -> Any | None:
    """Return the same architecture with freshly drawn weights, or None if there is no such thing.

    A network gets Gaussian weights of variance 2 / inputs, on the connections that it has, and no
    biases. Where a layer with zeros mostly shares its weights, as a convolution does, the new ones are
    shared alike. The layers of a torch module are reset as their own constructors do; parameters that no
    layer resets are drawn with the mean and spread that they have.

    >>> net = ReluNetwork.from_layers([([[1.0], [-1.0]], [0, 0]), ([[1.0, 1.0]], [0])])
    >>> untrained_copy(net, np.random.default_rng(0))
    ReluNetwork(1 -> 2 -> 1, 7 parameters)
    """
    if isinstance(model, ReluNetwork):
        layers = tuple(_redrawn(layer, rng) for layer in model.layers)
        return ReluNetwork(layers, input_shape=model.input_shape)
    if not is_module(model) or not any(p.is_floating_point() for p in model.parameters()):
        return None  # a module without weights is what it is
    return _reset_module(model, rng)


@contextmanager
def evaluating(module: Any) -> Iterator[None]:
    """Hold a torch module in evaluation mode, without gradients; then put every part back as it was."""
    from pindown.extras import torch

    with in_evaluation(module), torch.no_grad():
        yield


def _plain(model: Any) -> Callable[[Array], Any]:
    if isinstance(model, ReluNetwork):
        return model
    if is_module(model):
        return lambda X: _run_module(model, X)
    if hasattr(model, "fit"):
        for name in ("predict",) if _is_regressor(model) else _METHODS:
            if hasattr(model, name):
                method = getattr(model, name)
                return lambda X: method(X.reshape(len(X), -1))
    if callable(model):
        found: Callable[[Array], Any] = model
        return found
    raise TypeError(
        f"a model is a function of arrays, a ReluNetwork, a torch module or a fitted estimator; got "
        f"{type(model).__name__}."
    )


def _is_regressor(model: Any) -> bool:
    from sklearn.base import is_regressor

    try:
        return bool(is_regressor(model))
    except (AttributeError, TypeError):  # an estimator of another library
        return False


def _run_module(module: Any, X: Array) -> Array:
    from pindown.extras import torch

    first = next((p for p in module.parameters() if p.is_floating_point()), None)
    dtype, device = (torch.float64, "cpu") if first is None else (first.dtype, first.device)
    with evaluating(module):
        outputs = module(torch.as_tensor(np.ascontiguousarray(X), dtype=dtype, device=device))
    return np.asarray(outputs.detach().cpu().to(torch.float64).numpy())


def _redrawn(layer: Affine, rng: np.random.Generator) -> Affine:
    weight, biases = layer.weight, np.zeros(len(layer.bias))
    if not sp.issparse(weight) and weight.all():
        return Affine.of(rng.standard_normal(weight.shape) * np.sqrt(2.0 / weight.shape[1]), biases)
    drawn = sp.csr_array(weight, copy=True)
    inputs = np.diff(drawn.indptr)
    drawn.data = _fresh_values(drawn.data, rng) * np.repeat(np.sqrt(2.0 / np.maximum(inputs, 1)), inputs)
    return Affine.of(drawn if sp.issparse(weight) else drawn.toarray(), biases)


def _fresh_values(values: Array, rng: np.random.Generator) -> Array:
    """Draw one number for each weight; weights that are equal are one if most are shared."""
    distinct, which = np.unique(values, return_inverse=True)
    if MIN_SHARING * len(distinct) > len(values):
        return rng.standard_normal(len(values))
    return rng.standard_normal(len(distinct))[which]


def _reset_module(module: Any, rng: np.random.Generator) -> Any:
    from pindown.extras import torch

    fresh = copy.deepcopy(module)
    with torch.random.fork_rng(devices=[]), torch.no_grad():
        torch.manual_seed(int(rng.integers(2**31)))
        reset = set()
        for part in fresh.modules():
            if callable(getattr(part, "reset_parameters", None)):
                before = [p.clone() for p in part.parameters(recurse=False)]
                part.reset_parameters()
                # Weights that are computed from others, as under weight normalisation, cannot be reset.
                pairs = zip(part.parameters(recurse=False), before, strict=True)
                reset |= {id(p) for p, old in pairs if not torch.equal(p, old)}
        for parameter in fresh.parameters():
            if id(parameter) not in reset and parameter.is_floating_point():
                spread = float(parameter.std()) if parameter.numel() > 1 else abs(float(parameter))
                parameter.copy_(float(parameter.mean()) + spread * torch.randn_like(parameter))
    return fresh
