"""Probes of trained classifiers: where they look, what cue they follow, how brain-like they are."""

from typing import TYPE_CHECKING

from pindown.lazy import lazy_names

if TYPE_CHECKING:
    from pindown.symmetry.probes.class_activation import ActivationMaps as ActivationMaps
    from pindown.symmetry.probes.class_activation import class_activation_maps as class_activation_maps
    from pindown.symmetry.probes.closed_loop import LoopFilter as LoopFilter
    from pindown.symmetry.probes.closed_loop import closed_loop_filter as closed_loop_filter
    from pindown.symmetry.probes.filtered_stimuli import FilteredStimuli as FilteredStimuli
    from pindown.symmetry.probes.filtered_stimuli import make_filtered_stimuli as make_filtered_stimuli
    from pindown.symmetry.probes.neural_fit import NeuralFit as NeuralFit
    from pindown.symmetry.probes.neural_fit import behavioural_consistency as behavioural_consistency
    from pindown.symmetry.probes.neural_fit import brain_likeness as brain_likeness
    from pindown.symmetry.probes.neural_fit import neural_predictivity as neural_predictivity
    from pindown.symmetry.probes.neural_fit import response_reliability as response_reliability
    from pindown.symmetry.probes.texture_shape import CueImages as CueImages
    from pindown.symmetry.probes.texture_shape import ShapeBias as ShapeBias
    from pindown.symmetry.probes.texture_shape import make_cue_images as make_cue_images
    from pindown.symmetry.probes.texture_shape import shape_bias as shape_bias

__getattr__, __dir__, __all__ = lazy_names(
    __name__,
    {
        "class_activation": "ActivationMaps class_activation_maps",
        "closed_loop": "LoopFilter closed_loop_filter",
        "filtered_stimuli": "FilteredStimuli make_filtered_stimuli",
        "neural_fit": "NeuralFit behavioural_consistency brain_likeness neural_predictivity "
        "response_reliability",
        "texture_shape": "CueImages ShapeBias make_cue_images shape_bias",
    },
)
