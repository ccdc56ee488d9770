"""One way in for everything that can be compiled into a network."""

from __future__ import annotations

from pindown.circuits.arithmetic import Net
from pindown.circuits.lattice import LatticeForm, compile_lattice
from pindown.circuits.max_affine import MaxAffineSum, compile_max_affine
from pindown.circuits.one_variable import compile_1d
from pindown.circuits.piecewise import PiecewiseLinear
from pindown.circuits.piecewise_1d import PiecewiseLinear1D
from pindown.circuits.radon import MAX_TERMS


def compile_function(
    f: PiecewiseLinear1D | MaxAffineSum | LatticeForm | PiecewiseLinear,
    *,
    shallow: bool = True,
    max_terms: int = MAX_TERMS,
) -> Net:
    r"""Return a network that computes a piecewise linear function of n variables.

    Args:
        f: The function in any of its forms. What :func:`~pindown.circuits.piecewise.extract` finds on a
            box is equal there.
        shallow: Whether to keep to :math:`\lceil \log_2(n + 1) \rceil` hidden layers, at the price of
            many ReLUs. Otherwise trees of maxima and minima are built as deep as it takes.
        max_terms: Limit for the shallow form.

    Returns:
        A rational network if the numbers are fractions, one in float64 otherwise.

    Raises:
        ValueError: If the shallow form has too many terms.
        TypeError: If f is none of these.

    Example:
        >>> net = compile_function(PiecewiseLinear1D([0], [0], left_slope=0, right_slope=1))
        >>> net([-2]), net([5])
        ([Fraction(0, 1)], [Fraction(5, 1)])

    Mukherjee 2020, Theorems 2.2.1 and 2.2.2.
    """
    if isinstance(f, PiecewiseLinear1D):
        return compile_1d(f)
    if isinstance(f, MaxAffineSum):
        return compile_max_affine(f, max_terms=max_terms, reduce=shallow)
    if isinstance(f, PiecewiseLinear):
        return compile_lattice(f.lattice(), shallow=shallow, max_terms=max_terms)
    if isinstance(f, LatticeForm):
        return compile_lattice(f, shallow=shallow, max_terms=max_terms)
    raise TypeError(
        f"compile_function takes a PiecewiseLinear1D, MaxAffineSum, LatticeForm or PiecewiseLinear; "
        f"got {type(f).__name__}."
    )
