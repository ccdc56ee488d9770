r"""Balls of inputs, cut to a box, and how large a linear form can be on them, proved.

.. math::
    \max_{\|x' - x\|_p \le \epsilon} w \cdot x' = w \cdot x + \epsilon \|w\|_q ,

and also at most the maximum over the smallest box around the ball. Everything is rounded outwards.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from pindown.affine import Array
from pindown.box import Box
from pindown.relaxation.linear import LinearForms, largest
from pindown.relaxation.lp_norms import DUALS, Norm, lengths, steepest_step
from pindown.rounding import TINY, add_down, add_up, gamma


@dataclass(frozen=True, eq=False)
class Balls:
    """The inputs within a radius of n centres, and in a box.

    Attributes:
        center: (n, d).
        radius: (n,).
        norm: In which lengths are measured.
        lower: Lower corners of boxes around the balls, (n, d).
        upper: Upper corners, (n, d).
    """

    center: Array
    radius: Array
    norm: Norm
    lower: Array
    upper: Array

    @classmethod
    def around(cls, X: Array, radius: Array, norm: Norm, box: Box | None = None) -> Balls:
        """Return balls around the rows of X.

        >>> balls = Balls.around(np.array([[0.5, 0.0]]), np.array([1.0]), "l2", Box([0, -9], [1, 9]))
        >>> balls.lower, balls.upper
        (array([[ 0., -1.]]), array([[1., 1.]]))
        """
        lower, upper = add_down(X, -radius[:, None]), add_up(X, radius[:, None])
        if box is not None:
            lower, upper = np.maximum(lower, box.lower), np.minimum(upper, box.upper)
        return cls(X, radius, norm, lower, upper)

    def __len__(self) -> int:
        return len(self.center)

    def take(self, which: slice | NDArray[np.intp]) -> Balls:
        """Return some of the balls."""
        return Balls(
            self.center[which], self.radius[which], self.norm, self.lower[which], self.upper[which]
        )

    def largest(self, forms: LinearForms) -> Array:
        """Return upper bounds on forms (n, q, d) over the balls, (n, q); infinite where unknown."""
        on_box = largest(forms, self.lower, self.upper)
        if self.norm == "linf":
            return on_box
        A, c = forms
        d = A.shape[2]
        with np.errstate(over="ignore", invalid="ignore"):
            middle = np.matmul(A, self.center[:, :, None])[:, :, 0]
            reach = self.radius[:, None] * lengths(A, DUALS[self.norm])
            terms = np.matmul(np.abs(A), np.abs(self.center)[:, :, None])[:, :, 0] + reach + np.abs(c)
            slack = 2.0 * gamma(2 * d + 16) * terms + TINY * (2.0 * d + self.radius[:, None] + 2.0)
            total = add_up(middle + reach + c, slack)
        return np.minimum(on_box, np.where(np.isfinite(total), total, np.inf))

    def farthest(self, A: Array) -> Array:
        """Return where forms (n, q, d) are about largest, (n, q, d); of the box if that is nearer."""
        corner = np.where(A > 0, self.upper[:, None], self.lower[:, None])
        if self.norm == "linf":
            return corner
        step = steepest_step(A, self.norm) * self.radius[:, None, None]
        return np.clip(self.center[:, None] + step, self.lower[:, None], self.upper[:, None])
