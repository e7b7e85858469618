"""Charts: every fabric looks different, labels are text, log axes take logarithms, and nothing is drawn of a null."""

import json
import math
import re
from collections.abc import Iterator, Mapping
from dataclasses import replace
from typing import Any

import plotly.graph_objects as go
import polars as pl
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from rdmalab import figures
from rdmalab.compare import Cell, Comparison
from rdmalab.model import FAMILIES
from tests._comparisons import BANDWIDTH, COLLECTIVE, LATENCY, around, comparison

Figure = dict[str, Any]
HOSTILE = '<b>bold</b> & "<a href=x>y</a>"'


def sample(subject: Any = COLLECTIVE, n: int = 7, **how: Any) -> Comparison:
    """Three fabrics at four sizes."""
    sizes = {8: 20, 1024: 22, 1 << 20: 90, 1 << 30: 9000}
    factors = {"a": 1.0, "b": 0.5, "c": 1.002}
    return comparison(
        (subject, {(f, s): around(t * k, n) for f, k in factors.items() for s, t in sizes.items()}), **how
    )


def charts(c: Comparison) -> Iterator[Figure]:
    """Every chart that a report draws of the first table."""
    t = c.headline
    rows = [(f"size {s}", t, s) for s in t.compared_sizes]
    cells = [(f, x) for f in t.fabrics if (x := t.cell(f, t.common_sizes[0]))]
    found = [
        figures.cover_chart(c, t),
        figures.time_chart(c, t),
        figures.ratio_chart(c, rows, no_difference="none", too_few="few"),
    ]
    found += [
        figures.strip(c, cells, baseline=cells[0][1].median, log=log, limits={}, unit="µs") for log in (True, False)
    ]
    found += [f for f in (figures.utilization_chart(c, t),) if f is not None]
    found += [figures.bandwidth_chart(c, t)] if figures.has_curve(t) else []
    return (json.loads(f.to_json()) for f in found)


def distinct(looks: Mapping[str, figures.Look]) -> bool:
    """No two fabrics of one hue share a dash or a marker."""
    keys = [(x.line, x.dash) for x in looks.values()] + [(x.text, x.symbol, x.hollow) for x in looks.values()]
    return len(set(keys)) == len(keys)


@settings(deadline=None)
@given(st.lists(st.sampled_from(FAMILIES), min_size=2, max_size=5))
def test_every_fabric_has_a_look_of_its_own(families: list[str]) -> None:
    """Also five of one family, and the variants of families that share a hue."""
    names = "abcde"[: len(families)]
    c = comparison((LATENCY, {(f, 8): [1.0] for f in names}), families=dict(zip(names, families, strict=True)))
    assert distinct(figures.looks(c))


def test_the_first_fabric_of_a_family_has_the_look_of_the_family() -> None:
    """And an unknown family that of the unknown."""
    c = comparison((LATENCY, {("a", 8): [1.0], ("b", 8): [1.0]}), families={"a": "roce", "b": "tea"})
    assert figures.looks(c) == {"a": figures.LOOKS["roce"], "b": figures.LOOKS["unknown"]}
    assert set(FAMILIES) <= set(figures.LOOKS)


def test_a_hollow_marker_is_drawn_in_its_own_colour() -> None:
    """A marker that is white on white would be a missing point."""
    for n in (1, 7):
        for chart in charts(sample(n=n, families=dict.fromkeys("abc", "tcp"))):
            for trace in chart["data"]:
                if "markers" in trace["mode"]:
                    mark = trace["marker"]
                    assert not mark["symbol"].endswith("-open")
                    assert {mark["color"], mark["line"]["color"]} != {"#FFFFFF"}


def test_labels_are_text_in_every_chart() -> None:
    """Plotly reads HTML in annotations, ticks and names of traces: labels must arrive escaped."""
    for chart in charts(sample(labels={"a": HOSTILE, "b": HOSTILE + "2"}, share=47.1, limit=12.0)):
        words = [a["text"] for a in chart["layout"].get("annotations", ())] + [t["name"] for t in chart["data"]]
        words += chart["layout"].get("yaxis", {}).get("ticktext", ())
        text = "\n".join(words)
        assert not re.findall(r"<(?!/?(?:b|i|br|span)>|span style=\"color:#[0-9A-F]{6}\">)", text)
        assert "<b>bold" not in text
        assert "&lt;b&gt;" in text


@pytest.mark.parametrize("subject", [COLLECTIVE, LATENCY, BANDWIDTH], ids=lambda s: s.kind)
def test_annotations_on_log_axes_take_logarithms(subject: Any) -> None:
    """An annotation at 2^30 on a log axis would stand a billion decades to the right."""
    for chart in charts(sample(subject)):
        for note in chart["layout"].get("annotations", ()):
            for axis in ("x", "y"):
                layout = chart["layout"][f"{axis}axis"]
                if note.get(f"{axis}ref") == axis and layout.get("type") == "log":
                    low, high = layout["range"]
                    assert low - 0.01 <= note[axis] <= high + 0.01


@pytest.mark.parametrize("n", [1, 7])
@pytest.mark.parametrize("subject", [COLLECTIVE, LATENCY, BANDWIDTH], ids=lambda s: s.kind)
def test_no_trace_of_a_null(subject: Any, n: int) -> None:
    """Whatever is drawn is a finite number; charts are SVG."""
    for chart in charts(sample(subject, n=n, share=107.3, limit=12.0)):
        for trace in chart["data"]:
            assert trace["type"] == "scatter"
            assert all(isinstance(v, int | float) and math.isfinite(v) for k in ("x", "y") for v in trace[k])
            error = trace.get("error_x") or {"array": [], "arrayminus": []}
            assert all(v >= 0 for v in error["array"] + error["arrayminus"])


def test_a_median_without_an_interval_has_no_band() -> None:
    """And a band does not run across a size that has none."""
    c = sample()
    cells = [replace(x, low=None, high=None) if x.size_bytes == 1024 else x for x in c.headline.cells]
    c = replace(c, tables=(replace(c.headline, cells=tuple(cells)),))
    chart = json.loads(figures.time_chart(c, c.headline).to_json())
    bands = [t for t in chart["data"] if t.get("fill") == "toself"]
    assert len(bands) == 3
    assert all(1024 not in b["x"] and 8 not in b["x"] for b in bands)
    assert not [
        t for t in json.loads(figures.time_chart(sample(n=5), sample(n=5).headline).to_json())["data"] if t.get("fill")
    ]


def test_few_runs_are_drawn_hollow_and_thin() -> None:
    """One look tells that nothing is ranked."""
    c = sample(n=5, families={"b": "infiniband"})
    lines = [t for t in json.loads(figures.time_chart(c, c.headline).to_json())["data"] if t["mode"] == "lines"]
    assert {t["line"]["width"] for t in lines} == {1.2}


def test_a_zero_is_not_drawn_on_a_log_axis() -> None:
    """It has no place there; the others keep theirs."""
    values = {
        ("a", 8): [0.0] * 7,
        ("a", 64): around(5),
        ("a", 512): around(6),
        ("b", 64): around(4),
        ("b", 512): around(3),
    }
    c = comparison((LATENCY, values))
    chart = json.loads(figures.time_chart(c, c.headline).to_json())
    assert 8 not in {x for t in chart["data"] for x in t["x"]}


def test_a_collective_without_bus_bandwidth_has_times_on_its_cover() -> None:
    """hccl_test prints none: the picture is that of the times, and no bandwidth is drawn or made up."""
    c = sample()
    bare = replace(c.headline, cells=tuple(replace(x, busbw=None) for x in c.headline.cells))
    assert figures.has_curve(c.headline)
    assert not figures.has_curve(bare)
    assert json.loads(figures.cover_chart(c, bare).to_json())["layout"]["yaxis"]["type"] == "log"


def test_a_size_without_bus_bandwidth_leaves_the_others() -> None:
    """One run that lacks it makes that point missing, not 0."""
    c = sample()
    holed = replace(
        c.headline, cells=tuple(replace(x, busbw=None) if x.size_bytes == 1024 else x for x in c.headline.cells)
    )
    lines = [
        t
        for t in json.loads(figures.bandwidth_chart(c, holed).to_json())["data"]
        if t["mode"] == "lines" and "fill" not in t
    ]
    assert all(t["x"] == [8, 1 << 20, 1 << 30] for t in lines)


def texts(chart: Any) -> list[str]:
    return [a["text"] for a in json.loads(chart.to_json())["layout"]["annotations"]]


def test_limits_that_lie_close_keep_their_own_numbers() -> None:
    """Each has its label, one above and one below its line; equal ones share the number."""
    c = sample(limit=4.0)
    cells = [replace(x, limit_gbyte_s={"a": 4.0, "b": 4.03, "c": 4.0}[x.fabric]) for x in c.headline.cells]
    c = replace(c, tables=(replace(c.headline, cells=tuple(cells)),))
    chart = figures.bandwidth_chart(c, c.headline)
    assert [t for t in texts(chart) if t.startswith("<b>limit")] == [
        "<b>limit 4.030 GB/s</b> B", "<b>limit 4.000 GB/s</b> A, C",
    ]  # fmt: skip
    drawn = {s["y0"] for s in json.loads(chart.to_json())["layout"]["shapes"]}
    assert drawn == {4.0, 4.03}


def test_the_name_of_a_limit_touches_no_curve() -> None:
    """Where a curve runs through the left end of the line, the name stands at the right or below."""
    figure = go.Figure()
    figure.update_xaxes(range=[math.log10(8), 30 * math.log10(2)])
    room = figures._Room(figure, [[(8, 0.0), (1 << 30, 100.0)]], 100.0, 480.0, 340.0)
    assert room.free("limit 90 GB/s", 90.0, "left", "above")
    assert not room.free("limit 90 GB/s", 90.0, "right", "above")
    assert not room.free("limit 4 GB/s", 4.0, "left", "below")


def test_fabrics_of_one_family_differ_by_tint_and_marker() -> None:
    """The one with the faster link has the look of the family; the older one is lighter and hollow."""
    c = sample(families={"a": "infiniband", "b": "infiniband", "c": "roce"})
    c = replace(c, fabrics=c.fabrics.with_columns(link_rate_gbit_s=pl.Series([200.0, 400.0, 100.0])))
    found = figures.looks(c)
    assert found["b"] == figures.LOOKS["infiniband"]
    assert found["a"] == figures.LOOKS["infiniband-older"]


def test_sizes_of_one_fabric_only_are_hatched() -> None:
    """With the words for it; and no hatch where all sizes are shared."""
    sizes = [1 << k for k in range(10, 31, 4)]
    values = {("a", s): around(s / 10) for s in sizes} | {("b", s): around(s / 20) for s in sizes[-2:]}
    c = comparison((COLLECTIVE, values))
    chart = figures.time_chart(c, c.headline)
    patterns = [t.fillpattern.shape for t in chart.data if t.fillpattern.shape]
    assert patterns == ["/"]
    whole = sample()
    assert not [t for t in figures.time_chart(whole, whole.headline).data if t.fillpattern.shape]


def test_a_limit_that_is_not_one_is_not_drawn() -> None:
    """Cells of one fabric with two limits have no line."""
    c = sample(limit=4.0)
    cells = [replace(x, limit_gbyte_s=3.9) if (x.fabric, x.size_bytes) == ("b", 8) else x for x in c.headline.cells]
    c = replace(c, tables=(replace(c.headline, cells=tuple(cells)),))
    assert [t for t in texts(figures.bandwidth_chart(c, c.headline)) if t.startswith("<b>limit")] == [
        "<b>limit 4.000 GB/s</b> A, C"
    ]


def test_a_ratio_chart_says_what_is_not_decided() -> None:
    """No difference shown and too few runs stand beside their marks, and values are those of the tables."""
    c = comparison(
        (LATENCY, {("a", 8): around(10), ("b", 8): around(10), ("c", 8): around(5, 5), ("d", 8): around(20)})
    )
    rows = [("8 B", c.headline, 8)]
    found = texts(figures.ratio_chart(c, rows, no_difference="no difference", too_few="too few"))
    assert {"no difference", "too few", "<b>1 = A</b>", "<b>1/2.00</b>", "<i>1.000</i>", "<i>2.00</i>"} <= set(found)
    two = comparison((LATENCY, {("a", 8): around(10), ("d", 8): around(20)}))
    found = texts(figures.ratio_chart(two, [("8 B", two.headline, 8)], no_difference="x"))
    assert any(re.fullmatch(r"<b>1/2\.00</b> \[1/2\.\d+, 1/1\.\d+\]", t) for t in found)


@settings(deadline=None, max_examples=15, suppress_health_check=[HealthCheck.too_slow])
@given(st.lists(st.floats(1e-2, 1e9), min_size=2, max_size=5), st.integers(1, 8), st.sampled_from([LATENCY, BANDWIDTH]))
def test_any_values_can_be_drawn(values: list[float], n: int, subject: Any) -> None:
    """From nanoseconds to hours, one run or many, one size or several."""
    for sizes in ((8,), (8, 1 << 30)):
        c = comparison((subject, {("abcde"[i], s): [v] * n for i, v in enumerate(values) for s in sizes}))
        assert all(chart["layout"]["height"] > 0 for chart in charts(c))


@pytest.mark.parametrize("family", FAMILIES)
def test_the_key_of_a_family_shows_its_marker(family: str) -> None:
    """A key is whole SVG, in the colour and dash of the line."""
    from tests._comparisons import Reader

    look = figures.LOOKS[family]
    svg = figures.key_svg(look)
    assert Reader(svg).errors == []
    assert look.line in svg
    assert ("stroke-dasharray" in svg) == (look.dash != "solid")
    same = [f for f, x in figures.LOOKS.items() if x.symbol == look.symbol]
    shapes = {re.sub(r'(fill|stroke)[\w-]*="[^"]*"', "", figures.key_svg(x)) for x in figures.LOOKS.values()}
    assert same
    assert len(shapes) >= 9


def test_a_scaled_cell_keeps_what_is_missing() -> None:
    """None stays None in another unit."""
    x = Cell(fabric="a", size_bytes=8, n=1, median=2000.0, low=None, high=None, verdict="baseline")
    assert figures.scaled(x, 1000) == replace(x, median=2.0)
