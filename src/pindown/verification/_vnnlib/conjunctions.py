r"""Conjunctions of linear inequalities over the rationals: what a property says before it is rounded.

Numbers of a property are decimals; here they are kept exactly, as integers and fractions. An inequality
bounds a *direction*, a primitive integer form up to its sign: :math:`0.1 x - 0.25 y \le 0.3` says that
:math:`2 x - 5 y \le 6`. A conjunction is the least limit of each direction, which shows by itself where
two inequalities contradict each other.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from fractions import Fraction
from functools import cached_property
from math import gcd, lcm
from typing import NamedTuple, TypeAlias

from pindown.errors import PropertyFileError

Exact: TypeAlias = int | Fraction
# Input i is i, output j is ~j = -1 - j; a single variable is a form, too.
Form: TypeAlias = int | tuple[tuple[int, int], ...]
Direction: TypeAlias = tuple[Form, int]
Alternatives: TypeAlias = "list[list[Inequality]]"

MAX_SETS = 100_000  # unsafe sets of one property
MAX_COMBINATIONS = 1_000_000  # of alternatives that are tried: most may contradict each other
MAX_BITS = 4096  # of a common denominator: decimals of 1,000 digits have fewer


class Inequality(NamedTuple):
    """A sum of variables times coefficients, a relation (``"<="``, ``"<"`` or ``"="``) and a limit."""

    terms: Mapping[int, Exact]
    limit: Exact
    relation: str


class Limit(NamedTuple):
    """The largest value of a direction, and whether it is left out."""

    value: Exact
    strict: bool


class Conjunction:
    """The least limit of every direction, on top of those of a base that many conjunctions share.

    Attributes:
        base: What is shared, complete before the first conjunction is built on it.
        limits: The limits beyond those of the base.

    Example:
        >>> part = Conjunction()
        >>> part.add(Inequality({0: Fraction(1, 2)}, 1, "<=")), part.limit((0, 1))  # x / 2 <= 1
        (True, Limit(value=Fraction(2, 1), strict=False))
        >>> part.add(Inequality({0: -1}, -3, "<="))  # -x <= -3
        False
    """

    def __init__(self, base: Conjunction | None = None) -> None:
        self.base = base
        self.limits: dict[Direction, Limit] = {}

    def limit(self, direction: Direction) -> Limit | None:
        """Return the limit of a direction, None if it has none."""
        found = self.limits.get(direction)
        if found is None and self.base is not None:
            return self.base.limits.get(direction)
        return found

    def add(self, inequality: Inequality) -> bool:
        """Add an inequality; return False if nothing meets all of them."""
        terms, limit, relation = inequality
        if not terms:
            return limit == 0 if relation == "=" else limit > 0 or (limit == 0 and relation == "<=")
        (form, sign), value = _directed(terms, limit)
        if not self._bound((form, sign), value, relation == "<"):
            return False
        return relation != "=" or self._bound((form, -sign), -value, False)

    def _bound(self, direction: Direction, value: Exact, strict: bool) -> bool:
        old = self.limit(direction)
        if old is None or value < old.value or (strict and value == old.value):
            self.limits[direction] = Limit(value, strict)
        else:
            value, strict = old
        form, sign = direction
        against = self.limit((form, -sign))
        if against is None:
            return True
        room = value + against.value
        return room > 0 or (room == 0 and not strict and not against.strict)

    def extended(self, inequalities: Iterable[Inequality]) -> Conjunction | None:
        """Return the conjunction with further inequalities, None if nothing meets all of them."""
        made = Conjunction(self.base)
        made.limits = self.limits.copy()
        return made if all(made.add(each) for each in inequalities) else None

    def forms(self) -> dict[Direction, Limit]:
        """Return the limits of all that is not a single input."""
        own = {each: limit for each, limit in self.limits.items() if not _is_input(each)}
        return own if self.base is None else {**self.base._fixed_forms, **own}

    @cached_property
    def _fixed_forms(self) -> dict[Direction, Limit]:
        return self.forms()

    def close(
        self,
        forms: Mapping[Direction, Limit],
        needed: Sequence[tuple[int, int]],
        name: Callable[[int], str],
    ) -> bool:
        """Bound inputs that are not bounded by what others say of them; return False if it is empty.

        Args:
            forms: What :meth:`forms` returns.
            needed: The ends of single inputs that the base does not have.
            name: What an input is called.

        Raises:
            PropertyFileError: If an input has no finite bound.
        """
        linear = [
            (dict(form), sign, limit)
            for (form, sign), limit in forms.items()
            if not isinstance(form, int) and form[0][0] >= 0  # outputs, below zero, come first
        ]
        missing = [end for end in needed if end not in self.limits]
        if missing and linear:
            if not self._deduce(linear):
                return False
            missing = [end for end in missing if end not in self.limits]
        if missing:
            i, sign = missing[0]
            raise PropertyFileError(
                f"input {name(i)} has no {'upper' if sign > 0 else 'lower'} bound; "
                "a property needs a bounded set of inputs."
            )
        for form, sign, (value, strict) in linear:
            least = sum(self._least(i, sign * c) or 0 for i, c in form.items())
            if least > value or (strict and least == value):
                return False
        return True

    def _deduce(self, linear: Sequence[tuple[dict[int, int], int, Limit]]) -> bool:
        """Bound inputs by forms in which every other input is bounded, until nothing changes."""
        waiting: dict[Direction, list[int]] = {}
        unknown = []
        for row, (form, sign, _) in enumerate(linear):
            ends = [(i, -1 if sign * c > 0 else 1) for i, c in form.items()]
            unknown.append({end for end in ends if self.limit(end) is None})
            for end in unknown[row]:
                waiting.setdefault(end, []).append(row)
        todo = [row for row, ends in enumerate(unknown) if len(ends) <= 1]
        while todo:
            row = todo.pop()
            form, sign, limit = linear[row]
            least = {i: self._least(i, sign * c) for i, c in form.items()}
            rest = limit.value - sum(part or 0 for part in least.values())
            # Only the one without a least value can be bounded; where all have one, each can.
            for i in [i for i, part in least.items() if part is None] or form:
                c = sign * form[i]
                end = (i, 1 if c > 0 else -1)
                if self.limit(end) is None:
                    if not self._bound(end, Fraction(rest + (least[i] or 0)) / abs(c), False):
                        return False
                    for reader in waiting.pop(end, []):
                        unknown[reader].discard(end)
                        if len(unknown[reader]) <= 1:
                            todo.append(reader)
        return True

    def _least(self, i: int, c: int) -> Exact | None:
        """Return the least value of c times input i, None if there is none."""
        end = self.limit((i, -1 if c > 0 else 1))
        return None if end is None else -abs(c) * end.value


def conjunctions(asserted: Iterable[Alternatives]) -> tuple[Conjunction, list[Conjunction]]:
    """Return what all have in common, and the conjunctions of one alternative of each that can be met.

    Raises:
        PropertyFileError: If there are too many.
    """
    base, choices = Conjunction(), []
    for alternatives in asserted:
        if len(alternatives) != 1:
            choices.append(alternatives)
        elif not all(base.add(each) for each in alternatives[0]):
            return base, []
    found = [Conjunction(base)]
    for alternatives in choices:
        tried = len(found) * len(alternatives)
        if tried > MAX_COMBINATIONS:
            raise PropertyFileError(
                f"the property is a union of {tried:,} combinations of its alternatives; "
                f"the limit is {MAX_COMBINATIONS:,}."
            )
        longer = (one.extended(each) for one in found for each in alternatives)
        found = [made for made in longer if made is not None]
        check_sets(len(found))
    return base, found


def check_sets(n: int) -> None:
    """Refuse a property with too many unsafe sets."""
    if n > MAX_SETS:
        raise PropertyFileError(f"the property is a union of {n:,} sets; the limit is {MAX_SETS:,}.")


def _is_input(direction: Direction) -> bool:
    return isinstance(direction[0], int) and direction[0] >= 0


def _directed(terms: Mapping[int, Exact], limit: Exact) -> tuple[Direction, Exact]:
    """Return the direction of a form, and the limit in its units."""
    if len(terms) == 1:
        ((variable, c),) = terms.items()
        sign = 1 if c > 0 else -1
        return (variable, sign), limit if c == sign else Fraction(limit) / (sign * c)
    ordered = sorted(terms.items())
    sign = 1 if ordered[0][1] > 0 else -1
    if all(c in (1, -1) for _, c in ordered):
        return (tuple((v, sign * int(c)) for v, c in ordered), sign), limit
    scale = 1
    for _, c in ordered:
        scale = lcm(scale, c.denominator)
        if scale.bit_length() > MAX_BITS:
            raise PropertyFileError(
                "the coefficients of a row have no common denominator of bearable length."
            )
    whole = [int(c * scale) for _, c in ordered]
    factor = gcd(*whole)
    form = tuple((v, sign * c // factor) for (v, _), c in zip(ordered, whole, strict=True))
    return (form, sign), Fraction(limit) * scale / factor
