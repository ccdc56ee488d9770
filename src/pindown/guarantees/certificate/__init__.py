"""A certificate for your own network: its risk on new examples, proved at a stated confidence.

Names are imported when they are asked for.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from pindown.lazy import lazy_names

if TYPE_CHECKING:
    from pindown.guarantees.certificate.posterior import WeightPosterior as WeightPosterior
    from pindown.guarantees.certificate.recipe import certify as certify
    from pindown.guarantees.certificate.result import Certificate as Certificate

__getattr__, __dir__, __all__ = lazy_names(
    __name__, {"recipe": "certify", "posterior": "WeightPosterior", "result": "Certificate"}
)
