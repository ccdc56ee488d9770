"""What recovery returns."""

from __future__ import annotations

from dataclasses import dataclass
from math import isnan, nan
from typing import TYPE_CHECKING, Literal

from pindown.network import ReluNetwork
from pindown.notebook import card

if TYPE_CHECKING:
    from pindown.equivalence.comparison import Diff

DELTA = 0.05  # how often the share that fresh points exclude may be too small


@dataclass(frozen=True, eq=False, repr=False)
class Recovered:
    """A network found from values, checked on fresh points; or why there is none.

    The check is by samples, not a proof: a black box can differ anywhere it was not asked, but with 95 %
    confidence on no more than ``excluded_share`` of the box. If the query is a network itself,
    ``comparison`` proves the rest.

    Attributes:
        network: The network, or None if no network was found that passes the check.
        n_queries: Points the query was asked for.
        max_error: Largest difference of an output on fresh points of the box; NaN without a network.
        excluded_share: With probability at least 1 - ``delta`` the network differs from the query by
            more than ``max_error`` on at most this share of the box's volume; on less, nothing is
            excluded. NaN without a network.
        status: ``("recovered",)`` (found, and the check passed), or what failed and in which hidden
            layer: ``("few", 2)`` (units of that layer not seen), ``("orient", 1)`` (the side on which a
            unit is on not decided),
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
    excluded_share: float = nan
    status: tuple[str | int, ...] = ("recovered",)
    reason: str = ""
    noise: float = nan
    notes: tuple[str, ...] = ()
    comparison: Diff | None = None
    delta: float = DELTA

    @property
    def kind(self) -> Literal["exact", "probability", "estimate"]:
        """``"exact"`` if ``comparison`` proves both the same; ``"probability"``: ``excluded_share``."""
        if self.comparison is not None and self.comparison.verdict == "same":
            return "exact"
        return "estimate" if isnan(self.excluded_share) else "probability"

    @property
    def assumption(self) -> str:
        """What ``excluded_share`` rests on."""
        return (
            "The fresh points are independent and uniform on the box, drawn after the network was "
            "found; the query answers a point the same way whenever it is asked."
        )

    def __bool__(self) -> bool:
        return self.network is not None

    _repr_html_ = card

    def __repr__(self) -> str:
        if self.network is None:
            return f"Recovered(nothing: {self.reason}; {self.n_queries:,} queries)"
        widths = " -> ".join(map(str, self.network.widths))
        same = self.comparison is not None and self.comparison.verdict == "same"
        proof = f", proved within {self.comparison.gap_upper:.1e}" if self.comparison and same else ""
        share = ""
        if self.kind == "probability":
            sure = f"with {1 - self.delta:.0%} confidence"
            share = f", more on at most {self.excluded_share:.2g} of the box {sure}"
        return (
            f"Recovered({widths}, largest error {self.max_error:.1e} on fresh points{proof}{share}, "
            f"{self.n_queries:,} queries)"
        )
