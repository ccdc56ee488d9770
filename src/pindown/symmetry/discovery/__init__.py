"""Learning a symmetry: the group whose orbits the data are made of, judged on held-out orbits."""

from typing import TYPE_CHECKING

from pindown.lazy import lazy_names

if TYPE_CHECKING:
    from pindown.symmetry.discovery.atoms import Atoms as Atoms
    from pindown.symmetry.discovery.atoms import group_recovery as group_recovery
    from pindown.symmetry.discovery.atoms import learn_orbit as learn_orbit
    from pindown.symmetry.discovery.evidence import Evidence as Evidence
    from pindown.symmetry.discovery.evidence import hard_negatives as hard_negatives
    from pindown.symmetry.discovery.gramians import cayley_permutations as cayley_permutations
    from pindown.symmetry.discovery.gramians import gramian as gramian
    from pindown.symmetry.discovery.gramians import gramian_automorphisms as gramian_automorphisms
    from pindown.symmetry.discovery.gramians import is_permuted_matrix as is_permuted_matrix
    from pindown.symmetry.discovery.gramians import regular_subgroups as regular_subgroups
    from pindown.symmetry.discovery.known import identify as identify
    from pindown.symmetry.discovery.known import isomorphism as isomorphism
    from pindown.symmetry.discovery.known import known_groups as known_groups
    from pindown.symmetry.discovery.learner import SymmetryLearner as SymmetryLearner
    from pindown.symmetry.discovery.penalties import gram_symmetry_penalty as gram_symmetry_penalty
    from pindown.symmetry.discovery.penalties import soft_sort as soft_sort
    from pindown.symmetry.discovery.penalties import sorted_gram_penalty as sorted_gram_penalty
    from pindown.symmetry.discovery.scores import orbit_closure_error as orbit_closure_error
    from pindown.symmetry.discovery.scores import orbit_score as orbit_score

# Where each name lives: a module is loaded when something in it is used, not on import.
__getattr__, __dir__, __all__ = lazy_names(
    __name__,
    {
        "atoms": "Atoms group_recovery learn_orbit",
        "evidence": "Evidence hard_negatives",
        "gramians": "automorphism_orbits cayley_permutations gramian gramian_automorphisms "
        "is_permuted_matrix regular_subgroups",
        "known": "identify isomorphism known_groups product_table",
        "learner": "SymmetryLearner",
        "penalties": "gram_symmetry_penalty soft_sort sorted_gram_penalty",
        "scores": "orbit_closure_error orbit_score separation signature_distances sorted_signature",
    },
)
