# What pindown.circuits.boolean offers; lazy.py reads this list.

# the cube, tables and Fourier coefficients
from pindown.circuits.boolean.cube import LinearForm as LinearForm
from pindown.circuits.boolean.cube import fourier_coefficients as fourier_coefficients
from pindown.circuits.boolean.cube import table_from_fourier as table_from_fourier
from pindown.circuits.boolean.cube import table_of as table_of
from pindown.circuits.boolean.cube import to_bits as to_bits
from pindown.circuits.boolean.cube import to_pm as to_pm
from pindown.circuits.boolean.cube import vertices as vertices
from pindown.circuits.boolean.cube import walsh_hadamard as walsh_hadamard

# sums of ReLU gates, and of threshold gates
from pindown.circuits.boolean.sum_of_relu import SumOfThresholds as SumOfThresholds
from pindown.circuits.boolean.sum_of_relu import binary_value as binary_value
from pindown.circuits.boolean.sum_of_relu import binary_value_network as binary_value_network
from pindown.circuits.boolean.sum_of_relu import binary_value_thresholds as binary_value_thresholds
from pindown.circuits.boolean.sum_of_relu import fourier_network as fourier_network
from pindown.circuits.boolean.sum_of_relu import gate_count as gate_count
from pindown.circuits.boolean.sum_of_relu import min_threshold_gates as min_threshold_gates
from pindown.circuits.boolean.sum_of_relu import smallest_sum_of_relu as smallest_sum_of_relu
from pindown.circuits.boolean.sum_of_relu import value_count as value_count
from pindown.circuits.boolean.sum_of_relu import vertex_network as vertex_network

# threshold circuits
from pindown.circuits.boolean.threshold import ThresholdCircuit as ThresholdCircuit
from pindown.circuits.boolean.threshold import ThresholdGate as ThresholdGate
from pindown.circuits.boolean.threshold import threshold_to_relu as threshold_to_relu

# a threshold gate over ReLU gates
from pindown.circuits.boolean.ltf_of_relu import LtfOfRelu as LtfOfRelu
from pindown.circuits.boolean.ltf_of_relu import restrict_circuit as restrict_circuit

# restrictions, and which gates they collapse
from pindown.circuits.boolean.restrictions import CollapseRate as CollapseRate
from pindown.circuits.boolean.restrictions import Restriction as Restriction
from pindown.circuits.boolean.restrictions import collapse_probability as collapse_probability
from pindown.circuits.boolean.restrictions import collapse_rate as collapse_rate
from pindown.circuits.boolean.restrictions import gate_fate as gate_fate
from pindown.circuits.boolean.restrictions import random_restriction as random_restriction
from pindown.circuits.boolean.restrictions import restrict_form as restrict_form
from pindown.circuits.boolean.restrictions import restrict_network as restrict_network

# Andreev's function, and how many gates it takes
from pindown.circuits.boolean.andreev import AndreevLayout as AndreevLayout
from pindown.circuits.boolean.andreev import OrderOfGrowth as OrderOfGrowth
from pindown.circuits.boolean.andreev import address_mask as address_mask
from pindown.circuits.boolean.andreev import advantage_threshold as advantage_threshold
from pindown.circuits.boolean.andreev import agreement_tail as agreement_tail
from pindown.circuits.boolean.andreev import andreev_agreement as andreev_agreement
from pindown.circuits.boolean.andreev import andreev_function as andreev_function
from pindown.circuits.boolean.andreev import andreev_restriction as andreev_restriction
from pindown.circuits.boolean.andreev import andreev_size as andreev_size
from pindown.circuits.boolean.andreev import andreev_size_in_proof as andreev_size_in_proof
from pindown.circuits.boolean.andreev import ltf_of_relu_functions as ltf_of_relu_functions
from pindown.circuits.boolean.andreev import surviving_gates as surviving_gates

# ODD-MAX-BIT and the function of Chattopadhyay and Mande
from pindown.circuits.boolean.max_bit import chattopadhyay_mande as chattopadhyay_mande
from pindown.circuits.boolean.max_bit import chattopadhyay_mande_circuit as chattopadhyay_mande_circuit
from pindown.circuits.boolean.max_bit import log2_sign_rank_lower as log2_sign_rank_lower
from pindown.circuits.boolean.max_bit import odd_max_bit as odd_max_bit
from pindown.circuits.boolean.max_bit import odd_max_bit_gate as odd_max_bit_gate
from pindown.circuits.boolean.max_bit import or_width as or_width
from pindown.circuits.boolean.max_bit import sign_rank_upper_of_function as sign_rank_upper_of_function

# circuits whose bottom weights are restricted
from pindown.circuits.boolean.restricted_weights import CommonOrder as CommonOrder
from pindown.circuits.boolean.restricted_weights import WeightRestriction as WeightRestriction
from pindown.circuits.boolean.restricted_weights import blocks_of_sum as blocks_of_sum
from pindown.circuits.boolean.restricted_weights import common_order as common_order
from pindown.circuits.boolean.restricted_weights import cone_members as cone_members
from pindown.circuits.boolean.restricted_weights import distinct_rows_bound as distinct_rows_bound
from pindown.circuits.boolean.restricted_weights import min_bottom_width as min_bottom_width
from pindown.circuits.boolean.restricted_weights import (
    random_restricted_network as random_restricted_network,
)
from pindown.circuits.boolean.restricted_weights import sign_rank_bound as sign_rank_bound
from pindown.circuits.boolean.restricted_weights import size_bound as size_bound
from pindown.circuits.boolean.restricted_weights import weight_restriction as weight_restriction

# sign-rank
from pindown.circuits.boolean.sign_rank import SignRankBounds as SignRankBounds
from pindown.circuits.boolean.sign_rank import distinct_rows as distinct_rows
from pindown.circuits.boolean.sign_rank import exact_rank as exact_rank
from pindown.circuits.boolean.sign_rank import forster_lower as forster_lower
from pindown.circuits.boolean.sign_rank import output_matrix as output_matrix
from pindown.circuits.boolean.sign_rank import row_blocks as row_blocks
from pindown.circuits.boolean.sign_rank import sign_rank_bounds as sign_rank_bounds
from pindown.circuits.boolean.sign_rank import sign_rank_upper as sign_rank_upper
