# What pindown.learn.sparse_coding offers; lazy.py reads this list.

# Estimators.
from pindown.learn.sparse_coding.estimator import SparseCodingAutoencoder as SparseCodingAutoencoder
from pindown.learn.sparse_coding.tied_autoencoder import TiedAutoencoder as TiedAutoencoder

# Where to begin.
from pindown.learn.sparse_coding.atom_search import likely_atoms as likely_atoms

# Support recovery with its certificate.
from pindown.learn.sparse_coding.support_recovery import RecoveryCertificate as RecoveryCertificate
from pindown.learn.sparse_coding.support_recovery import certify_weights as certify_weights
from pindown.learn.sparse_coding.support_recovery import exponents_recover as exponents_recover
from pindown.learn.sparse_coding.support_recovery import recover_support as recover_support
from pindown.learn.sparse_coding.support_recovery import recovery_certificate as recovery_certificate
from pindown.learn.sparse_coding.support_recovery import recovery_threshold as recovery_threshold

# Loss, gradient and descent.
from pindown.learn.sparse_coding.gradient_descent import DictionaryError as DictionaryError
from pindown.learn.sparse_coding.gradient_descent import dead_fraction as dead_fraction
from pindown.learn.sparse_coding.gradient_descent import dictionary_error as dictionary_error
from pindown.learn.sparse_coding.gradient_descent import loss_and_gradient as loss_and_gradient
from pindown.learn.sparse_coding.gradient_descent import reconstruction_loss as reconstruction_loss

# Expected gradients near the dictionary.
from pindown.learn.sparse_coding.proxy_gradients import proxy_gradient as proxy_gradient
from pindown.learn.sparse_coding.proxy_gradients import support_gradient as support_gradient
from pindown.learn.sparse_coding.criticality import Criticality as Criticality
from pindown.learn.sparse_coding.criticality import criticality_bounds as criticality_bounds
from pindown.learn.sparse_coding.criticality import (
    decomposition_of_gradient as decomposition_of_gradient,
)
from pindown.learn.sparse_coding.criticality import measure_criticality as measure_criticality
