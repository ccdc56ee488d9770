r"""What a fitted detector says about itself: sizes, a bound, and its networks as ReLU networks.

Standardising is affine, bending a feature takes one ReLU unit per bend, and holding it within a box two,
:math:`\mathrm{clip}(z) = -B + \rho(z + B) - \rho(z - B)`; so the mean of the members is one network,
exactly.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
import scipy.sparse as sp

from pindown.affine import Array
from pindown.evidence import Kind
from pindown.learn.one_class._inputs import InputScaling
from pindown.learn.one_class.ensemble import HeldOutLosses
from pindown.learn.one_class.scoring import Scorer
from pindown.network import ReluNetwork

Layers = list[tuple[Any, Array]]

# A change of slope below this fraction of the slope is rounding.
_STRAIGHT = 1e-12


@dataclass(frozen=True)
class DetectorReport:
    r"""Sizes of what was learned, beside what the theory asks for.

    Theorem 1: a network of one variable whose local maxima are m given points needs at least 2m - 1
    hidden units and can do with 2m; a network that is the indicator of the points needs 3m.

    Attributes:
        n_parameters: Numbers in all networks c and h.
        n_hidden_units: ReLU units of h, the mean of all members; None unless they have one hidden layer,
            the case of the theorem.
        most_maxima: Largest m with 2m - 1 <= that number: more points on a line within the box of 8
            standard deviations cannot all be maxima. (At the sides of the box h has further kinks.)
        maxima_units: Units that m = ``most_maxima`` maxima can be made with, 2m.
        indicator_units: Units that the indicator of as many points needs, 3m.
        n_epochs: Epochs made, all members together.
        held_out_losses: Losses of telling rows from made-up ones, for the networks c and their untrained
            copies; None where they are not trained on it.
        kind: ``"estimate"``: a count for networks of one variable, a guide for others.
    """

    n_parameters: int
    n_hidden_units: int | None
    most_maxima: int | None
    maxima_units: int | None
    indicator_units: int | None
    n_epochs: int
    held_out_losses: HeldOutLosses | None = None
    kind: Kind = "estimate"

    def __str__(self) -> str:
        text = f"{self.n_parameters:,} parameters, {self.n_epochs} epochs"
        losses = self.held_out_losses
        if losses is not None:
            text += f", loss of c {losses.trained:.2f} (untrained {losses.untrained:.2f})"
        if self.n_hidden_units is None:
            return text
        return (
            f"{text}; h has {self.n_hidden_units} hidden units: along a line among the data it can have "
            f"at most {self.most_maxima} local maxima (an indicator of them would need "
            f"{self.indicator_units} units)"
        )


def detector_report(scorer: Scorer, losses: HeldOutLosses | None) -> DetectorReport:
    """Return the sizes of what was learned."""
    nets = [*scorer.ensemble.members, *scorer.ensemble.comparators]
    description = scorer.plan.comparator
    widths = description["hidden"] if description["kind"] == "perceptron" else []
    units = widths[0] * len(scorer.ensemble.comparators) if len(widths) == 1 else None
    most = None if units is None else (units + 1) // 2
    return DetectorReport(
        n_parameters=sum(p.numel() for net in nets for p in net.parameters()),
        n_hidden_units=units,
        most_maxima=most,
        maxima_units=None if most is None else 2 * most,
        indicator_units=None if most is None else 3 * most,
        n_epochs=len(scorer.ensemble.history),
        held_out_losses=losses,
    )


def two_network_bound(scorer: Scorer, rows: Array, *, radius: float, margins: Any, delta: float) -> Any:
    """Return the PAC-Bayes bound of the potential of h and the learned part of c.

    Wolf et al. 2019, Lemma 2.
    """
    from pindown.guarantees.bounds.local_maxima import local_maxima_bound

    return local_maxima_bound(
        potential_network(scorer),
        learned_network(scorer),
        rows,
        radius=radius,
        margins=margins,
        delta=delta,
    )


def learned_network(scorer: Scorer) -> ReluNetwork:
    """Return the mean of the members' log-odds of c, before calibration.

    Raises:
        ValueError: If the networks are not fully connected with ReLU units.
    """
    if scorer.plan.ablation == "h":
        return potential_network(scorer)
    return _mean_network(scorer, scorer.ensemble.members)


def potential_network(scorer: Scorer) -> ReluNetwork:
    """Return the potential of h: the log-odds of h(x, x) as a function of x."""
    return _mean_network(scorer, scorer.ensemble.comparators)


def membership_network(scorer: Scorer) -> ReluNetwork:
    """Return the log-odds of membership up to the strictly increasing calibration, if piecewise linear.

    Raises:
        ValueError: If distances are part of the score, or the networks are not plain ReLU networks.
    """
    if scorer.density is not None:
        raise ValueError(
            "membership is a hybrid with nearest-neighbour distances, which no ReLU network equals; "
            "learned_network_ is its learned part, and ingredients without 'density' make it all."
        )
    return learned_network(scorer)


def _mean_network(scorer: Scorer, nets: list[Any]) -> ReluNetwork:
    if scorer.plan.membership["kind"] != "perceptron":
        raise ValueError(
            f"networks of kind {scorer.plan.membership['kind']!r} are not written as one ReLU "
            "network (on images c names the kind of a negative too, and its log-odds are no "
            "piecewise-linear function); vectors with the default preset are."
        )
    bound = scorer.plan.membership["bound"]
    first, (slope, shift) = _seen_by_networks(scorer.scaling)
    clip: Layers = [
        *first,
        (sp.csr_array(sp.vstack([slope, slope])), np.concatenate([shift + bound, shift - bound])),
    ]
    weights = [[_arrays(layer) for layer in net.body if hasattr(layer, "weight")] for net in nets]
    depth = len(weights[0])
    for level in range(depth):
        parts = [member[level] for member in weights]
        if level == 0:
            W = np.vstack([np.hstack([W, -W]) for W, _ in parts])
            b = np.concatenate([b - bound * W.sum(axis=1) for W, b in parts])
        elif level < depth - 1:
            W = sp.csr_array(sp.block_diag([W for W, _ in parts]))
            b = np.concatenate([b for _, b in parts])
        else:
            W = np.hstack([W for W, _ in parts]) / len(parts)
            b = np.mean([b for _, b in parts], axis=0)
        clip.append((W, b))
    return ReluNetwork.from_layers(clip)


def _seen_by_networks(scaling: InputScaling) -> tuple[Layers, tuple[Any, Array]]:
    """Layers, and the affine map that makes the networks' inputs of what comes out of them."""
    # Diagonal matrices stay sparse: dense, they would take d times d numbers.
    scaled = sp.csr_array(sp.diags_array(1.0 / scaling.scale)), -scaling.centre / scaling.scale
    if scaling.bending is None:
        return [], scaled
    knots, values, slopes = scaling.bending.knots, scaling.bending.values, scaling.bending.slopes
    turns = np.diff(slopes, axis=1)
    feature, bend = np.nonzero(np.abs(turns) > _STRAIGHT * slopes[:, :1])
    every = np.arange(len(knots))
    # Units: above the first knot, below it, and above each knot where the slope changes.
    source = np.concatenate([every, every, feature])
    sign = np.concatenate([np.ones(len(every)), -np.ones(len(every)), np.ones(len(feature))])
    place = np.concatenate([knots[:, 0], knots[:, 0], knots[feature, bend + 1]])
    units = sp.csr_array(scaled[0][source] * sign[:, None]), sign * (scaled[1][source] - place)
    weight = np.concatenate([slopes[:, 0], -slopes[:, 0], turns[feature, bend]])
    gather = sp.csr_array((weight, (source, np.arange(len(source)))), shape=(len(every), len(source)))
    return [units], (gather, values[:, 0])


def _arrays(layer: Any) -> tuple[Array, Array]:
    return layer.weight.detach().double().numpy(), layer.bias.detach().double().numpy()
