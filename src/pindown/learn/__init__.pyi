# What pindown.learn offers; lazy.py reads this list.

# Networks trained to the global optimum, with the proof.
from pindown.learn.exact import ExactReluClassifier as ExactReluClassifier
from pindown.learn.exact import ExactReluRegressor as ExactReluRegressor
from pindown.learn.segmented import SegmentedRegressor as SegmentedRegressor

# Single gates with a promise.
from pindown.learn.gates import GLMTron as GLMTron
from pindown.learn.gates import ModifiedSGDRegressor as ModifiedSGDRegressor
from pindown.learn.gates import NoisyGDRegressor as NoisyGDRegressor
from pindown.learn.gates import SingleFilterRegressor as SingleFilterRegressor

# Margins, kernels and max pooling.
from pindown.learn.margins import MarginPerceptron as MarginPerceptron
from pindown.learn.kernels import KernelLogisticClassifier as KernelLogisticClassifier
from pindown.learn.kernels import LeaveOneOutKernelRidge as LeaveOneOutKernelRidge
from pindown.learn.max_pooling import MaxPoolClassifier as MaxPoolClassifier

# Codes.
from pindown.learn.sparse_coding import SparseCodingAutoencoder as SparseCodingAutoencoder
from pindown.learn.sparse_coding import TiedAutoencoder as TiedAutoencoder
from pindown.learn.mutual_autoencoder import MutualAutoencoder as MutualAutoencoder

# What belongs, from examples alone.
from pindown.learn.one_class import LocalMaximaDetector as LocalMaximaDetector

# How often a detector is wrong.
from pindown.learn.conformal import ConformalDetector as ConformalDetector
from pindown.learn.conformal import benjamini_hochberg as benjamini_hochberg
from pindown.learn.conformal import conformal_p_values as conformal_p_values

# Teachers, students and early exits.
from pindown.learn.distillation import LinearDistiller as LinearDistiller
from pindown.learn.distillation import distil as distil
from pindown.learn.multi_exit import MultiExitClassifier as MultiExitClassifier

# Reliable learning: false positives beside the loss on positives.
from pindown.learn.reliable import Reliability as Reliability
from pindown.learn.reliable import is_reliable as is_reliable
from pindown.learn.reliable import false_positive_loss as false_positive_loss
from pindown.learn.reliable import positive_loss as positive_loss
