"""Layers that keep a symmetry by construction: every linear map that commutes with a group, in torch."""

from typing import TYPE_CHECKING

from pindown.lazy import lazy_names

if TYPE_CHECKING:
    from pindown.symmetry.layers.basis import equivariant_basis as equivariant_basis
    from pindown.symmetry.layers.basis import expected_dimension as expected_dimension
    from pindown.symmetry.layers.basis import invariant_basis as invariant_basis
    from pindown.symmetry.layers.blueprint import validate_blueprint as validate_blueprint
    from pindown.symmetry.layers.convolution import GroupConv as GroupConv
    from pindown.symmetry.layers.linear import EquivariantLinear as EquivariantLinear

# Where each name lives: torch is loaded with the first layer that is used.
__getattr__, __dir__, __all__ = lazy_names(
    __name__,
    {
        "basis": "equivariant_basis expected_dimension invariant_basis",
        "blueprint": "Blueprint Stage validate_blueprint",
        "convolution": "CosetPool GroupConv GroupLift GroupPool",
        "linear": "EquivariantLinear",
        "representations": (
            "coset_representation direct_sum is_orthogonal left_cosets tensor_product trivial"
        ),
        "sets": "PermEquivariant PermInvariant SetNetwork",
        "smoothed": "SmoothedModule",
        "templates": "convolution_matrix group_convolution template_network",
    },
)
