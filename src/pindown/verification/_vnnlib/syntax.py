"""The text of a VNN-LIB file as alternatives of linear inequalities.

One pass from left to right with a stack of open parentheses and no recursion: what a closing one ends is
reduced at once, a term to its coefficients, a condition to a union of conjunctions. A ``not`` is known
when it opens, so that what stands inside is read negated.

A file is untrusted. Its depth, the digits of its numbers, and the work that it asks for beyond its own
length are limited, so that the time stays proportional to its length.
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from decimal import Decimal
from fractions import Fraction
from itertools import pairwise
from typing import Any, NoReturn, TypeAlias

from pindown.errors import PropertyFileError
from pindown.verification._vnnlib.conjunctions import MAX_BITS, MAX_SETS, Alternatives, Exact, Inequality
from pindown.verification._vnnlib.networks import Networks, quoted

# Coefficients of variables; that of None is the constant. Zeros are left out.
Term: TypeAlias = "dict[int | None, Exact]"

# A comment, a parenthesis, a string, a word with its indices, or whatever else is there; before all of
# them a whole comparison of two words, which most of a file is.
_WORD = r"""[^\s()\[\]";]+"""
_TOKENS = rf""";[^\n]*|[()]|"[^"]*"|{_WORD}(?:\s*\[[^\[\]()]*\])*|\S"""
_TOKEN = re.compile(_TOKENS)
_COMPARISON_OR_TOKEN = re.compile(rf"""\(\s*([<>]=?)\s+({_WORD})\s+({_WORD})\s*\)|{_TOKENS}""")
_NUMBER = re.compile(r"[+-]?(?:[0-9]+\.?[0-9]*|\.[0-9]+)(?:[eE]([+-]?[0-9]+))?")
_ARITHMETIC = ("+", "-", "*", "/")
_NEGATED = {"<=": ">", ">=": "<", "<": ">=", ">": "<=", "=": "!=", "==": "!=", "!=": "="}
_PLAIN = {"<=": "<=", ">=": "<=", "<": "<", ">": "<", "=": "=", "==": "="}
_CONNECTIVES = ("and", "or", "not")
_NETWORK_PARTS = ("declare-input", "declare-output", "declare-hidden", "isomorphic-to", "equal-to")
_WITHOUT_MEANING = ("set-logic", "set-info", "set-option", "check-sat", "get-model", "exit")

MAX_DEPTH = 100_000  # open parentheses
MAX_DIGITS = 400  # of a number, and its largest exponent
# Entries of sums and conjunctions that may be copied on the way.
_WORK_PER_CHARACTER = 8
_SPARE_WORK = 2_000_000

# A frame is an open parenthesis: its place, whether what is in it is negated, whether it is asserted by
# itself, then its operator and operands.
_START, _NEGATION, _TOP, _HEAD = range(4)


class Statements:
    """What a text states.

    Args:
        text: The whole file.

    Attributes:
        networks: What it declares.
        asserted: What holds where the property is violated: of each union one conjunction.

    Example:
        >>> text = "(declare-const X_0 Real) (declare-const Y_0 Real) (assert (<= X_0 (+ Y_0 0.5)))"
        >>> Statements(text).asserted
        [[[Inequality(terms={0: 1, -1: -1}, limit=Fraction(1, 2), relation='<=')]]]
    """

    def __init__(self, text: str) -> None:
        self.networks = Networks()
        self.asserted: list[Alternatives] = []
        self._text = text
        self._words: dict[str, Term] = {}
        self._work = _SPARE_WORK + _WORK_PER_CHARACTER * len(text)
        self._read()

    def _read(self) -> None:
        frame: list[Any] = [0, False, False]
        stack: list[list[Any]] = []
        for match in _COMPARISON_OR_TOKEN.finditer(self._text):
            token = match[0]
            if match.lastindex and stack:
                relation, left, right = match.groups()
                if _inherited(frame)[0]:
                    relation = _NEGATED[relation]
                place = [match.start()]
                a, b = self._term(left, place), self._term(right, place)
                frame.append(self._compared(relation, a, b))
            elif token == "(":
                if len(stack) >= MAX_DEPTH:
                    self._fail(match.start(), f"more than {MAX_DEPTH:,} parentheses are open.")
                stack.append(frame)
                frame = [match.start(), *_inherited(frame)]
            elif token == ")":
                if not stack:
                    self._fail(match.start(), "this parenthesis closes nothing.")
                outer = stack.pop()
                if stack:
                    outer.append(self._reduced(frame))
                else:
                    self._command(frame)
                frame = outer
            elif token[0] != ";":
                if not stack:
                    self._fail(match.start(), f"{quoted(token)} stands outside of all parentheses.")
                frame.append(token)
        if stack:
            self._fail(frame[_START], "this parenthesis is never closed.")

    def _command(self, frame: list[Any]) -> None:
        """Carry out what stands in the outermost parentheses."""
        head, *operands = frame[_HEAD:] or [""]
        if head == "assert":
            if len(operands) != 1:
                self._fail(frame[_START], f"assert takes one condition; here are {len(operands)}.")
            self.asserted.append(self._condition(operands[0], frame, False))
            return
        try:
            if head == "declare-const" and _are_words(operands, 2):
                self.networks.declare_variable(*operands)
            elif head == "declare-fun" and len(operands) == 3 and operands[1] == ():
                self.networks.declare_variable(str(operands[0]), str(operands[2]))
            elif head == "declare-network":
                self.networks.declare_network(operands)
            elif head == "vnnlib-version":
                self.networks.declare_version(operands)
            elif head not in _WITHOUT_MEANING:
                shown = quoted(head) if isinstance(head, str) else "what stands here"
                raise PropertyFileError(f"{shown} is no command, or has other operands than it takes.")
        except PropertyFileError as error:
            self._fail(frame[_START], str(error))

    def _reduced(self, frame: list[Any]) -> Any:
        """Return what a parenthesis says: a term, a condition, or a part of a declaration."""
        if len(frame) == _HEAD:
            return ()  # the arguments of declare-fun
        head, *operands = frame[_HEAD:]
        if len(operands) == 2 and isinstance(operands[0], str) and operands[0] in _NEGATED:
            head, operands = operands[0], [head, operands[1]]  # it stands between its operands
        if not isinstance(head, str):
            self._fail(frame[_START], "an operator is missing here.")
        if head in _NEGATED:
            return self._comparison(head, operands, frame)
        if head in _CONNECTIVES:
            return self._connective(head, operands, frame)
        if head in _ARITHMETIC and operands:
            return self._arithmetic(head, operands, frame)
        if head in _NETWORK_PARTS:
            return (head, *operands)
        self._fail(
            frame[_START], f"{quoted(head)} is no operation, or has other operands than it takes."
        )

    # ------------------------------------------------------------------ terms

    def _arithmetic(self, head: str, operands: list[Any], frame: list[Any]) -> Term:
        terms = [self._term(each, frame) for each in operands]
        if head in "+-":
            signs = [1] * len(terms)
            if head == "-":
                signs = [-1] if len(terms) == 1 else [1] + [-1] * (len(terms) - 1)
            return self._sum(operands, terms, signs, frame)
        if head == "/":
            if len(terms) < 2 or not all(len(each) == 1 and None in each for each in terms[1:]):
                self._fail(frame[_START], "a quotient needs divisors that are numbers other than 0.")
            terms[1:] = [{None: Fraction(1) / each[None]} for each in terms[1:]]
        product: Term = {None: 1}
        for term in terms:
            if not (_is_constant(product) or _is_constant(term)):
                self._fail(frame[_START], "a product of two variables is not linear.")
            numbers, other = (product, term) if _is_constant(product) else (term, product)
            factor = numbers.get(None, 0)
            self._spend(len(other))
            product = {}
            if factor:
                product = {v: self._bearable(c * factor, frame) for v, c in other.items()}
        return product

    def _sum(
        self, operands: Sequence[Any], terms: list[Term], signs: list[int], frame: list[Any]
    ) -> Term:
        # What is nested belongs to nobody else: the longest of them grows, and deep sums stay linear.
        grows = [i for i, each in enumerate(operands) if isinstance(each, dict) and signs[i] > 0]
        longest = max(grows, key=lambda i: len(terms[i]), default=-1)
        total = terms[longest] if longest >= 0 else {}
        for i, (term, sign) in enumerate(zip(terms, signs, strict=True)):
            if i != longest:
                self._spend(len(term))
                for v, c in term.items():
                    total[v] = self._bearable(total.get(v, 0) + sign * c, frame)
                    if not total[v]:
                        del total[v]
        return total

    def _bearable(self, c: Exact, frame: list[Any]) -> Exact:
        """Return a number if it has a bearable length."""
        if c.numerator.bit_length() > MAX_BITS or c.denominator.bit_length() > MAX_BITS:
            self._fail(frame[_START], "this makes a number of too many digits.")
        return c

    def _term(self, operand: Any, frame: list[Any]) -> Term:
        """Return an operand as coefficients; those of words are shared and must not be changed."""
        if isinstance(operand, str):
            known = self._words.get(operand)
            return self._word(operand, frame) if known is None else known
        if not isinstance(operand, dict):
            self._fail(frame[_START], "a number or a variable is needed where a condition stands.")
        return operand

    def _word(self, word: str, frame: list[Any]) -> Term:
        """Return what a word means that is met for the first time: a number or a variable."""
        found = _NUMBER.fullmatch(word)
        if found is None:
            try:
                term: Term = {self.networks.variable(word): 1}
            except PropertyFileError as error:
                self._fail(self._place(word, frame), str(error))
        elif len(word) > MAX_DIGITS or abs(int(found[1] or 0)) > MAX_DIGITS:
            self._fail(
                self._place(word, frame),
                f"{quoted(word)} has more than {MAX_DIGITS} digits, or is far beyond float64.",
            )
        else:
            n, d = Decimal(word).as_integer_ratio()
            term = {None: n if d == 1 else Fraction(n, d)} if n else {}
        self._words[word] = term
        return term

    # ------------------------------------------------------------------ conditions

    def _comparison(self, head: str, operands: list[Any], frame: list[Any]) -> Alternatives:
        if len(operands) < 2:
            self._fail(frame[_START], f"{head} compares two terms; here is {len(operands)}.")
        if head == "!=" and len(operands) > 2:
            self._fail(frame[_START], "!= compares two terms.")
        terms = [self._term(each, frame) for each in operands]
        relation = _NEGATED[head] if frame[_NEGATION] else head
        found = [self._compared(relation, a, b) for a, b in pairwise(terms)]
        if len(found) == 1:
            return found[0]
        return self._union(found, frame) if frame[_NEGATION] else self._conjunction(found, frame)

    def _compared(self, relation: str, a: Term, b: Term) -> Alternatives:
        if relation == "!=":
            return self._compared("<", a, b) + self._compared("<", b, a)
        if relation[0] == ">":
            a, b = b, a
        if len(a) <= 1 and len(b) <= 1 and _is_constant(a) != _is_constant(b):  # the bound of a variable
            if _is_constant(b):
                return [[Inequality(a, b.get(None, 0), _PLAIN[relation])]]  # type: ignore[arg-type]
            ((variable, c),) = b.items()
            return [[Inequality({variable: -c}, -a.get(None, 0), _PLAIN[relation])]]  # type: ignore[dict-item]
        self._spend(len(a) + len(b))
        limit = b.get(None, 0) - a[None] if None in a else b.get(None, 0)
        terms = {v: c for v, c in a.items() if v is not None}
        for v, c in b.items():
            if v is not None:
                rest = terms.get(v, 0) - c
                if rest:
                    terms[v] = rest
                else:
                    del terms[v]
        return [[Inequality(terms, limit, _PLAIN[relation])]]

    def _connective(self, head: str, operands: list[Any], frame: list[Any]) -> Alternatives:
        negated = frame[_NEGATION]
        if not operands or (head == "not" and len(operands) > 1):
            self._fail(
                frame[_START], f"{head} takes {'one condition' if head == 'not' else 'conditions'}."
            )
        if head == "not":
            return self._condition(operands[0], frame, not negated)
        parts = [self._condition(each, frame, negated) for each in operands]
        if head == ("or" if negated else "and"):
            if frame[_TOP]:
                self.asserted += parts
                return [[]]
            return self._conjunction(parts, frame)
        return self._union(parts, frame)

    def _condition(self, operand: Any, frame: list[Any], negated: bool) -> Alternatives:
        """Return an operand as a union of conjunctions."""
        if operand in ("true", "false"):
            return [[]] if (operand == "true") != negated else []
        if not isinstance(operand, list):
            place = self._place(operand, frame) if isinstance(operand, str) else frame[_START]
            self._fail(
                place, "a condition is needed where a number, a variable or a declaration stands."
            )
        return operand

    def _union(self, parts: list[Alternatives], frame: list[Any]) -> Alternatives:
        """Join unions, of which none is used again: the longest grows."""
        longest = max(range(len(parts)), key=lambda i: len(parts[i]))
        total = parts[longest]
        for i, part in enumerate(parts):
            if i != longest:
                self._spend(len(part))
                total += part
        if len(total) > MAX_SETS:
            self._fail(
                frame[_START], f"this is a union of more than {MAX_SETS:,} sets; that is the limit."
            )
        return total

    def _conjunction(self, parts: list[Alternatives], frame: list[Any]) -> Alternatives:
        """Combine unions, of which none is used again: one of each."""
        if not all(parts):
            return []
        single = [part[0] for part in parts if len(part) == 1]
        longest = max(single, key=len, default=[])
        for each in single:
            if each is not longest:
                self._spend(len(each))
                longest += each
        total: Alternatives = [longest]
        for part in parts:
            if len(part) == 1:
                continue
            if len(total) * len(part) > MAX_SETS:
                self._fail(
                    frame[_START], f"this is a union of more than {MAX_SETS:,} sets; that is the limit."
                )
            self._spend(len(part) * sum(map(len, total)))
            if len(total) == 1:
                for each in part:
                    each.extend(total[0])
                total = part
            else:
                self._spend(len(total) * sum(map(len, part)))
                total = [a + b for a in total for b in part]
        return total

    # ------------------------------------------------------------------ limits and messages

    def _spend(self, work: int) -> None:
        self._work -= work
        if self._work < 0:
            raise PropertyFileError("the formulas grow out of all proportion when they are written out.")

    def _place(self, word: str, frame: list[Any]) -> int:
        """Return where a word stands in a frame."""
        places = (m.start() for m in _TOKEN.finditer(self._text, frame[_START]) if m[0] == word)
        return next(places, frame[_START])

    def _fail(self, place: int, message: str) -> NoReturn:
        line = self._text.count("\n", 0, place) + 1
        column = place - self._text.rfind("\n", 0, place)
        raise PropertyFileError(f"line {line}, column {column}: {message}")


def _inherited(frame: list[Any]) -> tuple[bool, bool]:
    """Return, for what opens in a frame, whether it is negated and whether it is asserted by itself."""
    head = frame[_HEAD] if len(frame) > _HEAD else ""
    if head == "not":
        return not frame[_NEGATION], frame[_TOP]
    conjunction = "or" if frame[_NEGATION] else "and"
    return frame[_NEGATION], head == "assert" or (frame[_TOP] and head == conjunction)


def _are_words(operands: Sequence[Any], n: int) -> bool:
    return len(operands) == n and all(isinstance(each, str) for each in operands)


def _is_constant(term: Term) -> bool:
    return not term or (len(term) == 1 and None in term)
