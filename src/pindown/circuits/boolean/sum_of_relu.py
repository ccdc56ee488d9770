r"""Any function on the cube as a sum :math:`c + \sum_j c_j \rho(\langle a_j, x \rangle + b_j)` of gates.

Two ways. One gate for each vertex with a non-zero value, or :math:`|S|` gates for each Fourier
coefficient :math:`\hat f(S) \ne 0`: a parity is a zigzag in the number of true bits.

Everything is rational; ``to_network()`` rounds to float64.

ReLU gates separate from threshold gates under a sum: the number that n bits spell takes :math:`2^n`
values, one ReLU gate computes it, and a sum of w threshold gates takes at most :math:`2^w`.

Mukherjee 2020, Lemma 2.5.1, Proposition 2.5.3 and appendix 2.D.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from fractions import Fraction
from typing import Any, TypeAlias

import numpy as np
from numpy.typing import ArrayLike, NDArray

from pindown.circuits.boolean.cube import (
    Number,
    fourier_coefficients,
    fourier_terms,
    fractions_of,
    sign_rows,
    variables_of_table,
    vertices,
)
from pindown.circuits.boolean.threshold import ThresholdGate
from pindown.circuits.tuning import MAX_WEIGHTS
from pindown.io.accepting import on_network
from pindown.network import ReluNetwork
from pindown.rational import RationalNetwork
from pindown.validation import at_least, integer

Gate: TypeAlias = tuple[list[Fraction], Fraction, Fraction]  # weights, bias, coefficient in the sum


def vertex_network(table: Sequence[Number] | NDArray[Any], *, background: Number = 0) -> RationalNetwork:
    r"""Return a sum of ReLU gates with one gate for each vertex whose value differs from ``background``.

    .. math:: f(x) = c + \sum_{v :\, f(v) \ne c} (f(v) - c)\, \rho(\langle v, x \rangle - (n - 1))

    The gate of v is 1 at v and 0 at all other vertices, where :math:`\langle v, x \rangle \le n - 2`.

    Args:
        table: The 2^n values of f in the order of :func:`~pindown.circuits.boolean.cube.vertices`.
        background: :math:`c`, the output bias.

    Returns:
        The exact network; without any gate if f is constant.

    Raises:
        ValueError: If the table is not of length 2^n, or the network would not fit into memory.

    Example:
        >>> net = vertex_network([0, 0, 0, 5])
        >>> gate_count(net), net([-1, -1]), net([-1, 1])
        (1, [Fraction(5, 1)], [Fraction(0, 1)])

    Mukherjee 2020, Lemma 2.5.1.
    """
    n = variables_of_table(table)
    values = fractions_of(table, "the values of a table")
    (base,) = fractions_of([background], "background")
    chosen = [k for k, value in enumerate(values) if value != base]
    _require_room(len(chosen), n)
    cube = vertices(n)
    gates = [([Fraction(int(s)) for s in cube[k]], Fraction(1 - n), values[k] - base) for k in chosen]
    return _sum_of_gates(gates, base, n)


def fourier_network(
    coefficients: Mapping[Any, Number], n: int, *, merge_linear: bool = False
) -> RationalNetwork:
    r"""Return a sum of ReLU gates with :math:`|S|` gates for each Fourier coefficient.

    With :math:`y = \sum_{i \in S} (1 - x_i) / 2`, the number of true bits in S,

    .. math:: \prod_{i \in S} x_i = 1 - 2 \Bigl(\rho(y) + 2 \sum_{j=1}^{|S|-1} (-1)^j \rho(y - j)\Bigr) .

    Args:
        coefficients: Sets of variables (from 0) with their coefficients.
        n: Number of variables.
        merge_linear: Let one gate carry all linear parts. On the cube :math:`\rho(y) = y`, so the first
            gate of *every* set is linear, and a linear function plus a constant is one gate: the
            network has at most :math:`1 + \sum_S (|S| - 1)` gates.

    Returns:
        The exact network.

    Raises:
        ValueError: If a set names a variable that does not exist, or one twice.

    Example:
        >>> parity = fourier_network({(0, 1, 2): 1}, 3)
        >>> gate_count(parity), parity([-1, -1, -1])
        (3, [Fraction(-1, 1)])
        >>> gate_count(fourier_network({(0,): 1, (1,): 2, (2,): 3}, 3, merge_linear=True))
        1

    Mukherjee 2020, Lemma 2.5.1. Appendix 2.D there has one gate more for each parity.
    """
    at_least(1, n=n)
    terms = fourier_terms(coefficients, n)
    _require_room(max(1, sum(map(len, terms))), n)
    gates: list[Gate] = []
    first = 1 if merge_linear else 0  # on the cube the hinge at 0 is linear
    slope, bias = [Fraction(0)] * n, Fraction(0)
    for subset, coefficient in terms.items():
        gates.extend(_zigzag(subset, coefficient, n)[first:])
        bias += coefficient * (1 - first * len(subset))
        for i in subset:
            slope[i] += coefficient
    if merge_linear and any(slope):
        reach = sum((abs(a) for a in slope), Fraction(0))
        gates.insert(0, (slope, reach, Fraction(1)))  # never negative on the cube, so linear there
        bias -= reach
    return _sum_of_gates(gates, bias, n)


def smallest_sum_of_relu(table: Sequence[Number] | NDArray[Any]) -> RationalNetwork:
    r"""Return the smallest sum of ReLU gates that the two constructions give for a table.

    The most common value goes into the output bias of one, all linear parts into one gate of the other.
    It has at most :math:`\min\{2^n, \sum_{\hat f(S) \ne 0} |S|\}` gates, and often fewer.

    Args:
        table: The 2^n values of f in the order of :func:`~pindown.circuits.boolean.cube.vertices`.

    Returns:
        The exact network.

    Example:
        "And" differs from its most common value at one vertex; the parity of five bits is one zigzag:

        >>> gate_count(smallest_sum_of_relu([1, 1, 1, -1]))
        1
        >>> gate_count(smallest_sum_of_relu([(-1) ** k.bit_count() for k in range(32)]))
        5

    Mukherjee 2020, Lemma 2.5.1.
    """
    n = variables_of_table(table)
    values = fractions_of(table, "the values of a table")
    common, times = Counter(values).most_common(1)[0]
    coefficients = fourier_coefficients(values)
    zigzags = 1 + sum(len(subset) - 1 for subset in coefficients if subset)  # one for all linear parts
    if zigzags <= len(values) - times:
        return fourier_network(coefficients, n, merge_linear=True)
    return vertex_network(values, background=common)


@on_network
def gate_count(net: RationalNetwork | ReluNetwork) -> int:
    """Return the number of ReLU gates of a network, rational or not.

    >>> net = ReluNetwork.from_layers([([[1.0], [-1.0]], [0, 0]), ([[1.0, 1.0]], [0])])
    >>> gate_count(net)
    2
    """
    return sum(len(b) for _, b in net.layers[:-1])


def _zigzag(subset: tuple[int, ...], coefficient: Fraction, n: int) -> list[Gate]:
    """Return the gates of one parity, hinges 0 to k - 1; the constant 1 is not among them."""
    weights = [Fraction(-1, 2) if i in subset else Fraction(0) for i in range(n)]
    half = Fraction(len(subset), 2)
    jumps = [Fraction(1) if j == 0 else Fraction(2 * (-1) ** j) for j in range(len(subset))]
    return [(weights, half - j, -2 * coefficient * jump) for j, jump in enumerate(jumps)]


def _sum_of_gates(gates: Sequence[Gate], bias: Fraction, n: int) -> RationalNetwork:
    if not gates:  # a constant: one affine map, no hidden layer
        return RationalNetwork.from_layers([([[0] * n], [bias])])
    hidden = [weights for weights, _, _ in gates], [b for _, b, _ in gates]
    return RationalNetwork.from_layers([hidden, ([[c for _, _, c in gates]], [bias])])


def _require_room(gates: int, n: int) -> None:
    if gates * n > MAX_WEIGHTS:
        raise ValueError(
            f"{gates:,} gates of {n} weights are more than {MAX_WEIGHTS:,} exact weights; "
            "a function with fewer variables or fewer terms fits."
        )


@dataclass(frozen=True)
class SumOfThresholds:
    r"""The function :math:`x \mapsto c + \sum_j c_j\, g_j(x)` of threshold gates :math:`g_j`.

    Attributes:
        gates: The threshold gates, all with the same inputs.
        coefficients: :math:`c_j`.
        bias: :math:`c`.
    """

    gates: tuple[ThresholdGate, ...]
    coefficients: tuple[Fraction, ...]
    bias: Fraction

    def __post_init__(self) -> None:
        if len(self.gates) != len(self.coefficients) or not self.gates:
            raise ValueError(
                f"a sum needs gates and as many coefficients; got {len(self.gates)} and "
                f"{len(self.coefficients)}."
            )

    @property
    def gate_count(self) -> int:
        """Number of threshold gates."""
        return len(self.gates)

    def __call__(self, X: ArrayLike) -> Any:
        """Evaluate exactly: (N, n) -> N fractions in an array, (n,) -> one fraction."""
        rows, single = sign_rows(X)
        signs = np.column_stack([gate(rows) for gate in self.gates]).astype(object)
        values = signs @ np.array(self.coefficients, dtype=object) + self.bias
        return values[0] if single else values


def binary_value(X: ArrayLike) -> Any:
    r"""Return :math:`f(x) = \sum_{i=1}^n 2^i (1 + x_i) / 2`, twice the number that the +1 bits spell.

    Here +1 counts as the digit 1, unlike in the rest of this package; the first variable is the lowest.

    Example:
        >>> binary_value([[-1, -1], [1, -1], [-1, 1], [1, 1]])
        array([0, 2, 4, 6], dtype=object)

    Mukherjee 2020, Proposition 2.5.3.
    """
    rows, single = sign_rows(X)
    powers = np.array([2**i for i in range(1, rows.shape[1] + 1)], dtype=object)
    values = ((1 + rows) // 2).astype(object) @ powers
    return values[0] if single else values


def binary_value_network(n: int, *, gates: int = 1) -> RationalNetwork:
    r"""Return :func:`binary_value` as a sum of one or two ReLU gates.

    Two gates, :math:`\rho(f) - \rho(-f)`, give the linear function on all of :math:`\mathbb{R}^n`; on
    the cube f is never negative, and one gate is enough.

    >>> [int(v) for v in binary_value_network(3)([1, 1, 1])]
    [14]

    Mukherjee 2020, Proposition 2.5.3.
    """
    at_least(1, n=n)
    gates = integer("gates", gates, most=2)
    weights = [Fraction(2**i, 2) for i in range(1, n + 1)]
    signs = (1, -1)[:gates]
    hidden = [[s * w for w in weights] for s in signs], [s * sum(weights) for s in signs]
    return RationalNetwork.from_layers([hidden, ([list(signs)], [0])])


def binary_value_thresholds(n: int) -> SumOfThresholds:
    """Return :func:`binary_value` as a sum of n threshold gates, one for each bit: none can be spared.

    >>> binary_value_thresholds(3).gate_count, int(binary_value_thresholds(3)([1, 1, 1]))
    (3, 14)
    """
    at_least(1, n=n)
    gates = tuple(ThresholdGate.of([int(i == j) for j in range(n)]) for i in range(n))
    halves = fractions_of([2**i for i in range(n)], "weights")
    return SumOfThresholds(gates, halves, sum(halves, Fraction(0)))


def value_count(table: Iterable[Number]) -> int:
    """Return how many different values a table holds, compared exactly.

    >>> value_count([0.5, Fraction(1, 2), 1])
    2
    """
    return len(set(fractions_of(table, "the values of a table")))


def min_threshold_gates(table: Sequence[Number]) -> int:
    r"""Return a lower bound on the threshold gates of any sum that computes a table.

    w gates have at most :math:`2^w` patterns of signs, hence at least :math:`\lceil \log_2 v \rceil`
    gates are needed for v different values.

    Example:
        >>> min_threshold_gates([0, 2, 4, 6])
        2

    Mukherjee 2020, Proposition 2.5.3.
    """
    variables_of_table(table)
    return (value_count(table) - 1).bit_length()
