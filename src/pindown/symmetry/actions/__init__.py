"""Actions of groups, and of families that form no group, on images, points, sets and graphs."""

from pindown.lazy import lazy_names

# Where each name lives: a module is loaded when something in it is used, not on import.
__getattr__, __dir__, __all__ = lazy_names(
    __name__,
    {
        "families": "Transformations flattened",
        "graphs": "graph_permutations pack_graphs unpack_graphs",
        "images": "image_dihedral image_reflection image_rotations image_translations",
        "interpolated": "affine_images image_scalings image_turns",
        "light": "contrast_changes gamma_changes illumination",
        "motions": "act_images act_points planar_rotations se2",
        "sets": "set_permutations set_shuffles",
        "warps": "smooth_displacement smooth_warps warp",
    },
)
