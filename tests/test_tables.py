"""Numbers become text: digits by the interval, no bound that lies, no missing value that reads as 0."""

import re

import pytest
from hypothesis import assume, given
from hypothesis import strategies as st

from rdmalab.compare import FASTER, NO_DIFFERENCE, SLOWER, TOO_FEW, Cell
from rdmalab.tables import (
    THIN,
    aligned,
    cell_html,
    decimals_for,
    duration_text,
    fixed,
    number_text,
    ratio_texts,
    shown_ratio,
    table_html,
    th,
    time_unit,
    value_texts,
)

printed = st.floats(0.01, 1e6).map(lambda x: round(x, 2))


def cell(median: float, low: float | None = None, high: float | None = None) -> Cell:
    """A cell with a median and its interval."""
    return Cell(fabric="a", size_bytes=8, n=7, median=median, low=low, high=high, verdict="baseline")


def ratio(value: float, low: float | None = None, high: float | None = None) -> Cell:
    """A cell with a ratio and the verdict that follows from its interval."""
    verdict = TOO_FEW if low is None or high is None else FASTER if low > 1 else SLOWER if high < 1 else NO_DIFFERENCE
    return Cell(
        fabric="a",
        size_bytes=8,
        n=7,
        median=1.0,
        low=1.0,
        high=1.0,
        verdict=verdict,
        ratio=value,
        ratio_low=low,
        ratio_high=high,
    )


def number(text: str) -> float:
    """A printed number as a float."""
    return float(text.replace(THIN, ""))


def numbers(interval: str) -> list[float]:
    """Both bounds of a printed interval."""
    return [number(t) for t in interval.strip("[]").split(", ")]


@pytest.mark.parametrize(
    ("median", "low", "high", "shown"),
    [
        (184.0, 162.0, 207.0, ("184", "[162, 207]")),  # half-width 22.5
        (36.24, 35.71, 37.21, ("36.2", "[35.7, 37.2]")),  # 0.75: its first digit
        (36.24, 35.21, 37.61, ("36.2", "[35.2, 37.6]")),  # 1.2: its second digit, since the first is a 1
        (391.52, 391.52, 391.52, ("391.52", "[391.52, 391.52]")),  # no width: what the tool printed
        (10.0, 9.96, 30.0, ("10.00", "[9.96, 30.00]")),  # else the lower bound would print as the median
        (12.345, 12.345, 90.0, ("12", "[12, 90]")),  # equal to the median: prints as it
        (0.06, 0.06, 0.06, ("0.06", "[0.06, 0.06]")),
        (123456.0, 120000.0, 130000.0, (f"123{THIN}456", f"[120{THIN}000, 130{THIN}000]")),
    ],
)
def test_the_interval_decides_the_digits(median: float, low: float, high: float, shown: tuple[str, str]) -> None:
    """The last digit is the first of the half-width, or the second after a 1, or more where a bound would lie."""
    assert value_texts(cell(median, low, high)) == shown


def test_without_an_interval_three_digits_are_shown() -> None:
    """And no interval at all, rather than an empty one."""
    assert value_texts(cell(184.26)) == ("184", "")
    assert value_texts(cell(1.8426)) == ("1.84", "")
    assert value_texts(cell(0.0)) == ("0", "")


@given(st.lists(printed, min_size=3, max_size=3).map(sorted))
def test_no_bound_prints_as_the_median_when_it_differs(values: list[float]) -> None:
    """As long as the data's own digits can tell them apart."""
    low, median, high = values
    text, interval = value_texts(cell(median, low, high))
    shown = numbers(interval)
    assert (shown[0] == number(text)) == (low == median)
    assert (shown[1] == number(text)) == (high == median)
    assert shown[0] <= number(text) <= shown[1]


@given(st.lists(printed, min_size=3, max_size=3).map(sorted))
def test_never_more_digits_than_the_data_has(values: list[float]) -> None:
    """Two decimals printed by the tool are at most two decimals in the report."""
    low, median, high = values
    assert decimals_for(median, low, high) <= 2


@given(st.lists(printed, min_size=3, max_size=3).map(sorted), st.sampled_from([1.0, 1e3, 1e6]))
def test_another_unit_changes_the_digits_not_the_value(values: list[float], scale: float) -> None:
    """Milliseconds say the same as microseconds, to within the last digit."""
    low, median, high = values
    assume(median / scale >= 0.001)
    text, _ = value_texts(cell(median, low, high), scale)
    last = 10.0 ** -len(text.partition(".")[2])
    assert number(text) == pytest.approx(median / scale, abs=0.51 * last)


@given(st.floats(1e-3, 1e3), st.floats(1.0, 3), st.floats(1.0, 3))
def test_no_bound_of_a_ratio_prints_as_1_when_the_interval_excludes_it(value: float, down: float, up: float) -> None:
    """Nor on its other side, nor as the ratio itself."""
    x = ratio(value, value / down, value * up)
    assert x.ratio_low
    assert x.ratio_high
    assume(abs(x.ratio_low - 1) > 1e-7)
    assume(abs(x.ratio_high - 1) > 1e-7)
    for inverse in (False, True):
        text, interval = ratio_texts(x, inverse=inverse)
        low, high = numbers(interval)
        assert low <= number(text) <= high
        if x.ratio_low > 1 or x.ratio_high < 1:
            assert (low > 1) or (high < 1)
            assert 1 not in (low, high, number(text))


@pytest.mark.parametrize(
    ("x", "shown"),
    [
        (ratio(1.015, 1.002, 1.052), ("1.015", "[1.002, 1.052]")),
        (ratio(2.5, 2.2, 2.8), ("2.50", "[2.20, 2.80]")),
        (ratio(6.93, 6.3, 7.52), ("6.9", "[6.3, 7.5]")),
        (ratio(104.2, 95.0, 111.0), ("104", "[95, 111]")),
        (ratio(1.0, 1.0, 1.0), ("1.00", "[1.00, 1.00]")),
        (ratio(3.21), ("3.2", "")),
        (ratio(0.0123), ("0.012", "")),
    ],
)
def test_ratios_have_two_decimals_below_3_and_then_one(x: Cell, shown: tuple[str, str]) -> None:
    """Unless the interval needs more."""
    assert ratio_texts(x) == shown


def test_a_slower_fabric_prints_with_the_factor_that_sentences_name() -> None:
    """1/2.42 in the table, 2.42 times as fast in the sentence."""
    x = ratio(1 / 2.42, 1 / 3.26, 1 / 2.23)
    assert ratio_texts(x, inverse=True) == ("2.42", "[2.23, 3.26]")
    assert shown_ratio(x) == ("1/2.42", "[1/3.26, 1/2.23]")
    assert shown_ratio(ratio(2.42, 2.23, 3.26)) == ("2.42", "[2.23, 3.26]")
    assert shown_ratio(ratio(0.5)) == ("0.50", "")


def test_no_ratio_is_no_text() -> None:
    """Missing is never 0 and never 1."""
    assert ratio_texts(cell(1.0)) == ("", "")


@given(st.floats(0, 1e12), st.integers(0, 4))
def test_thousands_have_thin_spaces_from_10_000_on(value: float, decimals: int) -> None:
    """Also where rounding carries a number over the edge."""
    text = fixed(value, decimals)
    whole = text.partition(".")[0]
    assert "," not in text
    assert (THIN in whole) == (len(re.sub(r"\D", "", whole)) > 4)
    assert number(text) == pytest.approx(value, abs=0.51 * 10.0**-decimals, rel=1e-9)


def test_rounding_over_the_edge_of_10_000() -> None:
    """9999.9 to no decimals has five digits."""
    assert (fixed(9999.9, 0), fixed(9999.4, 0)) == (f"10{THIN}000", "9999")


@given(st.floats(1e-9, 1e15))
def test_a_number_is_never_in_scientific_notation(value: float) -> None:
    """1.234e+04 is no number for a contract."""
    assert "e" not in number_text(value, 4)


def test_number_text_keeps_its_digits() -> None:
    """Zero is 0, and small numbers keep their significant digits."""
    assert [number_text(v) for v in (0, 12.38, 0.01238, 99.99)] == ["0", "12.4", "0.0124", "100.0"]
    assert number_text(12_378.5, 4) == f"12{THIN}378"


def test_times_are_told_in_the_unit_that_suits_them() -> None:
    """From a millisecond on in ms, from a second on in s."""
    assert [time_unit(v)[1] for v in (0.0, 999.9, 1000.0, 999_999.0, 1e6)] == ["µs", "µs", "ms", "ms", "s"]
    assert duration_text(2e4) == "20\u00a0ms"


def test_cells_of_tables_escape_their_text() -> None:
    """A label is text, whatever it holds."""
    assert cell_html("<b>&", "text") == '<td class="text">&lt;b&gt;&amp;</td>'
    assert th('"x"', "num", 2) == '<th class="num" scope="col" colspan="2">&quot;x&quot;</th>'


def test_a_table_is_whole() -> None:
    """Head, a first head row, body and caption, in this order."""
    html = table_html([th("a")], ["<tr><td>1</td></tr>"], over=th("b"), foot="c")
    assert re.sub(r"<[^>]+>", " ", html).split() == ["c", "b", "a", "1"]


def test_decimal_points_align() -> None:
    """Invisible digits pad plain numbers; words and fractions are left alone."""
    assert aligned(["12", "3.5", "1.295", "1/104", ""]) == [
        '12<span class="pad">.000</span>', '3.5<span class="pad">00</span>', "1.295", "1/104", "",
    ]  # fmt: skip
    assert aligned([f"22{THIN}127", "222"]) == [f"22{THIN}127", "222"]
