"""A scatter of two scores as a few bytes of SVG that follow the page's colours."""

from __future__ import annotations

import math

import numpy as np
from numpy.typing import NDArray

from pindown.affine import Array

_WIDTH, _HEIGHT = 400, 300
_LEFT, _BOTTOM, _TOP, _RIGHT = 52, 44, 12, 12
_MOST_POINTS = 4_000  # per colour; more would only fill the plane
_EDGES = (0.002, 0.998)  # of the axes: a few far points must not press all others into a corner


def scatter(
    x: Array, y: Array, marked: NDArray[np.bool_], threshold: float, labels: tuple[str, str]
) -> str:
    """Return an ``<svg>`` element; points beyond the axes are drawn on their edge.

    Args:
        x: Horizontal positions.
        y: Vertical positions.
        marked: Points in the colour of a warning.
        threshold: A vertical line, if it is inside.
        labels: What the axes measure.
    """
    horizontal, vertical = _range(x), _range(y)
    across = _positions(x, horizontal, _LEFT, _WIDTH - _RIGHT)
    down = _positions(y, vertical, _HEIGHT - _BOTTOM, _TOP)
    parts = [
        f'<svg viewBox="0 0 {_WIDTH} {_HEIGHT}" font-size="11">',
        _axis_lines(),
        *_ticks(horizontal, vertical),
    ]
    for group, colour in ((~marked, "--fill-1"), (marked, "--warn")):
        dots = _dots(across[group], down[group])
        if dots:
            parts.append(
                f'<path d="{dots}" style="fill:none;stroke:var({colour});stroke-width:4;'
                f'stroke-linecap:round;stroke-opacity:.55"/>'
            )
    if horizontal[0] < threshold < horizontal[1]:
        at = float(_positions(np.array([threshold]), horizontal, _LEFT, _WIDTH - _RIGHT)[0])
        parts.append(
            f'<path d="M{at:.1f} {_TOP}V{_HEIGHT - _BOTTOM}" '
            'style="stroke:var(--ink);stroke-dasharray:4 3"/>'
        )
    middle = (_TOP + _HEIGHT - _BOTTOM) / 2
    parts += [
        _text((_LEFT + _WIDTH - _RIGHT) / 2, _HEIGHT - 8, labels[0], "middle"),
        f'<text transform="translate(13 {middle:.0f}) rotate(-90)" text-anchor="middle" '
        f'style="fill:var(--muted)">{labels[1]}</text>',
        "</svg>",
    ]
    return "\n".join(parts)


def _range(values: Array) -> tuple[float, float]:
    low, high = (float(v) for v in np.quantile(values, _EDGES))
    pad = 0.04 * (high - low) or 0.5 * abs(high) or 0.5
    return low - pad, high + pad


def _positions(values: Array, span: tuple[float, float], start: float, end: float) -> Array:
    share = (np.clip(values, *span) - span[0]) / (span[1] - span[0])
    return start + share * (end - start)


def _dots(across: Array, down: Array) -> str:
    """Return dots as lines of length zero with round ends: twelve bytes each."""
    step = max(1, math.ceil(len(across) / _MOST_POINTS))
    pairs = zip(across[::step].tolist(), down[::step].tolist(), strict=True)
    return "".join(f"M{u:.1f} {v:.1f}h0" for u, v in pairs)


def _axis_lines() -> str:
    return (
        f'<path d="M{_LEFT} {_TOP}V{_HEIGHT - _BOTTOM}H{_WIDTH - _RIGHT}" '
        'style="fill:none;stroke:var(--line)"/>'
    )


def _ticks(horizontal: tuple[float, float], vertical: tuple[float, float]) -> list[str]:
    from matplotlib.ticker import MaxNLocator

    found = []
    for value in MaxNLocator(5).tick_values(*horizontal):
        if horizontal[0] <= value <= horizontal[1]:
            at = _positions(np.array([value]), horizontal, _LEFT, _WIDTH - _RIGHT)[0]
            found.append(_text(at, _HEIGHT - _BOTTOM + 15, f"{value:g}", "middle"))
    for value in MaxNLocator(5).tick_values(*vertical):
        if vertical[0] <= value <= vertical[1]:
            at = _positions(np.array([value]), vertical, _HEIGHT - _BOTTOM, _TOP)[0]
            found.append(_text(_LEFT - 6, at + 4, f"{value:g}", "end"))
    return found


def _text(x: float, y: float, words: str, anchor: str) -> str:
    return (
        f'<text x="{x:.1f}" y="{y:.1f}" text-anchor="{anchor}" style="fill:var(--muted)">{words}</text>'
    )
