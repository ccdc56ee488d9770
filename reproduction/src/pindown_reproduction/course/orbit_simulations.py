r"""Distances within and between orbits, and how thresholds make orbits tell apart.

Three kinds of stimuli: random vectors under cyclic shifts and under a dihedral group, and patches of a
photograph, sampled on rings, under rotations by multiples of 30 degrees (which shift rings, exactly).
Complex cells count projections on the orbit of a template above thresholds.

Lecture course, section on simulations (figures only).
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING, Any

import numpy as np

from pindown_reproduction.experiment import Cell, Experiment, Outcome, Power, Results

if TYPE_CHECKING:
    from matplotlib.figure import Figure

    from pindown.affine import Array
    from pindown.symmetry.groups import Group

_INVARIANT = 1e-10  # the largest distance within an orbit that is rounding
_RISING = 0.8  # least rank correlation of separability with the number of thresholds
_SEPARATED = 0.999  # least final area under the curve
_ANGLES, _RADII = 12, (1.0, 2.0, 3.0, 4.0)
_TEMPLATES = 3  # for distances; the curve over thresholds uses a single one


def cells(settings: Mapping[str, Any]) -> list[Cell]:
    """One cell per kind of stimulus and seed."""
    return [
        {
            "stimuli": kind,
            "seed": seed,
            "orbits": settings["orbits"],
            "thresholds": settings["thresholds"],
        }
        for kind in ("cyclic", "dihedral", "rotated patches")
        for seed in range(settings["seeds"])
    ]


def run(cell: Cell) -> dict[str, Any]:
    """Measure distances for growing numbers of orbits and separability for growing thresholds."""
    from pindown.symmetry.signatures import orbit_benchmark

    group, X = _stimuli(cell["stimuli"], max(cell["orbits"]), cell["seed"])
    most = cell["thresholds"][-1]
    within, between = [], []
    for count in cell["orbits"]:
        report = orbit_benchmark(
            X[:count], group, (most,), n_templates=_TEMPLATES, random_state=cell["seed"]
        )[most]
        within.append(report.max_intra)
        between.append(report.min_inter)
    curve = orbit_benchmark(X[: cell["orbits"][1]], group, cell["thresholds"], random_state=cell["seed"])
    return {
        "within": within,
        "between": between,
        "auc": [curve[count].auc for count in cell["thresholds"]],
        "curve within": max(report.max_intra for report in curve.values()),
    }


def _stimuli(kind: str, n_orbits: int, seed: int) -> tuple[Group, Array]:
    from pindown.symmetry import cyclic, dihedral

    rng = np.random.default_rng(seed)
    if kind == "cyclic":
        return cyclic(16), rng.standard_normal((n_orbits, 16))
    if kind == "dihedral":
        return dihedral(8), rng.standard_normal((n_orbits, 16))
    rings = len(_RADII)
    turn = cyclic(_ANGLES).acting_by(np.kron(np.eye(rings), cyclic(_ANGLES).matrices))
    return turn, _ring_patches(n_orbits, rng)


def _ring_patches(count: int, rng: np.random.Generator) -> Array:
    """Patches of a photograph around random points, on rings, of mean zero and length one."""
    from scipy.ndimage import map_coordinates
    from sklearn.datasets import load_sample_image

    photograph = load_sample_image("china.jpg").mean(axis=2)
    edge = max(_RADII) + 1
    height, width = photograph.shape
    angles = 2 * np.pi * np.arange(_ANGLES) / _ANGLES
    offsets = np.array([[r * np.sin(angles), r * np.cos(angles)] for r in _RADII])  # (rings, 2, angles)
    kept: list[Array] = []
    while len(kept) < count:
        centre = rng.uniform([edge, edge], [height - edge, width - edge])
        places = offsets.transpose(1, 0, 2).reshape(2, -1) + centre[:, None]
        patch = map_coordinates(photograph, places, order=1)
        patch = patch - patch.mean()
        if patch.std() > 5.0:  # grey levels: skies have no orbit to speak of
            kept.append(patch / np.linalg.norm(patch))
    return np.array(kept)


def compare(results: Results) -> Outcome:
    """Check invariance everywhere, and the rise and the end of the curves, averaged over seeds."""
    from scipy.stats import spearmanr

    rows: list[tuple[Any, ...]] = []
    good = []
    for kind in dict.fromkeys(cell["stimuli"] for cell, _ in results):
        mine = [(cell, found) for cell, found in results if cell["stimuli"] == kind]
        widest = max(max(*f["within"], f["curve within"]) for _, f in mine)
        nearest = min(min(f["between"]) for _, f in mine)
        curve = np.mean([f["auc"] for _, f in mine], axis=0)
        counts = mine[0][0]["thresholds"]
        rank = float(spearmanr(counts, curve)[0])
        holds = widest <= _INVARIANT < nearest and rank > _RISING and bool(curve[-1] >= _SEPARATED)
        good.append(holds)
        rows.append(
            (
                kind,
                f"{widest:.2g}",
                f"{nearest:.3g}",
                " ".join(f"{value:.3f}" for value in curve),
                f"{rank:.2f}",
                "yes" if holds else "no",
            )
        )
    words = (
        f"Signatures are invariant, tell all orbits apart and separate better with more thresholds for "
        f"{sum(good)} of {len(good)} kinds of stimuli."
    )
    return Outcome(
        verdict="reproduced" if good and all(good) else "not reproduced",
        words=words,
        columns=(
            "stimuli",
            "largest within",
            "smallest between",
            "AUC by thresholds, one template",
            "rank correlation",
            "as claimed",
        ),
        rows=tuple(rows),
    )


def draw(results: Results) -> Figure:
    """Draw distances over the number of orbits, and separability over thresholds."""
    from matplotlib.figure import Figure

    figure = Figure()
    left, right = figure.subplots(1, 2)
    for i, kind in enumerate(dict.fromkeys(cell["stimuli"] for cell, _ in results)):
        mine = [(cell, found) for cell, found in results if cell["stimuli"] == kind]
        orbits, thresholds = mine[0][0]["orbits"], mine[0][0]["thresholds"]
        nearest = np.min([f["between"] for _, f in mine], axis=0)
        widest = np.max([f["within"] for _, f in mine], axis=0)
        left.plot(orbits, nearest, "o-", color=f"C{i}", label=f"{kind}, between")
        left.plot(orbits, widest, "x:", color=f"C{i}", label=f"{kind}, within")
        curve = np.mean([f["auc"] for _, f in mine], axis=0)
        right.plot(thresholds, curve, "o-", color=f"C{i}", label=kind)
    left.set(xlabel="orbits", ylabel="distance of signatures", xscale="log")
    right.set(xlabel="thresholds", ylabel="AUC of 'same orbit'", xscale="log")
    left.set_xticks(orbits, map(str, orbits))
    right.set_xticks(thresholds, map(str, thresholds))
    left.set_ylim(bottom=min(0.0, left.get_ylim()[0]))
    return figure


EXPERIMENT = Experiment(
    id="orbit-simulations",
    title="Signatures within and between orbits",
    source="Lecture course, section on simulations (figures only)",
    published="Distances of signatures vanish within orbits and not between them, for cyclic, dihedral "
    "and rotation groups; discriminability grows with the number of thresholds. No numbers.",
    rule="Reproduced if, for each of three kinds of stimuli, distances within orbits are at most 1e-10 "
    "and between orbits above that (three templates), and the area under the curve with one template, "
    "averaged over seeds, rises with the number of thresholds (rank correlation above 0.8) to at least "
    "0.999.",
    settings={
        "quick": {"seeds": 3, "orbits": [5, 10, 20, 40], "thresholds": [1, 2, 4, 8, 16, 32]},
        "paper": {"seeds": 20, "orbits": [5, 10, 20, 40, 100], "thresholds": [1, 2, 4, 8, 16, 32]},
    },
    seconds={"quick": 2.3},
    power=Power(why="Curves are means over seeds, distances hold in every run."),
    cells=cells,
    run=run,
    compare=compare,
    draw=draw,
)
