r"""Generality: is a network free of the coincidences that the theory of folds excludes?

A network is *general* if

- G1: no hidden unit has a local optimum of its preactivation with value exactly zero;
- G2: every product :math:`I_l W_l I_{l-1} \cdots I_k W_k` has the largest rank it can have;
- G3: no two distinct (unit, activation pattern below it) have proportional local maps :math:`[w, b]`.

All networks except a closed set of measure zero are general; networks without biases, pruned and
quantised ones usually are not.

Phuong 2021, section 2.2 and Definition A.11.
"""

from __future__ import annotations

import numpy as np
from numpy.typing import ArrayLike

from pindown.box import Box, as_box
from pindown.deadline import Deadline
from pindown.geometry.conditions._full_rank import rank_violations, seen_patterns, seen_rank_violations
from pindown.geometry.conditions._generality_report import GeneralityReport, Violation
from pindown.geometry.conditions._parallel_maps import parallel_violations, seen_parallel_violations
from pindown.geometry.conditions._zero_optima import optimum_violations
from pindown.geometry.tuning import MAX_UNITS_ALL_MAPS, MAX_UNITS_ALL_RANKS, MAX_WEIGHT_ENTRIES
from pindown.network import ReluNetwork
from pindown.validation import integer

__all__ = ["GeneralityReport", "Violation", "check_generality"]


def check_generality(
    net: ReluNetwork,
    box: Box | tuple[ArrayLike, ArrayLike] | None = None,
    *,
    budget: float = 30.0,
    samples: int = 1000,
    seed: int = 0,
) -> GeneralityReport:
    """Check the three conditions of generality, exactly where the network is small.

    G2 is checked on all patterns up to 16 ReLUs, G3 up to 12, G1 on all cells of the box up to three
    inputs. Beyond that, the patterns of random inputs speak: what they show is a violation, what they
    do not show is no proof. Zero weights after the first layer and proportional units are always found,
    but for layers of more than 2**25 entries, which are not looked at. All arithmetic is exact: residues
    modulo a prime, then integers.

    Args:
        net: The network.
        box: The domain. Without one, G1 stays untested: it is a statement about a domain.
        budget: Seconds, roughly; with less time fewer cells and seen patterns are looked at. Networks
            small enough for all patterns take a second or two in any case.
        samples: Number of random inputs for networks that are too large.
        seed: Chooses the random inputs.

    Returns:
        The verdict, how far each condition was checked, and the violations in words.

    Raises:
        ValueError: If the box does not fit the network, or ``budget`` or ``samples`` is negative.

    Example:
        Without a bias, the second layer repeats the first wherever a single unit of it is on:

        >>> net = ReluNetwork.from_layers([([[1.0, 2.0], [3.0, 1.0]], [1, 1]), ([[2.0, 1.0]], [0])])
        >>> check_generality(net, (-1, 1))
        not general (G1: all cells, G2: all patterns, G3: all patterns)
          G3, layer 2, unit 0: with these units on: layer 1: 0, it is 2 times unit 0 of layer 1
          G3, layer 2, unit 0: with these units on: layer 1: 1, it is 1 times unit 1 of layer 1

    Phuong 2021, section 2.2 and Lemmas A.10 to A.12; condition 3 of section 2.2 read as in Lemma A.11.
    """
    integer("samples", samples, least=0)
    deadline = Deadline.of(budget)
    domain = None if box is None else as_box(box, net.in_features)
    rng = np.random.default_rng(seed)
    small = net.size <= min(MAX_UNITS_ALL_RANKS, MAX_UNITS_ALL_MAPS)
    seen = None if small else seen_patterns(net, domain, samples, rng)
    checked = {}
    violations, checked["G1"] = _optima(net, domain, deadline.share(2 / 3), samples, rng)
    if max(W.shape[0] * W.shape[1] for W, _ in net.layers) > MAX_WEIGHT_ENTRIES:
        checked |= {"G2": "untested", "G3": "untested"}
        return GeneralityReport(not violations, False, tuple(violations), checked)
    if seen is None or net.size <= MAX_UNITS_ALL_RANKS:
        violations, checked["G2"] = violations + rank_violations(net), "all patterns"
    else:
        violations, checked["G2"] = violations + seen_rank_violations(net, seen, deadline), "sampled"
    if seen is None:
        violations, checked["G3"] = violations + parallel_violations(net), "all patterns"
    else:
        violations, checked["G3"] = violations + seen_parallel_violations(net, seen, rng), "sampled"
    exhaustive = all(extent.startswith("all") for extent in checked.values())
    return GeneralityReport(not violations, exhaustive, tuple(violations), checked)


def _optima(
    net: ReluNetwork, box: Box | None, deadline: Deadline, samples: int, rng: np.random.Generator
) -> tuple[list[Violation], str]:
    """Check G1 on all cells if they can be listed, else where random inputs have a whole layer off."""
    if box is None:
        return [], "untested"
    found, complete = optimum_violations(net, box, deadline)
    if complete:
        return found, "all cells"
    if not samples:
        return found, "sampled" if found else "untested"
    values = net.by_layer(net.preactivations(box.sample(samples, rng)))
    for layer, (before, (_, bias)) in enumerate(zip(values, net.layers[1:-1], strict=False), 2):
        units = np.flatnonzero(bias == 0)
        if len(units) and (before < 0).all(axis=1).any():
            detail = f"constant 0 where layer {layer - 1} is off"
            found.append(Violation("G1", layer, tuple(units.tolist()), detail))
    return found, "sampled"
