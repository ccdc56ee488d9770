"""Symmetry: groups and their actions, how far a model keeps them, and models that keep them exactly."""

from typing import TYPE_CHECKING

from pindown.lazy import lazy_names

if TYPE_CHECKING:
    from pindown.symmetry.groups import Group as Group
    from pindown.symmetry.groups import cyclic as cyclic
    from pindown.symmetry.groups import dihedral as dihedral
    from pindown.symmetry.groups import symmetric as symmetric

# Where each name lives: a module is loaded when something in it is used, not on import.
__getattr__, __dir__, __all__ = lazy_names(
    __name__,
    {
        "groups": "Group cyclic dihedral from_permutations symmetric",
    },
)
