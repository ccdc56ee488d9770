"""The experiments by name: all names at once, each module only when its experiment is wanted."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from importlib import import_module

from pindown.experiments.declaration import Experiment


class Register(Mapping[str, Experiment]):
    """Experiments by their names, in the order given, imported when they are looked up.

    A module ``some_result`` declares, as ``EXPERIMENT``, the one with the id ``some-result``, unless
    another id is given for it.

    Args:
        package: Where the modules are.
        modules: Their names.
        ids: The ids that are not the names of their modules.

    >>> known = Register("pindown.experiments", ["max_pooling"])
    >>> list(known), "max-pooling" in known, "min-pooling" in known
    (['max-pooling'], True, False)
    >>> known["max-pooling"].id
    'max-pooling'
    """

    def __init__(
        self, package: str, modules: Iterable[str], ids: Mapping[str, str] | None = None
    ) -> None:
        ids = ids or {}
        self._homes = {ids.get(name, name.replace("_", "-")): f"{package}.{name}" for name in modules}

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
