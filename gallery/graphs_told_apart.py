"""A graph network gives a hexagon and two triangles one answer, and a path and a star two.

Its answer about a graph must not depend on the names of nodes, nor can it see more than refining
colours by those of the neighbours. In a hexagon and in two triangles every node has two neighbours
that have two neighbours. Attention means what it sees, so equal nodes tell it nothing at all.
"""

import matplotlib.pyplot as plt
import numpy as np
import torch

from pindown.symmetry.graphs import GraphNetwork, colour_refinement, find_isomorphism, from_edges

turn = 2 * np.pi * np.arange(6) / 6
ring, line = np.c_[np.cos(turn), np.sin(turn)], np.c_[np.linspace(-1, 1, 6), np.zeros(6)]
pairs = ring[[0, 1, 5, 2, 3, 4]] + 0.25 * np.array([[1, 0]] * 3 + [[-1, 0]] * 3)
star = np.vstack([[0, 0], np.c_[np.cos(turn * 1.2), np.sin(turn * 1.2)][:5]])
shapes = {
    "hexagon": (ring, [(i, (i + 1) % 6) for i in range(6)]),
    "two triangles": (pairs, [(0, 1), (1, 2), (2, 0), (3, 4), (4, 5), (5, 3)]),
    "path": (line, [(i, i + 1) for i in range(5)]),
    "star": (star, [(0, i) for i in range(1, 6)]),
}
graphs = {name: from_edges(6, edges, np.ones((6, 1))) for name, (_, edges) in shapes.items()}
kinds = ("convolution", "attention", "messages")
answers = {}
for kind in kinds:
    torch.manual_seed(1)
    model = GraphNetwork((1, 8, 8, 1), level="graph", kind=kind, pool="mean")
    with torch.no_grad():
        for name, graph in graphs.items():
            A, X = (
                torch.as_tensor(np.asarray(each), dtype=torch.float32) for each in (graph.A, graph.X)
            )
            answers[name, kind] = float(model(A, X))

figure, axes = plt.subplots(1, 4, figsize=(10, 3.1))
for ax, (name, (places, edges)) in zip(axes, shapes.items(), strict=True):
    colours = colour_refinement(graphs[name])
    for i, j in edges:
        ax.plot(*places[[i, j]].T, color="0.6", zorder=1)
    ax.scatter(*places.T, s=130, c=[f"C{k}" for k in colours], zorder=2)
    told = "\n".join(f"{kind} {answers[name, kind]:+.3f}" for kind in kinds)
    ax.text(0, -1.5, told, ha="center", va="top", fontsize=9, family="monospace")
    ax.set_title(name, loc="center")
    ax.set(aspect="equal", xlim=(-1.5, 1.5), ylim=(-2.6, 1.3))
    ax.axis("off")

assert find_isomorphism(graphs["hexagon"], graphs["two triangles"]) is None
assert all(abs(answers["hexagon", kind] - answers["two triangles", kind]) < 1e-6 for kind in kinds)
assert abs(answers["path", "messages"] - answers["star", "messages"]) > 1e-3

if __name__ == "__main__":
    figure.savefig("graphs_told_apart.png")
    print(" ".join(__doc__.split("\n\n")[0].split()))
