r"""A network with several exits, cheap ones first: stages in a chain, a classifier head after each.

Stage m turns the state :math:`s_{m-1}` into :math:`s_m` (a tensor, or a list of tensors), head m turns
:math:`s_m` into logits: :math:`z_m = h_m(g_m(\cdots g_1(x)))`. Exits are numbered from 1.

Every prefix of a network can be a file of its own: one for each device that can afford it.
"""

from __future__ import annotations

import copy
import io
import warnings
from collections.abc import Iterable, Sequence
from itertools import islice
from os import PathLike
from pathlib import Path
from typing import Any

import torch
from torch import Tensor, nn

from pindown.errors import UnsupportedModelError
from pindown.io.files import write_atomically
from pindown.learn.multi_exit.tuning import MAX_FILE_GROWTH
from pindown.network import ReluNetwork
from pindown.validation import choice, integer

_OPSET = 17
_KINDS = {"float32": torch.float32, "float64": torch.float64}


class MultiExitModel(nn.Module):  # type: ignore[misc]
    r"""Stages and heads, put together to a network that can stop after any stage.

    Args:
        stages: Modules :math:`g_1, \ldots, g_M`; the first takes the input, the others what the one
            before returned.
        heads: Modules :math:`h_1, \ldots, h_M` that turn states into logits, (n, classes).

    Example:
        >>> stages = [nn.Linear(4, 3), nn.Sequential(nn.ReLU(), nn.Linear(3, 3))]
        >>> model = MultiExitModel(stages, [nn.Linear(3, 2), nn.Linear(3, 2)])
        >>> [tuple(z.shape) for z in model(torch.zeros(5, 4))]
        [(5, 2), (5, 2)]
        >>> x = torch.ones(5, 4)
        >>> bool((model.exit_only(x, 1) == model(x)[0]).all())
        True

    Phuong 2021, section 6.2.1.
    """

    def __init__(self, stages: Iterable[nn.Module], heads: Iterable[nn.Module]) -> None:
        super().__init__()
        self.stages, self.heads = nn.ModuleList(stages), nn.ModuleList(heads)
        if len(self.stages) != len(self.heads) or not len(self.stages):
            raise ValueError(
                f"a multi-exit model needs one head per stage, and at least one of each; "
                f"got {len(self.stages)} stages and {len(self.heads)} heads."
            )

    @property
    def n_exits(self) -> int:
        """Number M of exits."""
        return len(self.stages)

    def forward(self, x: Tensor) -> list[Tensor]:
        """Return the logits of all exits, cheap to expensive."""
        return self.forward_until(x, self.n_exits)

    def forward_until(self, x: Tensor, m: int) -> list[Tensor]:
        """Return the logits of exits 1, ..., m; later stages are not computed."""
        self.require_exit(m)
        logits, state = [], x
        for stage, head in islice(zip(self.stages, self.heads, strict=True), m):
            state = stage(state)
            logits.append(head(state))
        return logits

    def exit_only(self, x: Tensor, m: int) -> Tensor:
        """Return the logits of exit m; neither later stages nor other heads are computed."""
        self.require_exit(m)
        state = x
        for stage in islice(self.stages, m):  # a slice would build a new module, at a stage's price
            state = stage(state)
        return self.heads[m - 1](state)

    def prefix(self, m: int) -> nn.Sequential:
        """Return the network of exit m alone, as a module of its own that shares the weights."""
        self.require_exit(m)
        return nn.Sequential(*self.stages[:m], self.heads[m - 1])

    def require_exit(self, m: int) -> None:
        """Refuse numbers that no exit has."""
        integer("exit", m, most=self.n_exits)

    @classmethod
    def from_sequential(
        cls,
        sequential: nn.Sequential,
        after: Sequence[int],
        example: Tensor,
        n_classes: int | None = None,
    ) -> MultiExitModel:
        """Give a chain of modules exits after chosen ones; the modules themselves are shared.

        A new head averages over positions (pixels, or tokens of (n, tokens, width)) and is linear. If
        modules remain after the last exit, they are the last exit, with the classifier they end in.

        Args:
            sequential: The chain.
            after: Places (from 0, ascending) of the modules after which there is to be an exit.
            example: An input batch, to find out shapes.
            n_classes: Number of classes; None for what the chain returns.

        Raises:
            ValueError: If a place is not in the chain, or the classes do not fit its output.

        Example:
            >>> body = nn.Sequential(nn.Linear(4, 8), nn.ReLU(), nn.Linear(8, 8), nn.Linear(8, 3))
            >>> model = MultiExitModel.from_sequential(body, after=[1], example=torch.zeros(2, 4))
            >>> model.n_exits, model.exit_only(torch.zeros(2, 4), 1).shape
            (2, torch.Size([2, 3]))
            >>> bool((model.exit_only(torch.ones(2, 4), 2) == body(torch.ones(2, 4))).all())
            True
        """
        modules, places = list(sequential), list(after)
        if (
            not places
            or sorted(set(places)) != places
            or not 0 <= places[0] <= places[-1] < len(modules)
        ):
            raise ValueError(
                f"after must list ascending places from 0 to {len(modules) - 1}; got {after!r}."
            )
        states = _states(sequential, example)
        tail = modules[places[-1] + 1 :]
        if n_classes is None:
            if not tail:
                raise ValueError("n_classes must be given: the chain ends in an exit, not in classes.")
            n_classes = states[-1].shape[1]
        ends = [*places, len(modules) - 1] if tail else places
        starts = [0, *(end + 1 for end in ends[:-1])]
        stages = [nn.Sequential(*modules[i : j + 1]) for i, j in zip(starts, ends, strict=True)]
        heads = [PooledHead(states[place], n_classes) for place in places]
        if tail:
            if tuple(states[-1].shape[1:]) != (n_classes,):
                raise ValueError(
                    f"the chain returns {tuple(states[-1].shape[1:])}, not {n_classes} classes."
                )
            heads.append(nn.Identity())
        return cls(stages, heads)


class PooledHead(nn.Module):  # type: ignore[misc]
    """Mean over positions, then a linear layer: for (n, d), (n, tokens, d) and (n, d, height, width).

    Args:
        state: A state of the kind the head is for.
        n_classes: Number of logits.

    Example:
        >>> head = PooledHead(torch.zeros(1, 6, 4, 4), n_classes=2)
        >>> head.linear.in_features, head(torch.zeros(5, 6, 4, 4)).shape
        (6, torch.Size([5, 2]))
    """

    def __init__(self, state: Tensor, n_classes: int) -> None:
        super().__init__()
        if not isinstance(state, Tensor) or state.dim() not in (2, 3, 4):
            what = tuple(state.shape) if isinstance(state, Tensor) else type(state).__name__
            raise ValueError(
                f"a pooled head reads (n, d), (n, tokens, d) or (n, d, height, width); got {what}; "
                "make a MultiExitModel with heads of your own."
            )
        self.mean_over = {2: [], 3: [1], 4: [2, 3]}[state.dim()]
        self.linear = nn.Linear(state.shape[2] if state.dim() == 3 else state.shape[1], n_classes)

    def forward(self, state: Tensor) -> Tensor:
        """Return logits, (n, classes)."""
        return self.linear(state.mean(self.mean_over) if self.mean_over else state)


def _states(sequential: nn.Sequential, example: Tensor) -> list[Any]:
    """Return what each module of a chain makes of the example; running means stay as they are."""
    modes = [(module, module.training) for module in sequential.modules()]
    states, state = [], example
    try:
        with torch.no_grad():
            for module in sequential.eval():
                state = module(state)
                states.append(state)
    finally:
        for module, training in modes:
            module.training = training
    return states


def prefix_module(model: MultiExitModel, m: int, before: nn.Module | None = None) -> nn.Sequential:
    """Return exit m as one module in evaluation mode, with a module (a scaling, say) before it."""
    prefix = model.prefix(m)
    return (prefix if before is None else nn.Sequential(before, prefix)).eval()


def prefix_network(
    model: MultiExitModel, m: int, input_shape: Sequence[int], before: nn.Module | None = None
) -> ReluNetwork:
    """Return exit m as a :class:`pindown.ReluNetwork`, for audits, comparisons and proofs.

    Raises:
        UnsupportedModelError: If it is no plain ReLU network.
    """
    return ReluNetwork.from_torch(prefix_module(model, m, before), input_shape=tuple(input_shape))


def export_prefixes(
    model: MultiExitModel,
    folder: str | PathLike[str],
    input_shape: Sequence[int],
    *,
    before: nn.Module | None = None,
    name: str = "exit",
    dtype: str = "auto",
) -> list[Path]:
    """Write every exit as an ONNX file ``exit_1.onnx``, ``exit_2.onnx``, ... that needs nothing else.

    A prefix of fully connected layers goes through :class:`pindown.ReluNetwork`; one with convolutions
    through torch's own exporter, which keeps them as convolutions. In the former, a scaling in front and
    batch normalisations become part of the layers: computed in float64, then rounded once to ``dtype``.

    Args:
        model: The network.
        folder: Where to; made if it is not there.
        input_shape: Shape of one input.
        before: A module to put in front, such as the scaling of inputs.
        name: Beginning of the file names.
        dtype: Numbers that the files take, hold and return: ``"float32"``, ``"float64"``, or ``"auto"``
            for float32 if that loses nothing of the weights as they were trained.

    Returns:
        The files, cheap to expensive. Inputs are called ``input``, logits ``output``; the first axis of
        both is the batch.

    Raises:
        ValueError: If ``dtype`` is none of these.
        ModelFileError: If a layer with its scaling has numbers that are too large for float32.
        UnsupportedModelError: If torch cannot export a module.
    """
    kind = _kind(model, dtype)
    place = Path(folder)
    place.mkdir(parents=True, exist_ok=True)
    files = []
    for m in range(1, model.n_exits + 1):
        path = place / f"{name}_{m}.onnx"
        module = prefix_module(model, m, before)
        net = _as_network(module, input_shape)
        if net is not None:
            net.save(path, dtype=kind)
        else:
            write_atomically(path, torch_onnx(_in_kind(module, kind), input_shape))
        files.append(path)
    return files


def _kind(model: nn.Module, dtype: str) -> str:
    """Return the name of the numbers to write."""
    if choice("dtype", dtype, ("auto", *_KINDS)) != "auto":
        return dtype
    held = (t for t in (*model.parameters(), *model.buffers()) if t.is_floating_point())
    return "float32" if all(torch.equal(t.float().to(t.dtype), t) for t in held) else "float64"


def _in_kind(module: nn.Module, kind: str) -> nn.Module:
    """Return a module that computes in these numbers: itself, or a copy."""
    held = {t.dtype for t in (*module.parameters(), *module.buffers()) if t.is_floating_point()}
    return module if held <= {_KINDS[kind]} else copy.deepcopy(module).to(_KINDS[kind])


def _as_network(module: nn.Module, input_shape: Sequence[int]) -> ReluNetwork | None:
    """Return the ReLU network of a module, if it is one and is not much larger than the module."""
    if any(isinstance(part, nn.Conv2d) for part in module.modules()):
        return None
    try:
        net = ReluNetwork.from_torch(module, input_shape=tuple(input_shape))
    except UnsupportedModelError:
        return None
    size = sum(p.numel() for p in module.parameters())
    return net if net.n_parameters <= MAX_FILE_GROWTH * size else None


def torch_onnx(module: nn.Module, input_shape: Sequence[int]) -> bytes:
    """Return what torch's exporter makes of a module.

    Raises:
        UnsupportedModelError: If it cannot.
    """
    own = (t.dtype for t in (*module.parameters(), *module.buffers()) if t.is_floating_point())
    dtype = next(own, torch.float32)
    example, file = torch.zeros(1, *input_shape, dtype=dtype), io.BytesIO()
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")  # the newer exporter needs a further package
            torch.onnx.export(
                module,
                (example,),
                file,
                dynamo=False,
                opset_version=_OPSET,
                input_names=["input"],
                output_names=["output"],
                dynamic_axes={"input": {0: "batch"}, "output": {0: "batch"}},
            )
    except Exception as error:
        raise UnsupportedModelError(f"torch cannot write this module as ONNX: {error}") from error
    return file.getvalue()
