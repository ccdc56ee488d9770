# What pindown.probes offers; lazy.py reads this list. More stands in pindown.probes.fourier's own list.

# attacks on any model, in closed form where it is affine; the search is that of pindown.verification
from pindown.probes.attacks import attack as attack
from pindown.verification.counterexamples import AttackResult as AttackResult
from pindown.probes.differentiable import Differentiable as Differentiable
from pindown.probes.foolbox import foolbox_attack as foolbox_attack
from pindown.probes.linear_attacks import linear_distance as linear_distance

# what each input adds to an output
from pindown.probes.attribution import Attributions as Attributions
from pindown.probes.attribution import attributions as attributions
from pindown.probes.attribution import integrated_gradients as integrated_gradients
from pindown.probes.attribution import draw_attributions as draw_attributions

# random noise beside adversarial changes
from pindown.probes.noise import NoiseComparison as NoiseComparison
from pindown.probes.noise import mean_noise_probability as mean_noise_probability
from pindown.probes.noise import noise_flip_probability as noise_flip_probability
from pindown.probes.noise import noise_tail_bound as noise_tail_bound
from pindown.probes.noise import noise_versus_adversarial as noise_versus_adversarial

# frequencies
from pindown.probes.fourier import FourierMask as FourierMask
from pindown.probes.fourier import fourier_attack as fourier_attack
from pindown.probes.fourier import fourier_mask as fourier_mask
from pindown.probes.fourier import mask_check as mask_check

# where classifiers look, and what cue they follow
from pindown.probes.class_activation import ActivationMaps as ActivationMaps
from pindown.probes.class_activation import class_activation_maps as class_activation_maps
from pindown.probes.texture_shape import CueImages as CueImages
from pindown.probes.texture_shape import ShapeBias as ShapeBias
from pindown.probes.texture_shape import make_cue_images as make_cue_images
from pindown.probes.texture_shape import shape_bias as shape_bias

# how brain-like they are
from pindown.probes.filtered_stimuli import FilteredStimuli as FilteredStimuli
from pindown.probes.filtered_stimuli import LoopFilter as LoopFilter
from pindown.probes.filtered_stimuli import ObserverReport as ObserverReport
from pindown.probes.filtered_stimuli import closed_loop_filter as closed_loop_filter
from pindown.probes.filtered_stimuli import make_filtered_stimuli as make_filtered_stimuli
from pindown.probes.neural_fit import NeuralFit as NeuralFit
from pindown.probes.neural_fit import behavioural_consistency as behavioural_consistency
from pindown.probes.neural_fit import brain_likeness as brain_likeness
from pindown.probes.neural_fit import layer_features as layer_features
from pindown.probes.neural_fit import neural_predictivity as neural_predictivity
from pindown.probes.neural_fit import response_reliability as response_reliability

# generative adversarial networks
from pindown.probes.gan import GanHistory as GanHistory
from pindown.probes.gan import cross_entropy as cross_entropy
from pindown.probes.gan import gan_value as gan_value
from pindown.probes.gan import jensen_shannon as jensen_shannon
from pindown.probes.gan import optimal_discriminator as optimal_discriminator
from pindown.probes.gan import train_gan as train_gan
