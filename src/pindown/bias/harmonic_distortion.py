r"""The frequencies that a nonlinearity makes out of a pure tone.

.. math:: \sigma(A\sin t) = a_0 + \sum_{k\ge1}h_k\sin(kt + \varphi_k).

Odd functions make odd harmonics only; :math:`\mathrm{ReLU}(\sin t)` has mean :math:`1/\pi`,
:math:`h_1 = \frac12`, :math:`h_{2n} = 2/(\pi(4n^2 - 1))` and no other odd ones; softplus, which is half
the identity plus an even function, keeps :math:`h_1 = \frac12` exactly. Powers of a signal are
convolutions of its spectrum with itself.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray

from pindown.affine import Array
from pindown.bias.tuning import PERIOD_SAMPLES
from pindown.evidence import Kind
from pindown.torch_modules import in_evaluation
from pindown.validation import integer, positive


@dataclass(frozen=True)
class HarmonicSpectrum:
    """What a nonlinearity makes of a sine.

    Attributes:
        mean: Mean of the output.
        amplitudes: Amplitudes of the harmonics, the fundamental first.
        energy: Mean square of the output without its mean; of all harmonics, listed or not.
        kind: ``"exact"``, up to the folding of harmonics beyond 32768.
    """

    mean: float
    amplitudes: Array = field(repr=False)
    energy: float
    kind: Kind = "exact"

    @property
    def distortion(self) -> float:
        """Total harmonic distortion: all other harmonics over the fundamental; infinite without one."""
        first = float(self.amplitudes[0]) ** 2 / 2
        rest = max(0.0, self.energy - first)
        if first <= np.finfo(float).eps * max(self.energy, np.finfo(float).tiny):
            return float("inf") if rest > 0 else 0.0
        return float(np.sqrt(rest / first))

    def __str__(self) -> str:
        heard = ", ".join(f"{a:.4f}" for a in self.amplitudes[:5])
        return f"mean {self.mean:.4f}, harmonics {heard}, distortion {self.distortion:.4g}"


def harmonic_spectrum(
    function: Callable[[Array], ArrayLike], n_harmonics: int = 16, *, amplitude: float = 1.0
) -> HarmonicSpectrum:
    """Return the spectrum of a nonlinearity's response to a sine.

    Args:
        function: The nonlinearity, on arrays.
        n_harmonics: Harmonics to list, the fundamental included.
        amplitude: Amplitude of the sine.

    Returns:
        A :class:`HarmonicSpectrum`.

    Raises:
        ValueError: If values are not finite, or more harmonics are asked for than can be told apart.

    Example:
        A square has a mean of one half and the second harmonic.

        >>> harmonic_spectrum(np.square, 3).amplitudes.round(9).tolist()
        [0.0, 0.5, 0.0]

    Lecture course, slides on harmonic distortion.
    """
    wanted = integer("n_harmonics", n_harmonics)
    if wanted > PERIOD_SAMPLES // 4:
        raise ValueError(f"n_harmonics must be at most {PERIOD_SAMPLES // 4}; got {n_harmonics!r}.")
    t = 2 * np.pi * np.arange(PERIOD_SAMPLES) / PERIOD_SAMPLES
    return _spectrum(
        np.asarray(function(positive("amplitude", amplitude, zero=True) * np.sin(t))), wanted
    )


def relu_harmonics(n_harmonics: int) -> Array:
    r"""Return the harmonics of :math:`\mathrm{ReLU}(\sin t)` in closed form, the fundamental first.

    >>> relu_harmonics(4).round(4).tolist()
    [0.5, 0.2122, 0.0, 0.0424]

    Lecture course, slides on harmonic distortion; the formula is ours.
    """
    k = np.arange(1, integer("n_harmonics", n_harmonics) + 1, dtype=np.float64)
    with np.errstate(divide="ignore"):
        even = 2 / (np.pi * (k**2 - 1))
    return np.where(k == 1, 0.5, np.where(k % 2 == 0, even, 0.0))


def power_series_spectrum(coefficients: Sequence[float], spectrum: ArrayLike) -> NDArray[np.complex128]:
    r"""Return the spectrum of :math:`\sum_na_nx^n` from that of x, by convolutions with itself.

    Args:
        coefficients: The coefficients :math:`a_0, a_1, \dots`.
        spectrum: Fourier coefficients of x at the frequencies -K, ..., K, an odd number of them.

    Returns:
        Fourier coefficients at the frequencies -nK, ..., nK for the highest power n.

    Raises:
        ValueError: If there are no coefficients or an even number of frequencies.

    Example:
        The square of cos t = (e^{it} + e^{-it})/2 is 1/2 + cos(2t)/2:

        >>> power_series_spectrum([0, 0, 1], [0.5, 0, 0.5]).real.tolist()
        [0.25, 0.0, 0.5, 0.0, 0.25]

    Lecture course, slides on harmonic distortion.
    """
    x = np.asarray(spectrum, dtype=np.complex128)
    a = np.asarray(coefficients, dtype=np.float64)
    if x.ndim != 1 or x.size % 2 == 0 or a.ndim != 1 or not a.size:
        raise ValueError(
            f"coefficients and an odd number of frequencies are needed; got {a.shape} and {x.shape}."
        )
    if not (np.isfinite(x).all() and np.isfinite(a).all()):
        raise ValueError("coefficients and spectrum must be finite.")
    reach = (x.size // 2) * (a.size - 1)
    total, power = np.zeros(2 * reach + 1, dtype=np.complex128), np.ones(1, dtype=np.complex128)
    for factor in a:
        half = power.size // 2
        total[reach - half : reach + half + 1] += factor * power
        power = np.convolve(power, x)
    return total


@dataclass(frozen=True)
class DistortionReport:
    """Distortion of a tone on its way through the layers.

    Attributes:
        layers: Names of the layers, in the order they were called.
        distortion: Energy in other harmonics over energy in the fundamental, as a root, over all units.
        kind: ``"exact"`` for the direction given, up to folding.
    """

    layers: tuple[str, ...]
    distortion: Array = field(repr=False)
    kind: Kind = "exact"

    def __str__(self) -> str:
        parts = ", ".join(f"{n} {v:.3g}" for n, v in zip(self.layers, self.distortion, strict=True))
        return f"distortion of a sine: {parts}"


def distortion_report(
    module: Any, direction: Any, *, centre: Any = None, samples: int = 1024
) -> DistortionReport:
    """Send a sine along a direction of input space through a torch module and measure each layer.

    Args:
        module: A torch module; it is run once, in evaluation mode.
        direction: Direction and amplitude of the sine (d,), a tensor.
        centre: Input (d,) around which it swings; zero if left out.
        samples: Samples of one period.

    Returns:
        A :class:`DistortionReport` over the modules without children.

    Raises:
        ValueError: If the direction is zero or not finite.

    Lecture course, slides on harmonic distortion.
    """
    from pindown.extras import torch

    direction = torch.as_tensor(direction).detach()
    if not bool(torch.isfinite(direction).all()) or not bool(direction.any()):
        raise ValueError("direction must be finite and not zero.")
    samples = integer("samples", samples, least=8)
    t = torch.arange(samples, dtype=torch.float64) * (2 * torch.pi / samples)
    x = torch.sin(t).to(direction.dtype)[:, None] * direction.reshape(1, -1)
    x = x.reshape(samples, *direction.shape) + (0 if centre is None else torch.as_tensor(centre))
    names, outputs = [], []
    leaves = [(name or "module", m) for name, m in module.named_modules() if not list(m.children())]
    handles = []
    for name, leaf in leaves:

        def keep(_: Any, __: Any, output: Any, name: str = name) -> None:
            names.append(name)
            outputs.append(output.detach().reshape(samples, -1).double().numpy())

        handles.append(leaf.register_forward_hook(keep))
    try:
        with in_evaluation(module), torch.no_grad():
            module(x)
    finally:
        for handle in handles:
            handle.remove()
    return DistortionReport(tuple(names), np.array([_distortion(values) for values in outputs]))


def _distortion(values: Array) -> float:
    energy = np.abs(np.fft.rfft(values, axis=0)[1:]) ** 2
    first, rest = float(energy[0].sum()), float(energy[1:].sum())
    if first <= np.finfo(float).eps * (first + rest):
        return float("inf") if rest > 0 else 0.0
    return float(np.sqrt(rest / first))


def _spectrum(values: Array, wanted: int) -> HarmonicSpectrum:
    values = np.asarray(values, dtype=np.float64)
    if values.shape != (PERIOD_SAMPLES,) or not np.isfinite(values).all():
        raise ValueError("function must map arrays to finite arrays of the same shape.")
    transform = np.fft.rfft(values) / PERIOD_SAMPLES
    mean = float(transform[0].real)
    return HarmonicSpectrum(mean, 2 * np.abs(transform[1 : wanted + 1]), float(np.var(values)))
