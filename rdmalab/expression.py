"""A closed arithmetic: numbers, ``+ - * / ** ( )``, ``{name}``, and log2, ceil, floor, min, max. Nothing is executed.

    >>> evaluate("(1 - {tcp} / {roce}) * 100", {"tcp": 6.0, "roce": 12.0})
    50.0

A name may stand for a range of two ends; then ``min({name})`` and ``max({name})`` are its ends, and every other use of
it is refused. Text, depth and numbers are bounded, and so are time and memory.
"""

import math
import re
from collections.abc import Callable, Mapping
from typing import NoReturn

from rdmalab.errors import did_you_mean

MOST_CHARACTERS = 1000
MOST_DEPTH = 100
Value = float | tuple[float, float]

_TOKEN = re.compile(
    r"\s*(?:(?P<number>(?:\d+\.?\d*|\.\d+)(?:[eE][+-]?\d+)?)|\{(?P<name>[A-Za-z0-9._-]+)\}|(?P<word>[A-Za-z_]\w*)"
    r"|(?P<sign>\*\*|[-+*/(),]))"
)
_ONE: dict[str, Callable[[float], float]] = {"log2": math.log2, "ceil": math.ceil, "floor": math.floor}
_MANY: dict[str, Callable[[list[float]], float]] = {"min": min, "max": max}
FUNCTIONS = (*_ONE, *_MANY)


class ExpressionError(ValueError):
    """A formula cannot be read or has no value; the message is one sentence without the formula."""


def evaluate(text: str, values: Mapping[str, Value] | None = None) -> float:
    """
    The value of a formula, always finite.

    Raises:
        ExpressionError: The text is not of this grammar, or it has no finite value.
    """
    try:
        result = _Parser(_tokens(text), values or {}).whole()
    except ZeroDivisionError:
        raise ExpressionError("the formula divides by zero") from None
    except (OverflowError, ValueError) as error:
        if isinstance(error, ExpressionError):
            raise
        raise ExpressionError("the formula has no finite value") from None
    return _finite(result)


def names(text: str) -> tuple[str, ...]:
    """
    The names in braces, in order of appearance, each once.

    Raises:
        ExpressionError: The text holds something outside the grammar.
    """
    return tuple(dict.fromkeys(word for kind, word in _tokens(text) if kind == "name"))


def _tokens(text: str) -> list[tuple[str, str]]:
    if len(text) > MOST_CHARACTERS:
        raise ExpressionError(f"the formula has {len(text)} characters, more than {MOST_CHARACTERS}")
    found, at, end = [], 0, len(text.rstrip())
    while at < end:
        token = _TOKEN.match(text, at)
        if token is None:
            raise ExpressionError(f"{text[at:].strip()[:12]!r} is not arithmetic")
        kind = token.lastgroup or ""
        found.append((kind, token[kind]))
        at = token.end()
    return found


def _finite(value: float) -> float:
    if not math.isfinite(value):
        raise ExpressionError("the formula has no finite value")
    return float(value)


class _Parser:
    """Recursive descent that computes while it reads, with the precedence of Python."""

    def __init__(self, tokens: list[tuple[str, str]], values: Mapping[str, Value]) -> None:
        self.tokens, self.values, self.at, self.depth = [*tokens, ("end", "")], values, 0, 0

    def whole(self) -> float:
        result = self.sum()
        if self.tokens[self.at][0] != "end":
            self.refuse()
        return result

    def sum(self) -> float:
        result = self.product()
        while sign := self.accept("+", "-"):
            right = self.product()
            result = result + right if sign == "+" else result - right
        return result

    def product(self) -> float:
        result = self.signed()
        while sign := self.accept("*", "/"):
            right = self.signed()
            result = result * right if sign == "*" else result / right
        return result

    def signed(self) -> float:
        self.depth += 1
        if self.depth > MOST_DEPTH:
            raise ExpressionError(f"the formula is nested deeper than {MOST_DEPTH}")
        sign = self.accept("+", "-")
        result = self.signed() if sign else self.power()
        self.depth -= 1
        return -result if sign == "-" else result

    def power(self) -> float:
        base = self.atom()
        return math.pow(base, self.signed()) if self.accept("**") else base

    def atom(self) -> float:
        kind, word = self.tokens[self.at]
        self.at += 1
        if kind == "number":
            return _finite(float(word))
        if kind == "name":
            value = self.value(word)
            if isinstance(value, tuple):
                raise ExpressionError(f"{{{word}}} is a range: write min({{{word}}}) or max({{{word}}})")
            return value
        if kind == "word":
            return self.call(word)
        if word != "(":
            self.at -= 1
            self.refuse()
        result = self.sum()
        self.expect(")")
        return result

    def call(self, word: str) -> float:
        if word not in FUNCTIONS:
            raise ExpressionError(f"unknown function '{word}'.{did_you_mean(word, FUNCTIONS)}")
        self.expect("(")
        values = self.argument()
        while self.accept(","):
            values += self.argument()
        self.expect(")")
        if word in _MANY:
            return _MANY[word](values)
        if len(values) != 1:
            raise ExpressionError(f"{word} takes one number")
        return _finite(_ONE[word](values[0]))

    def argument(self) -> list[float]:
        """One argument; a range alone gives its two ends."""
        kind, word = self.tokens[self.at]
        if kind == "name" and self.tokens[self.at + 1][1] in (",", ")"):
            self.at += 1
            ends = self.value(word)
            return [*ends] if isinstance(ends, tuple) else [ends]
        return [self.sum()]

    def value(self, name: str) -> Value:
        if name not in self.values:
            raise ExpressionError(f"unknown name '{name}'.{did_you_mean(name, list(self.values))}")
        return self.values[name]

    def accept(self, *signs: str) -> str:
        kind, word = self.tokens[self.at]
        if kind != "sign" or word not in signs:
            return ""
        self.at += 1
        return word

    def expect(self, sign: str) -> None:
        if not self.accept(sign):
            self.refuse(f", where '{sign}' was expected")

    def refuse(self, more: str = "") -> NoReturn:
        kind, word = self.tokens[self.at]
        if kind == "end":
            raise ExpressionError("the formula ends too early")
        raise ExpressionError(f"unexpected '{word:.20}' in the formula{more}")
