r"""Gradient flow :math:`\dot w = -\nabla L(w)`: one integrator for everything that follows a path.

Three ways to follow it:

* ``"euler"``: :math:`w \leftarrow w - h\,\nabla L(w)`, which is gradient descent; k steps of length h
  reach time kh, and the error at a fixed time is of order h.
* ``"normalised"``: the same path at another speed, :math:`dw/ds = -\nabla L(w)/\min(1, L(w))`. Where the
  loss falls like 1/t and directions settle like 1/log t, ten thousand steps reach
  :math:`\log t \approx 700`; the plain method never would.
* ``"ivp"``: :func:`scipy.integrate.solve_ivp` (Runge-Kutta 4(5)) with error control.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any, Literal, TypeAlias

import numpy as np
from numpy.typing import ArrayLike

from pindown.affine import Array
from pindown.bias.tuning import FLOW_ABSOLUTE_ERROR, FLOW_RELATIVE_ERROR
from pindown.evidence import Kind
from pindown.validation import choice, integer, number, positive, refuse

if TYPE_CHECKING:
    import torch

Method: TypeAlias = Literal["euler", "normalised", "ivp"]
_METHODS = ("euler", "normalised", "ivp")
# Below this a loss and its gradient are no longer normal floats: what follows would be noise.
MIN_LOSS = 1e-300


@dataclass(frozen=True)
class Path:
    """Points along a gradient flow.

    Attributes:
        times: Time of each recorded point (k,), the first is 0. It is the time of the flow itself for
            every method, also for ``"normalised"``, where it grows like 1/loss.
        points: The points (k, p).
        losses: Losses there (k,); NaN where no loss was given.
        method: How it was followed.
        n_steps: Steps taken (evaluations of the gradient for ``"ivp"``).
        stopped: Why it ended: ``"time"``, ``"loss"`` (too small for floats) or ``"stop"`` (the caller).
        kind: ``"estimate"``: an integrator has an error.
    """

    times: Array
    points: Array = field(repr=False)
    losses: Array = field(repr=False)
    method: Method
    n_steps: int
    stopped: str
    kind: Kind = "estimate"

    @property
    def end(self) -> Array:
        """The last point."""
        return np.asarray(self.points[-1])

    @property
    def directions(self) -> Array:
        """The points divided by their norms; a zero point stays zero."""
        norms = np.linalg.norm(self.points, axis=1, keepdims=True)
        return np.asarray(self.points / np.where(norms > 0, norms, 1.0))

    def __str__(self) -> str:
        loss = (
            "" if np.isnan(self.losses[-1]) else f", loss {self.losses[0]:.4g} -> {self.losses[-1]:.4g}"
        )
        return (
            f"{self.method} path to time {self.times[-1]:.4g} in {self.n_steps} steps "
            f"(ended by {self.stopped}){loss}"
        )


def gradient_flow(
    gradient: Callable[[Array], Array],
    start: ArrayLike,
    *,
    time: float,
    method: Method = "euler",
    step: float | None = None,
    loss: Callable[[Array], float] | None = None,
    record: int | Literal["all"] | Sequence[float] = 100,
    stop: Callable[[Array], bool] | None = None,
    max_evaluations: int = 100_000,
) -> Path:
    r"""Follow :math:`\dot w = -\nabla L(w)` from a point.

    Args:
        gradient: :math:`\nabla L`, from a vector (p,) to a vector (p,).
        start: Where it begins (p,).
        time: Where it ends. For ``"normalised"`` it is measured in the slowed clock
            :math:`ds = \min(1, L)\,dt`, so it is the number of steps times ``step``.
        method: ``"euler"``, ``"normalised"`` or ``"ivp"``.
        step: Length of a step, for the first two; for ``"ivp"`` the longest step allowed, or None.
        loss: L itself; ``"normalised"`` needs it, the others record it.
        record: Number of points to keep besides the first, evenly spread over ``time``; ``"all"`` steps;
            or the times themselves (in the clock of ``time``, each in [0, time], rising).
        stop: Called at every step (at recorded points for ``"ivp"``); True ends the path there.
        max_evaluations: Gradients that ``"ivp"`` may take. Where a flow slides along a fold, or is
            stiff, error control would go on for ever in tiny steps.

    Returns:
        A :class:`Path`.

    Raises:
        ValueError: If an argument is out of range, the path leaves the floats (the step is too long), or
            ``"ivp"`` has used up its evaluations.

    Example:
        On half the squared norm every coordinate decays like exp(-t):

        >>> path = gradient_flow(lambda w: w, [1.0, -2.0], time=1.0, method="ivp")
        >>> (path.end * np.e).round(6).tolist()
        [1.0, -2.0]
        >>> gradient_flow(lambda w: w, [1.0], time=1.0, step=0.5, record="all").points.ravel().tolist()
        [1.0, 0.5, 0.25]

    Lecture course, section on gradient descent and gradient flow (the sign of the flow is minus).
    """
    w = np.array(start, dtype=np.float64)
    if w.ndim != 1 or not w.size or not np.isfinite(w).all():
        raise ValueError(f"start must be one finite vector that is not empty; got shape {w.shape}.")
    choice("method", method, _METHODS)
    time = positive("time", time)
    if (step is None and method != "ivp") or (step is not None and not 0 < step <= time):
        refuse("step", f"a number in (0, time] for method {method!r}", step)
    if method == "normalised" and loss is None:
        raise ValueError("method 'normalised' divides by the loss: pass loss=")
    if method == "ivp":
        number("max_evaluations", max_evaluations, 1.0, infinite=True)
        return _solve(_counted(gradient, max_evaluations), w, time, step, loss, record, stop)
    assert step is not None
    return _march(gradient, w, time, step, loss, record, stop, method)


def module_flow(
    module: torch.nn.Module,
    loss: Callable[[torch.nn.Module], torch.Tensor],
    *,
    time: float,
    method: Method = "euler",
    step: float | None = None,
    record: int | Literal["all"] | Sequence[float] = 100,
) -> Path:
    """Follow the flow of a torch module's trainable parameters; the module is left at the end.

    Args:
        module: The module; float64 parameters are advised.
        loss: Function from the module to its scalar loss.
        time: As in :func:`gradient_flow`, like ``method``, ``step`` and ``record``.
        method: ``"euler"``, ``"normalised"`` or ``"ivp"``.
        step: Length of a step.
        record: What to keep.

    Returns:
        A :class:`Path` of the parameters in the order of ``module.parameters()``, flattened.

    Example:
        >>> import torch
        >>> linear = torch.nn.Linear(1, 1, bias=False, dtype=torch.float64)
        >>> _ = torch.nn.init.ones_(linear.weight)
        >>> path = module_flow(linear, lambda m: (m.weight**2).sum() / 2, time=1.0, step=0.5)
        >>> path.end.tolist(), linear.weight.item()
        ([0.25], 0.25)
    """
    from pindown.extras import torch

    parameters = [p for p in module.parameters() if p.requires_grad]
    if not parameters:
        raise ValueError("the module has no trainable parameters")

    def place(w: Array) -> None:
        torch.nn.utils.vector_to_parameters(torch.as_tensor(w, dtype=parameters[0].dtype), parameters)

    def value(w: Array) -> float:
        place(w)
        with torch.no_grad():
            return float(loss(module))

    def gradient(w: Array) -> Array:
        place(w)
        parts = torch.autograd.grad(loss(module), parameters)
        return np.asarray(torch.cat([part.reshape(-1) for part in parts]).double().numpy())

    start = torch.nn.utils.parameters_to_vector(parameters).detach().double().numpy().copy()
    path = gradient_flow(gradient, start, time=time, method=method, step=step, loss=value, record=record)
    place(path.end)
    return path


def _march(
    gradient: Callable[[Array], Array],
    w: Array,
    time: float,
    step: float,
    loss: Callable[[Array], float] | None,
    record: int | Literal["all"] | Sequence[float],
    stop: Callable[[Array], bool] | None,
    method: Method,
) -> Path:
    n_steps = max(1, round(time / step))
    kept = _kept(record, n_steps, time)
    clock, k, stopped = 0.0, 0, "time"
    value = loss(w) if loss is not None else np.nan
    times, points, losses = [0.0], [w.copy()], [value]
    for k in range(1, n_steps + 1):
        pace = step / value if method == "normalised" and value < 1.0 else step
        slope = np.asarray(gradient(w))
        if slope.shape != w.shape:
            raise ValueError(f"gradient must return {len(w)} numbers; got shape {slope.shape}.")
        w = w - pace * slope
        clock += pace
        if not np.isfinite(w).all():
            raise ValueError(f"the path left the floats at step {k}: choose a step below {step:g}")
        asked = k in kept or k == n_steps
        if loss is not None and (asked or method == "normalised"):
            value = float(loss(w))
            if np.isnan(value):
                raise ValueError(f"the loss is not a number at step {k}: choose a step below {step:g}")
            stopped = "loss" if value < MIN_LOSS and method == "normalised" else stopped
        if stop is not None and stop(w):
            stopped = "stop"
        if asked or stopped != "time":
            times.append(clock)
            points.append(w.copy())
            known = asked or method == "normalised" or loss is None
            losses.append(value if known else float(loss(w)))  # type: ignore[misc]
        if stopped != "time":
            break
    return Path(np.array(times), np.array(points), np.array(losses), method, k, stopped)


def _kept(record: int | Literal["all"] | Sequence[float], n_steps: int, time: float) -> set[int]:
    """Return the numbers of the steps whose points are kept."""
    asked = _asked(record, time)
    if not asked.size or (isinstance(record, int) and record >= n_steps):
        return set(range(1, n_steps + 1))
    return {int(k) for k in np.rint(asked / time * n_steps)} - {0}


def _asked(record: int | str | Sequence[float], time: float) -> Array:
    """Return the times at which points are asked for, after 0 and up to the end."""
    if isinstance(record, str):
        if record != "all":
            refuse("record", "a number of points, 'all' or times", record)
        return np.empty(0)
    if isinstance(record, (int, np.integer)):
        return np.linspace(0.0, time, integer("record", record) + 1)[1:]
    asked = np.asarray(record, dtype=np.float64)
    if asked.ndim != 1 or not asked.size or not ((asked >= 0) & (asked <= time)).all():
        raise ValueError(f"record must hold times in [0, {time:g}]")
    if (np.diff(asked) <= 0).any():
        raise ValueError("record must hold rising times")
    return np.unique(np.append(asked[asked > 0], time))


def _counted(gradient: Callable[[Array], Array], most: int) -> Callable[[float, Array], Array]:
    """Return the field of the flow, which refuses to be evaluated more often than that."""
    calls = 0

    def field_of(t: float, at: Array) -> Array:
        nonlocal calls
        calls += 1
        if calls > most:
            raise ValueError(
                f"the flow was followed to time {t:.4g} only when {most:,} evaluations of the gradient "
                "were used up: it is stiff, or slides along a fold; use method='euler' with a small "
                "step, a shorter time, or a larger max_evaluations"
            )
        slope = np.asarray(gradient(at), dtype=np.float64)
        if slope.shape != at.shape or not np.isfinite(slope).all():
            raise ValueError(
                f"gradient must return {len(at)} finite numbers; at time {t:.4g} it returned shape "
                f"{slope.shape}{'' if np.isfinite(slope).all() else ' with NaN or infinity'}"
            )
        return -slope

    return field_of


def _solve(
    field_of: Callable[[float, Array], Array],
    w: Array,
    time: float,
    step: float | None,
    loss: Callable[[Array], float] | None,
    record: int | Literal["all"] | Sequence[float],
    stop: Callable[[Array], bool] | None,
) -> Path:
    from scipy.integrate import solve_ivp

    asked = _asked(record, time)
    answer: Any = solve_ivp(
        field_of, (0.0, time), w,
        t_eval=np.r_[0.0, asked] if asked.size else None, method="RK45",
        rtol=FLOW_RELATIVE_ERROR, atol=FLOW_ABSOLUTE_ERROR, max_step=np.inf if step is None else step,
    )  # fmt: skip
    if not answer.success or not np.isfinite(answer.y).all():
        raise ValueError(f"the flow could not be followed to time {time:g}: {answer.message}")
    times, points, stopped = answer.t, answer.y.T, "time"
    if stop is not None:
        hits = [i for i, point in enumerate(points) if i and stop(point)]
        if hits:
            times, points, stopped = times[: hits[0] + 1], points[: hits[0] + 1], "stop"
    losses = np.array([np.nan if loss is None else float(loss(point)) for point in points])
    return Path(times, np.ascontiguousarray(points), losses, "ivp", int(answer.nfev), stopped)
