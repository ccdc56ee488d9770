# What pindown.learn.mutual_autoencoder offers; lazy.py reads this list.

# The estimator
from pindown.learn.mutual_autoencoder.estimator import MutualAutoencoder as MutualAutoencoder
from pindown.learn.mutual_autoencoder.evaluation import InformationReport as InformationReport
from pindown.learn.mutual_autoencoder.evaluation import encoder_density as encoder_density
from pindown.learn.mutual_autoencoder.evaluation import posterior_density as posterior_density
from pindown.learn.mutual_autoencoder.evaluation import mean_divergence as mean_divergence

# Training any networks
from pindown.learn.mutual_autoencoder.training import Networks as Networks
from pindown.learn.mutual_autoencoder.training import Recipe as Recipe
from pindown.learn.mutual_autoencoder.training import train as train

# Measuring information
from pindown.learn.mutual_autoencoder.information import MeasuredInformation as MeasuredInformation
from pindown.learn.mutual_autoencoder.information import measure_information as measure_information
from pindown.learn.mutual_autoencoder.infomax import InfomaxEstimator as InfomaxEstimator

# Why codes are ignored, and an optimum that is known
from pindown.learn.mutual_autoencoder.posterior_collapse import CollapseGap as CollapseGap
from pindown.learn.mutual_autoencoder.posterior_collapse import collapse_gap as collapse_gap
from pindown.learn.mutual_autoencoder.posterior_collapse import (
    linear_gaussian_information as linear_gaussian_information,
)
from pindown.learn.mutual_autoencoder.posterior_collapse import (
    linear_gaussian_optimum as linear_gaussian_optimum,
)

# Sentences
from pindown.learn.mutual_autoencoder.sentences import SentenceAutoencoder as SentenceAutoencoder
from pindown.learn.mutual_autoencoder.sentences import fit_sentences as fit_sentences
from pindown.learn.mutual_autoencoder.sentences import film_sentences as film_sentences
from pindown.learn.mutual_autoencoder.sentences import grammar_entropy as grammar_entropy
from pindown.learn.mutual_autoencoder.sentences import exact_matches as exact_matches
from pindown.learn.mutual_autoencoder.sentences import word_matches as word_matches
from pindown.learn.mutual_autoencoder.sentences import position_baseline as position_baseline

# Codes from the resampling encoder
from pindown.learn.mutual_autoencoder._objective import resample as resample
