# What pindown.learn.mutual_autoencoder offers; lazy.py reads this list.
from pindown.learn.mutual_autoencoder.collapse import CollapseGap as CollapseGap
from pindown.learn.mutual_autoencoder.collapse import collapse_gap as collapse_gap
from pindown.learn.mutual_autoencoder.estimator import MutualAutoencoder as MutualAutoencoder
from pindown.learn.mutual_autoencoder.grammar import exact_matches as exact_matches
from pindown.learn.mutual_autoencoder.grammar import film_sentences as film_sentences
from pindown.learn.mutual_autoencoder.grammar import grammar_entropy as grammar_entropy
from pindown.learn.mutual_autoencoder.grammar import position_baseline as position_baseline
from pindown.learn.mutual_autoencoder.grammar import word_matches as word_matches
from pindown.learn.mutual_autoencoder.infomax import InfomaxEstimator as InfomaxEstimator
from pindown.learn.mutual_autoencoder.measure import MeasuredInformation as MeasuredInformation
from pindown.learn.mutual_autoencoder.measure import measure_information as measure_information
from pindown.learn.mutual_autoencoder.posterior import encoder_density as encoder_density
from pindown.learn.mutual_autoencoder.posterior import posterior_density as posterior_density
from pindown.learn.mutual_autoencoder.reference import (
    linear_gaussian_information as linear_gaussian_information,
)
from pindown.learn.mutual_autoencoder.reference import linear_gaussian_optimum as linear_gaussian_optimum
from pindown.learn.mutual_autoencoder.report import InformationReport as InformationReport
from pindown.learn.mutual_autoencoder.sentences import SentenceAutoencoder as SentenceAutoencoder
from pindown.learn.mutual_autoencoder.sentences import fit_sentences as fit_sentences
from pindown.learn.mutual_autoencoder.training import Parts as Parts
from pindown.learn.mutual_autoencoder.training import Recipe as Recipe
from pindown.learn.mutual_autoencoder.training import train as train
