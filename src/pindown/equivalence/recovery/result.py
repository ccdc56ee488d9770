"""What recovery returns."""

from __future__ import annotations

from dataclasses import dataclass
from math import nan
from typing import TYPE_CHECKING, Literal

from pindown.network import ReluNetwork
from pindown.notebook import card

if TYPE_CHECKING:
    from pindown.equivalence.comparison import Diff


@dataclass(frozen=True, eq=False, repr=False)
class Recovered:
    """A network found from values, checked on fresh points; or why there is none.

    The check is by samples, so this is an estimate, not a proof: a black box can differ anywhere it was
    not asked. If the query is a network itself, ``comparison`` proves the rest.

    Attributes:
        network: The network, or None if no network was found that passes the check.
        n_queries: Points the query was asked for.
        max_error: Largest difference of an output on fresh points of the box; NaN without a network.
        status: ``("recovered",)``, or what failed and in which hidden layer: ``("few", 2)`` (units of
            that layer not seen), ``("orient", 1)`` (the side on which a unit is on not decided),
            ``("mismatch",)`` (a network was found, but it fails the check),
            ``("not piecewise linear",)``, ``("noisy",)``, ``("budget",)``.
        reason: The same in plain words.
        noise: Measured error of the query's values, relative to their spread.
        notes: What the function does not determine, in plain words.
        comparison: What ``pindown.diff`` proves about the network that answered and the one found; None
            for a black box, without a network, or if the time was over.
    """

    network: ReluNetwork | None
    n_queries: int
    max_error: float = nan
    status: tuple[str | int, ...] = ("recovered",)
    reason: str = ""
    noise: float = nan
    notes: tuple[str, ...] = ()
    comparison: Diff | None = None

    @property
    def kind(self) -> Literal["exact", "estimate"]:
        """``"exact"`` if ``comparison`` proves both the same, else by samples: ``"estimate"``."""
        proved = self.comparison is not None and self.comparison.verdict == "same"
        return "exact" if proved else "estimate"

    def __bool__(self) -> bool:
        return self.network is not None

    _repr_html_ = card

    def __repr__(self) -> str:
        if self.network is None:
            return f"Recovered(nothing: {self.reason}; {self.n_queries:,} queries)"
        widths = " -> ".join(map(str, self.network.widths))
        same = self.comparison is not None and self.comparison.verdict == "same"
        proof = f", proved within {self.comparison.gap_upper:.1e}" if self.comparison and same else ""
        return (
            f"Recovered({widths}, largest error {self.max_error:.1e} on fresh points{proof}, "
            f"{self.n_queries:,} queries)"
        )
