"""The table of curves prints fitted numbers as fitted, and measured ones as measured."""

import re

import polars as pl

from rdmalab.pages.curves import curve_table
from rdmalab.pages.fabric_comparison import FabricComparison
from rdmalab.wording import Phrasing
from tests._comparisons import LATENCY, around, comparison

ROW = {
    "kind": "latency", "operation": None, "test": "ib_read_lat", "placement": None, "fabric": "roce", "runs": 7,
    "smallest_us": 3.82, "largest_gbyte_s": 11.555, "half_of_largest_bytes": 45000.0, "latency_floor_us": 3.858,
    "asymptotic_gbyte_s": 11.513, "half_bandwidth_bytes": 44416.0,
}  # fmt: skip


def cells(row: dict[str, object]) -> list[str]:
    html = curve_table(pl.DataFrame([row], infer_schema_length=None), {"roce": "RoCEv2 100G"}, Phrasing("en"))
    return [re.sub("<.*?>", "", x).replace("\u00a0", " ") for x in re.findall(r"<td.*?</td>", html)]


def test_a_fitted_curve() -> None:
    """3.86 µs, 43.4 KiB (44416 / 1024), 11.5 GB/s."""
    assert cells(ROW) == ["ib_read_lat", "RoCEv2 100G", "7", "3.86", "43.4 KiB", "11.5", "fitted"]


def test_a_curve_that_two_numbers_do_not_describe() -> None:
    """What was measured at the ends, under that name; half of it may be reached below the smallest size."""
    row = ROW | dict.fromkeys(("latency_floor_us", "asymptotic_gbyte_s", "half_bandwidth_bytes"))
    assert cells(row)[3:] == ["3.82", "43.9 KiB", "11.6", "measured"]
    assert cells(row | {"half_of_largest_bytes": None})[4] == "below the smallest"
    collective = row | {"kind": "collective", "operation": "all_reduce", "placement": "in_place"}
    assert cells(collective)[0] == "all-reduce, in place"


def test_without_rows_there_is_no_table() -> None:
    """An empty selection leaves nothing on the page."""
    assert curve_table(pl.DataFrame([ROW], infer_schema_length=None).clear(), {}, Phrasing("en")) == ""


def test_the_report_counts_the_sweeps_that_a_line_describes() -> None:
    """Of seven runs five follow a floor and an asymptote; without a sweep there is no page."""
    c = comparison((LATENCY, {("a", 8): around(10), ("roce", 8): around(5)}))
    frame = pl.DataFrame([ROW | {"described": 5}], infer_schema_length=None)
    html = FabricComparison(c).sweeps(frame).html
    assert "5 of 7 sweeps follow a latency floor and an asymptote" in html
    assert "43.4\u00a0KiB" in html
    assert FabricComparison(c).sweeps(frame.clear()).html == ""
