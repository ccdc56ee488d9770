"""What the library says about a case, held against what is certainly true."""

from __future__ import annotations

from collections.abc import Callable, Sequence

from tests.soundness.cases import Case
from tests.soundness.checks import bounds, classes, facts, pairs, properties
from tests.soundness.session import Refused, Session

CHECKS: dict[str, Callable[[Session], None]] = {
    "interval bounds": bounds.intervals,
    "linear bounds": bounds.linear,
    "forward bounds": bounds.forwards,
    "optimised bounds": bounds.optimised,
    "certified": classes.certified,
    "certified radii": classes.certified_radii,
    "certified accuracy": classes.certified_accuracy,
    "minimum distance": classes.minimum_distance,
    "output range": facts.output_range,
    "lipschitz bounds": facts.lipschitz_bounds,
    "lipschitz constant": facts.lipschitz_constant,
    "cells": facts.cells,
    "model bounds": properties.model_bounds,
    "verify": properties.verify,
    "verify pairs": properties.verify_pairs,
    "splitting units": properties.split_units,
    "cutting boxes": properties.cut_boxes,
    "deducing": properties.deduce,
    "diff": pairs.diff,
    "gap methods": pairs.gap_methods,
    "shrink": pairs.shrink,
    "canonical": pairs.canonical,
}


def run_checks(case: Case, only: Sequence[str] | None = None) -> Session:
    """Put all questions about a case, or some of them."""
    session = Session(case)
    for name in CHECKS if only is None else only:
        session.check = name
        try:
            CHECKS[name](session)
        except Refused:
            continue
        except (ValueError, OverflowError) as error:  # numbers such as NaN compare with nothing
            session.claim(False, f"the answer cannot be compared with the truth: {error}")
    return session
