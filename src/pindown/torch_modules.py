"""Torch for a while: what it was told elsewhere must not change what is computed here, nor the reverse.

Modules are put into evaluation mode and back, torch's threads, precision and random numbers are set and
put back. Networks are trained on the device that a user names, and drawn, kept and used on the
processor. Importing this module does not load torch.
"""

from __future__ import annotations

import copy
import sys
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager, nullcontext
from typing import TYPE_CHECKING, Any

from pindown.validation import refuse

if TYPE_CHECKING:
    import torch


@contextmanager
def own_torch() -> Iterator[None]:
    """Compute the same whatever the rest of the program told torch, and put back what was set.

    One thread, for these networks the fastest number; single precision, gradients and the processor
    where nothing else is said.
    """
    from pindown.extras import torch

    threads, precision = torch.get_num_threads(), torch.get_default_dtype()
    # Entering a device slows down every call: only where another one was made the default.
    moved = torch.get_default_device().type != "cpu"
    torch.set_num_threads(1)
    torch.set_default_dtype(torch.float32)
    try:
        with (
            torch.inference_mode(False),
            torch.enable_grad(),
            torch.device("cpu") if moved else nullcontext(),
        ):
            yield
    finally:
        torch.set_num_threads(threads)
        torch.set_default_dtype(precision)


def called_with(
    module: torch.nn.Module,
    tensors: Mapping[str, torch.Tensor],
    arguments: tuple[Any, ...],
    options: Mapping[str, Any] | None = None,
) -> Any:
    """Return what a module answers with other tensors in place of its own, and leave it as it was.

    ``torch.func.functional_call`` leaves the other tensors in a part that stands at several places.

    >>> import torch
    >>> twice = torch.nn.Linear(1, 1, bias=False)
    >>> own = twice.weight
    >>> module = torch.nn.Sequential(twice, twice)
    >>> called_with(module, {"0.weight": torch.tensor([[3.0]])}, (torch.ones(1),)).item()
    9.0
    >>> twice.weight is own
    True
    """
    from pindown.extras import torch

    before = [(part, dict(part._parameters), dict(part._buffers)) for part in module.modules()]
    try:
        return torch.func.functional_call(module, dict(tensors), arguments, dict(options or {}))
    finally:
        for part, parameters, buffers in before:
            part._parameters.update(parameters)
            part._buffers.update(buffers)


def usable_device(name: Any) -> torch.device:
    """Return the torch device of this name.

    Raises:
        ValueError: If torch knows no such device, or it is not there.

    >>> usable_device("cpu")
    device(type='cpu')
    """
    from pindown.extras import torch

    try:
        device = torch.device(name)
    except (RuntimeError, TypeError):
        refuse("device", "one that torch knows, such as 'cpu' or 'cuda'", name)
    if device.type == "cpu":
        return device
    try:
        torch.zeros(1, device=device).item()
    except (RuntimeError, AssertionError, NotImplementedError):
        refuse("device", "one that is here and holds numbers, as 'cpu' always does", name)
    return device


def on_processor(net: Any) -> Any:
    """Return a network that computes on the processor: itself, or a copy."""
    there = next(net.parameters()).device.type == "cpu"
    return net if there else copy.deepcopy(net).cpu()


@contextmanager
def in_evaluation(module: Any) -> Iterator[None]:
    """Put a module into evaluation mode, and every part of it back into its own mode afterwards.

    ``module.train(mode)`` would put all parts into one mode, also those that were frozen on purpose.

    >>> import torch
    >>> net = torch.nn.Sequential(torch.nn.Linear(1, 1), torch.nn.BatchNorm1d(1).eval())
    >>> with in_evaluation(net):
    ...     print(net[0].training, net[1].training)
    False False
    >>> net[0].training, net[1].training
    (True, False)
    """
    modes = [(part, part.training) for part in module.modules()]
    try:
        module.eval()
        yield
    finally:
        for part, mode in modes:
            part.training = mode


@contextmanager
def own_randomness(seed: int, threads: int | None) -> Iterator[None]:
    """Seed torch within, use so many threads, allow gradients, and put all back."""
    from pindown.extras import torch

    before = torch.get_num_threads()
    if threads is not None:
        torch.set_num_threads(threads)
    try:
        with torch.random.fork_rng(devices=[]), torch.inference_mode(False), torch.enable_grad():
            # What modules draw themselves. Not torch.manual_seed, which seeds other devices for good.
            torch.default_generator.manual_seed(seed)
            yield
    finally:
        torch.set_num_threads(before)


def layer_outputs(
    module: torch.nn.Module, X: Any, layers: Sequence[str] | None = None, *, together: int | None = None
) -> dict[str, torch.Tensor]:
    """Return what layers of a module make of inputs, in evaluation mode, without gradients.

    Args:
        module: The module.
        X: Inputs (n, ...), an array or a tensor; it is taken to the module's type and device.
        layers: Names of submodules; if left out, all without children that give a tensor with a row
            for each input.
        together: Inputs in one pass; all if left out.

    Returns:
        The outputs (n, ...) of each, on the processor, in the order of the module. Of a layer that is
        called several times the last call counts.

    Raises:
        ValueError: If a layer is unknown, or gives no such tensor.

    >>> import torch
    >>> net = torch.nn.Sequential(torch.nn.Identity(), torch.nn.Flatten())
    >>> {name: tuple(made.shape) for name, made in layer_outputs(net, torch.ones(2, 3, 4)).items()}
    {'0': (2, 3, 4), '1': (2, 12)}
    """
    from pindown.extras import torch

    named = dict(module.named_modules())
    chosen = [n for n, m in named.items() if not list(m.children())] if layers is None else list(layers)
    unknown = [name for name in chosen if name not in named]
    if unknown:
        raise ValueError(
            f"layers must name submodules ({', '.join(filter(None, named))}); got {unknown}."
        )
    some = next((p for p in module.parameters() if p.is_floating_point()), None)
    inputs = torch.as_tensor(X) if some is None else torch.as_tensor(X).to(some)
    now: dict[str, torch.Tensor] = {}
    made: dict[str, list[torch.Tensor]] = {name: [] for name in chosen}

    def keep(name: str) -> Callable[[Any, Any, Any], None]:
        def note(_part: Any, _inputs: Any, output: Any) -> None:
            if torch.is_tensor(output) and output.ndim and len(output) == len(few):
                now[name] = output.detach().cpu().clone()  # what follows may work in place

        return note

    handles = [named[name].register_forward_hook(keep(name)) for name in chosen]
    try:
        with in_evaluation(module), torch.no_grad():
            for few in inputs.split(together or max(1, len(inputs))):
                now.clear()
                module(few)
                for name in layers or ():
                    if name not in now:
                        raise ValueError(f"layer {name!r} gives no tensor with a row for each input.")
                for name, output in now.items():
                    made[name].append(output)
    finally:
        for handle in handles:
            handle.remove()
    return {name: torch.cat(parts) for name, parts in made.items() if parts}


def is_module(model: Any) -> bool:
    """Return whether a model is a torch module; torch is not loaded to find out.

    >>> is_module(len)
    False
    """
    loaded = sys.modules.get("torch")
    return loaded is not None and isinstance(model, loaded.nn.Module)
