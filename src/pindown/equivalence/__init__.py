"""WHICH function: are two networks the same, how small can one be, what pins its weights down."""

from typing import TYPE_CHECKING

from pindown.equivalence.unit_relations import LayerRelations as LayerRelations
from pindown.equivalence.unit_relations import ParallelUnits as ParallelUnits
from pindown.equivalence.unit_relations import unit_relations as unit_relations
from pindown.lazy import lazy_names

if TYPE_CHECKING:
    from pindown.equivalence.changes import (
        Change as Change,
    )
    from pindown.equivalence.changes import (
        GapBound as GapBound,
    )
    from pindown.equivalence.changes import (
        gap_of_changes as gap_of_changes,
    )
    from pindown.equivalence.comparison import (
        Diff as Diff,
    )
    from pindown.equivalence.comparison import (
        LabelDiff as LabelDiff,
    )
    from pindown.equivalence.comparison import (
        LayerDifference as LayerDifference,
    )
    from pindown.equivalence.comparison import (
        diff as diff,
    )
    from pindown.equivalence.flat_directions import (
        FunctionalDimension as FunctionalDimension,
    )
    from pindown.equivalence.flat_directions import (
        functional_dimension as functional_dimension,
    )
    from pindown.equivalence.gauge_fixing import (
        CanonicalForm as CanonicalForm,
    )
    from pindown.equivalence.gauge_fixing import (
        canonical as canonical,
    )
    from pindown.equivalence.gauge_fixing import (
        canonical_form as canonical_form,
    )
    from pindown.equivalence.identifiable import (
        Identifiability as Identifiability,
    )
    from pindown.equivalence.identifiable import (
        check_identifiable as check_identifiable,
    )
    from pindown.equivalence.identifiable import (
        identifiable_network as identifiable_network,
    )
    from pindown.equivalence.matching import (
        Matching as Matching,
    )
    from pindown.equivalence.matching import (
        match as match,
    )
    from pindown.equivalence.recovery import (
        Recovered as Recovered,
    )
    from pindown.equivalence.recovery import (
        recover as recover,
    )
    from pindown.equivalence.shallow import (
        ShallowDecision as ShallowDecision,
    )
    from pindown.equivalence.shallow import (
        decide_shallow as decide_shallow,
    )
    from pindown.equivalence.shallow import (
        shallow_normal_form as shallow_normal_form,
    )
    from pindown.equivalence.shrinking import (
        Shrunk as Shrunk,
    )
    from pindown.equivalence.shrinking import (
        Step as Step,
    )
    from pindown.equivalence.shrinking import (
        shrink as shrink,
    )
    from pindown.equivalence.symmetry import (
        Symmetry as Symmetry,
    )
    from pindown.equivalence.symmetry import (
        apply as apply,
    )
    from pindown.equivalence.symmetry import (
        compose as compose,
    )
    from pindown.equivalence.symmetry import (
        identity as identity,
    )
    from pindown.equivalence.symmetry import (
        inverse as inverse,
    )
    from pindown.equivalence.symmetry import (
        random_symmetry as random_symmetry,
    )

# Where each name lives: a module is loaded when something in it is used, not on import.
_NAMES = {
    "changes": "Change GapBound gap_of_changes",
    "comparison": "Diff LabelDiff LayerDifference diff",
    "flat_directions": "FunctionalDimension functional_dimension",
    "gauge_fixing": "CanonicalForm canonical canonical_form",
    "identifiable": "Identifiability check_identifiable identifiable_network",
    "matching": "Matching match",
    "recovery": "Recovered recover",
    "shallow": "ShallowDecision decide_shallow shallow_normal_form",
    "shrinking": "Shrunk Step shrink",
    "symmetry": "Symmetry apply compose identity inverse random_symmetry",
}
__getattr__, __dir__, __all__ = lazy_names(
    __name__,
    _NAMES,
    (
        "LayerRelations",
        "ParallelUnits",
        "unit_relations",
    ),
)
