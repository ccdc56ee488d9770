"""Learning what belongs from examples alone: a membership score and a quality score."""

from typing import TYPE_CHECKING

from pindown.lazy import lazy_names

if TYPE_CHECKING:
    from pindown.learn.one_class.detector import LocalMaximaDetector as LocalMaximaDetector
    from pindown.learn.one_class.improvement import Path as Path
    from pindown.learn.one_class.report import DetectorReport as DetectorReport

_NAMES = {
    "detector": "LocalMaximaDetector",
    "improvement": "Path",
    "report": "DetectorReport",
}
__getattr__, __dir__, __all__ = lazy_names(__name__, _NAMES)
