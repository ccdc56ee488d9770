# What pindown.datasets offers; lazy.py reads this list.

# Files that users bring
from pindown.datasets.files import Table as Table
from pindown.datasets.files import load_arrays as load_arrays
from pindown.datasets.files import load_table as load_table
from pindown.datasets.files import numbered_alike as numbered_alike
from pindown.datasets.feature_files import FeatureTable as FeatureTable
from pindown.datasets.feature_files import load_features as load_features
from pindown.datasets.feature_files import matched as matched
from pindown.datasets.mixed_tables import TableEncoding as TableEncoding
from pindown.datasets.mixed_tables import load_mixed as load_mixed

# Public data sets, from a folder
from pindown.datasets.public_data import ADBENCH as ADBENCH
from pindown.datasets.public_data import ImageClasses as ImageClasses
from pindown.datasets.public_data import OneClassSplit as OneClassSplit
from pindown.datasets.public_data import SurvivalTable as SurvivalTable
from pindown.datasets.public_data import find_folder as find_folder
from pindown.datasets.public_data import has_data as has_data
from pindown.datasets.public_data import load_adbench as load_adbench
from pindown.datasets.public_data import load_cifar10 as load_cifar10
from pindown.datasets.public_data import load_gtsrb as load_gtsrb
from pindown.datasets.public_data import load_mnist as load_mnist
from pindown.datasets.public_data import load_survival as load_survival
from pindown.datasets.public_data import one_class_split as one_class_split
from pindown.datasets.public_data import read_idx as read_idx
from pindown.datasets.public_data import small_digits as small_digits

# The sources' generators
from pindown.datasets.synthetic import PatternData as PatternData
from pindown.datasets.synthetic import SeparableData as SeparableData
from pindown.datasets.synthetic import digit_patterns as digit_patterns
from pindown.datasets.synthetic import gaussian_grid as gaussian_grid
from pindown.datasets.synthetic import grid_modes as grid_modes
from pindown.datasets.synthetic import orthogonally_separable as orthogonally_separable
from pindown.datasets.synthetic import pattern_detection as pattern_detection
from pindown.datasets.sparse_codes import SparseCodingModel as SparseCodingModel
from pindown.datasets.sparse_codes import SparseSignals as SparseSignals
from pindown.datasets.sparse_codes import coherence as coherence
from pindown.datasets.sparse_codes import gaussian_dictionary as gaussian_dictionary
from pindown.datasets.sparse_codes import hadamard_dictionary as hadamard_dictionary
from pindown.datasets.sparse_codes import incoherent_dictionary as incoherent_dictionary
from pindown.datasets.sparse_codes import near_dictionary as near_dictionary
from pindown.datasets.sparse_codes import support_size as support_size
