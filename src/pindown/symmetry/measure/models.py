"""Any model as a function of arrays, and the same architecture with freshly drawn weights."""

from __future__ import annotations

import copy
import sys
from collections.abc import Callable
from typing import Any

import numpy as np
import scipy.sparse as sp
from numpy.typing import NDArray

from pindown.affine import Affine
from pindown.network import ReluNetwork

Array = NDArray[np.float64]
# What a fitted estimator offers, the richest answer first: decisions alone hide small changes.
_METHODS = ("predict_proba", "decision_function", "transform", "predict")


def as_function(model: Any) -> Callable[[Array], Array]:
    """Return a model as a function from samples (n, ...) to finite numbers (n, ...).

    Args:
        model: A :class:`~pindown.network.ReluNetwork`, a torch module (run in evaluation mode, without
            gradients, in the precision of its weights), a fitted scikit-learn estimator (its
            probabilities, else its decision function, features or predictions, of flattened samples), or
            any function of arrays. Complex outputs become pairs of real ones.

    Raises:
        TypeError: If it is none of these.
        ValueError: When called: if the model fails, gives another number of rows, or no finite numbers.

    >>> as_function(lambda X: X.sum(axis=1))(np.array([[1.0, 2.0]])).tolist()
    [3.0]
    """
    plain = _plain(model)

    def evaluate(X: Array) -> Array:
        try:
            outputs = np.asarray(plain(X))
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
        if not np.isfinite(values).all():
            raise ValueError("the model must give finite numbers; some outputs are NaN or infinite.")
        return values

    return evaluate


def untrained_copy(model: Any, rng: np.random.Generator) -> Any | None:
    """Return the same architecture with freshly drawn weights, or None if there is no such thing.

    A network gets Gaussian weights of variance 2 / inputs, on the connections that it has, and no
    biases. The layers of a torch module are reset as their own constructors do; parameters that no layer
    resets are drawn with the mean and spread that they have.

    >>> net = ReluNetwork.from_layers([([[1.0], [-1.0]], [0, 0]), ([[1.0, 1.0]], [0])])
    >>> untrained_copy(net, np.random.default_rng(0))
    ReluNetwork(1 -> 2 -> 1, 7 parameters)
    """
    if isinstance(model, ReluNetwork):
        layers = tuple(_redrawn(layer, rng) for layer in model.layers)
        return ReluNetwork(layers, input_shape=model.input_shape)
    return _reset_module(model, rng) if is_module(model) else None


def is_module(model: Any) -> bool:
    """Return whether a model is a torch module; torch is not loaded to find out."""
    torch = sys.modules.get("torch")
    return torch is not None and isinstance(model, torch.nn.Module)


def _plain(model: Any) -> Callable[[Array], Any]:
    if isinstance(model, ReluNetwork):
        return model
    if is_module(model):
        return lambda X: _run_module(model, X)
    if hasattr(model, "fit"):
        for name in _METHODS:
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


def _run_module(module: Any, X: Array) -> Array:
    import torch

    first = next((p for p in module.parameters() if p.is_floating_point()), None)
    dtype, device = (torch.float64, "cpu") if first is None else (first.dtype, first.device)
    modes = [(part, part.training) for part in module.modules()]
    module.eval()
    try:
        with torch.no_grad():
            outputs = module(torch.as_tensor(np.ascontiguousarray(X), dtype=dtype, device=device))
    finally:
        for part, training in modes:
            part.training = training
    return np.asarray(outputs.detach().cpu().to(torch.float64).numpy())


def _redrawn(layer: Affine, rng: np.random.Generator) -> Affine:
    weight = layer.weight
    if not sp.issparse(weight):
        return Affine.of(
            rng.standard_normal(weight.shape) * np.sqrt(2.0 / weight.shape[1]), np.zeros(len(layer.bias))
        )
    drawn = sp.csr_array(weight, copy=True)
    fan_in = np.maximum(np.diff(drawn.indptr), 1)
    drawn.data = rng.standard_normal(drawn.nnz) * np.repeat(np.sqrt(2.0 / fan_in), np.diff(drawn.indptr))
    return Affine.of(drawn, np.zeros(len(layer.bias)))


def _reset_module(module: Any, rng: np.random.Generator) -> Any:
    import torch

    fresh = copy.deepcopy(module)
    with torch.random.fork_rng(devices=[]), torch.no_grad():
        torch.manual_seed(int(rng.integers(2**31)))
        reset = set()
        for part in fresh.modules():
            if callable(getattr(part, "reset_parameters", None)):
                part.reset_parameters()
                reset |= {id(p) for p in part.parameters(recurse=False)}
        for parameter in fresh.parameters():
            if id(parameter) not in reset and parameter.is_floating_point():
                spread = float(parameter.std()) if parameter.numel() > 1 else abs(float(parameter))
                parameter.copy_(float(parameter.mean()) + spread * torch.randn_like(parameter))
    return fresh
