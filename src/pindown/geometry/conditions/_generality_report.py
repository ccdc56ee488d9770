"""What a check for generality found, in words."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field

_SHOWN = 5
_NAMED = 8  # units of one layer that are listed one by one


@dataclass(frozen=True)
class Violation:
    """One way in which a network is not general.

    Attributes:
        condition: ``"G1"``, ``"G2"`` or ``"G3"``.
        layer: Number of the affine layer, from 1; the output is the last one.
        units: Units of that layer that take part, from 0.
        detail: What is wrong, in words.
        exact: Whether it is proved. Otherwise it holds modulo a prime, and is wrong with a chance of
            one in two billion.
    """

    condition: str
    layer: int
    units: tuple[int, ...]
    detail: str
    exact: bool = True

    def __str__(self) -> str:
        doubt = "" if self.exact else " (modulo a prime)"
        return f"{self.condition}, layer {self.layer}, {say_units(self.units)}: {self.detail}{doubt}"


@dataclass(frozen=True)
class GeneralityReport:
    """Whether a network is general, and where it is not.

    Attributes:
        ok: Whether no violation was found. It is a proof only if ``exhaustive``.
        exhaustive: Whether all three conditions were checked on all activation patterns.
        violations: What was found; the first few of each kind.
        checked: How far each condition was checked: ``"all patterns"``, ``"all cells"``,
            ``"sampled"`` or ``"untested"``.
    """

    ok: bool
    exhaustive: bool
    violations: tuple[Violation, ...] = ()
    checked: Mapping[str, str] = field(default_factory=dict)

    def __bool__(self) -> bool:
        return self.ok

    def __str__(self) -> str:
        how = ", ".join(f"{name}: {extent}" for name, extent in self.checked.items())
        if self.ok:
            verdict = "general" if self.exhaustive else "no violation found"
            return f"{verdict} ({how})"
        lines = [f"not general ({how})", *map(str, self.violations[:_SHOWN])]
        if len(self.violations) > _SHOWN:
            lines.append(f"and {len(self.violations) - _SHOWN} more")
        return "\n  ".join(lines)

    __repr__ = __str__


def say_units(units: Sequence[int]) -> str:
    """Name units of one layer.

    >>> say_units([3]), say_units([0, 2])
    ('unit 3', 'units 0, 2')
    >>> say_units(range(100))
    'units 0, 1, 2, ... (100)'
    """
    return f"unit{'s' if len(units) != 1 else ''} {_listed(units)}"


def say_pattern(on: Sequence[Sequence[int]], first_layer: int = 1) -> str:
    """Name the units that are on, layer by layer.

    >>> say_pattern([[0, 1], [2]])
    'layer 1: 0, 1; layer 2: 2'
    """
    return "; ".join(f"layer {layer}: {_listed(units)}" for layer, units in enumerate(on, first_layer))


def _listed(units: Sequence[int]) -> str:
    if len(units) <= _NAMED:
        return ", ".join(map(str, units))
    return f"{', '.join(map(str, units[:3]))}, ... ({len(units)})"
