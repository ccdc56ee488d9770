"""What certify returns: the bound, the random classifier it is about, and the competitor beside it."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any

import numpy as np
from numpy.typing import NDArray
from torch import nn

from pindown.bound_text import rounded_up
from pindown.guarantees.bounds.bound import Bound
from pindown.guarantees.certificate.posterior import WeightPosterior


@dataclass(frozen=True)
class Certificate(Bound):
    """A :class:`Bound` on the risk of a classifier, together with the classifier.

    Attributes:
        posterior: The random classifier that the PAC-Bayes bound is about; None for ``"test-set"``.
        network: The network that was trained on the prior's part only, in evaluation mode.
        test_set: Bound on the risk of ``network`` from the same certifying examples. It holds with the
            same confidence, but not together with the certificate: pick one before looking, or give
            each half of delta.
        interrupted: Whether Ctrl-C or the budget cut something short; the bound holds all the same.
        rows: Which rows of X certify; the others made the prior.
    """

    posterior: WeightPosterior | None = None
    network: nn.Module | None = None
    test_set: Bound | None = None
    interrupted: bool = False
    rows: NDArray[np.int64] | None = field(default=None, compare=False)

    def to_dict(self) -> dict[str, Any]:
        """Return plain numbers and strings, for JSON."""
        beside = None if self.test_set is None else self.test_set.to_dict()
        return {**super().to_dict(), "test_set": beside, "interrupted": self.interrupted}

    def __str__(self) -> str:
        lines = super().__str__()
        if self.posterior is None or self.test_set is None:
            return lines
        return (
            f"{lines}\n"
            f"beside it: the network without noise, trained on {self.terms['prior examples']:,.0f} "
            f"examples, has risk at most {rounded_up(self.test_set.value)} "
            f"by {self.test_set.terms['n']:,.0f} held-out ones (either claim alone has this confidence)"
        )

    def __repr__(self) -> str:
        return str(self)
