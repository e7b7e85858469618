"""Formulas are computed by a small grammar of their own, in bounded time, and nothing is ever executed."""

import time
from contextlib import suppress

import pytest
from hypothesis import given
from hypothesis import strategies as st

from rdmalab.expression import ExpressionError, evaluate, names


@pytest.mark.parametrize(
    ("text", "value"),
    [
        ("1 + 2 * 3", 7), ("(1 + 2) * 3", 9), ("-2 ** 2", -4), ("2 ** -1", 0.5), ("2 ** 3 ** 2", 512),
        ("7 - 2 - 1", 4), ("8 / 4 / 2", 1), ("1e-3/5e-6", 200), ("4.096e-6*2**20", 4.294967296), ("--1", 1),
        ("ceil(log2(1280))", 11), ("floor(2.9)", 2), ("min(3, 1, 2)", 1), ("max(1, 2 + 3)", 5), (".5 * 2.", 1),
    ],
)  # fmt: skip
def test_arithmetic_has_the_precedence_of_python(text: str, value: float) -> None:
    """Signs, powers, products and sums bind as a reader expects."""
    assert evaluate(text) == pytest.approx(value)


def test_names_are_numbers_or_ranges() -> None:
    """A name in braces is a number; of a range only the ends can be taken."""
    values = {"002-23": (14.0, 16.0), "a.b_c": 8.0}
    assert evaluate("(92 - max({002-23})) / {a.b_c}", values) == 9.5
    assert evaluate("min({002-23}, 15)", values) == 14
    assert names("{a.b_c} + {002-23} * {a.b_c}") == ("a.b_c", "002-23")
    with pytest.raises(ExpressionError, match=r"range: write min\(\{002-23\}\)"):
        evaluate("{002-23} * 2", values)
    with pytest.raises(ExpressionError, match=r"Did you mean 'a\.b_c'"):
        evaluate("{a.b_d}", values)


@pytest.mark.parametrize(
    ("text", "complaint"),
    [
        ('__import__("os")', "not arithmetic"), ("__import__(1)", "unknown function"), ("abs(1)", "unknown function"),
        ("os.system", "not arithmetic"), ("1 if 2 else 3", "unexpected"), ("[1]", "not arithmetic"),
        ("log3(8)", "Did you mean 'log2'"), ("1 +", "ends too early"), ("", "ends too early"), ("1 2", "unexpected"),
        ("(1", "ends too early"), ("1)", "unexpected"), ("max(", "ends too early"), ("log2(1, 2)", "one number"),
        ("1 / 0", "divides by zero"), ("log2(0)", "no finite value"), ("(-8) ** 0.5", "no finite value"),
        ("9**9**9**9", "no finite value"), ("1e999", "no finite value"), ("0 ** -1", "no finite value"),
        ("ceil(1e308 * 10)", "no finite value"), ("min", "ends too early"), ("min + 1", "expected"),
        ("1 // 2", "unexpected"),
    ],
)  # fmt: skip
def test_what_is_no_arithmetic_is_refused(text: str, complaint: str) -> None:
    """Whatever is outside the grammar, or has no finite value, gets one sentence."""
    with pytest.raises(ExpressionError, match=complaint):
        evaluate(text)


@pytest.mark.parametrize(
    "text",
    [
        "(" * 101 + "1" + ")" * 101,
        "-" * 200 + "1",
        "2**" * 150 + "1",
        "9" * 10**6,
        "(" * 10**6,
        "1+" * 10**6,
        "max(" * 150,
    ],
)
def test_depth_length_and_digits_are_bounded(text: str) -> None:
    """Hostile formulas are refused at once."""
    start = time.perf_counter()
    with pytest.raises(ExpressionError):
        evaluate(text)
    assert time.perf_counter() - start < 1


@given(st.text(alphabet="0123456789.e+-*/(){},abminxlog2 ", max_size=60))
def test_any_text_has_a_number_or_a_sentence(text: str) -> None:
    """No text raises anything but the one error."""
    with suppress(ExpressionError):
        assert isinstance(evaluate(text, {"a": 1.0, "b": (1.0, 2.0)}), float)
