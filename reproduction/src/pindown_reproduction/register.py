"""The experiments by name: all names at once, each module only when its experiment is wanted."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from importlib import import_module
from pathlib import Path

from pindown_reproduction.experiment import Experiment

# The folders of the sources, in the order of lists and pages.
SOURCES = (
    "relu_thesis",
    "underspecification_thesis",
    "course",
    "local_maxima",
    "max_pooling_paper",
    "elsewhere",
)


class Register(Mapping[str, Experiment]):
    """Experiments by their names, source by source, imported when they are looked up.

    A module ``some_result`` in a source's folder declares, as ``EXPERIMENT``, the one with the id
    ``some-result``.

    Args:
        sources: Names of folders beside this module.

    >>> known = Register(["max_pooling_paper"])
    >>> list(known), "max-pooling" in known, "min-pooling" in known
    (['max-pooling'], True, False)
    >>> known["max-pooling"].id
    'max-pooling'
    """

    def __init__(self, sources: Iterable[str]) -> None:
        package = __name__.rpartition(".")[0]
        self._homes = {
            path.stem.replace("_", "-"): f"{package}.{source}.{path.stem}"
            for source in sources
            for path in sorted(Path(__file__).with_name(source).glob("[!_]*.py"))
        }

    def __getitem__(self, name: str) -> Experiment:
        experiment: Experiment = import_module(self._homes[name]).EXPERIMENT
        return experiment

    def __contains__(self, name: object) -> bool:
        return name in self._homes  # without the import that a lookup would be

    def __iter__(self) -> Iterator[str]:
        return iter(self._homes)

    def __len__(self) -> int:
        return len(self._homes)

    def __repr__(self) -> str:
        return f"<{len(self)} experiments: {', '.join(self)}>"


EXPERIMENTS: Mapping[str, Experiment] = Register(SOURCES)
