"""Pages: whole HTML, no private path, nothing left out in silence, and every number of a sentence is one of a table."""

import json
import re
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from typing import Any

import polars as pl
import pytest
from hypothesis import HealthCheck, assume, given, settings
from hypothesis import strategies as st

from rdmalab.compare import Comparison
from rdmalab.display import PLACE
from rdmalab.lab import Lab
from rdmalab.pages._paper import shown_path
from rdmalab.pages.fabric_comparison import FabricComparison, _pick
from tests._comparisons import (
    BANDWIDTH,
    COLLECTIVE,
    LATENCY,
    Reader,
    around,
    blocks,
    campaign,
    comparison,
    figure_texts,
    hccl,
    iperf3,
    lab_of,
    latency,
    runs_of,
    write_bw,
)

Make = Callable[..., Lab]
SIZES = (8, 64, 4096, 65536, 1 << 20, 1 << 24, 1 << 27, 1 << 28, 1 << 29, 1 << 30, 1 << 31, 1 << 32)
TWO = campaign("tcp", "roce")
HOSTILE = '<script>alert("x")</script> & {label} <img src=x onerror=y>'


@pytest.fixture
def make(tmp_path: Path) -> Make:
    """Ingests logs beside a campaign file of the fabrics tcp and roce."""
    return lambda logs, toml=TWO: lab_of(tmp_path, logs, toml)


def pages(c: Comparison) -> list[Reader]:
    """Every page, read."""
    return [Reader(b.html) for b in blocks(FabricComparison(c))]


def words(c: Comparison) -> str:
    """All text of a report outside its charts."""
    return "\n".join(p.text for p in pages(c))


def bare(c: Comparison) -> Comparison:
    """The comparison of a tool that prints no bus bandwidth."""
    return replace(c, tables=tuple(replace(t, cells=tuple(replace(x, busbw=None) for x in t.cells)) for t in c.tables))


@st.composite
def comparisons(draw: st.DrawFn) -> Comparison:
    """Two to four fabrics, one to twelve sizes, gaps and scatters."""
    names = ("f1", "f2", "f3", "f4")[: draw(st.integers(2, 4))]
    parts = []
    for subject in draw(
        st.lists(st.sampled_from([COLLECTIVE, LATENCY, BANDWIDTH]), min_size=1, max_size=3, unique=True)
    ):
        sizes = SIZES[: draw(st.sampled_from([1, 2, 12]))]
        slopes = {f: (draw(st.sampled_from([0.5, 1.0, 3.0])), draw(st.sampled_from([-0.05, 0.0, 0.05]))) for f in names}
        n, spread = draw(st.sampled_from([1, 6, 7])), draw(st.sampled_from([0.0, 0.01, 0.4]))
        values = {
            (f, s): around(20 * (1 + s / 1e6) * k * (1 + g * i), n, spread)
            for f, (k, g) in slopes.items()
            for i, s in enumerate(sizes)
        }
        for gap in draw(st.sets(st.sampled_from(sorted(values)), max_size=4)):
            values.pop(gap)
        parts += [(subject, values)] if values else []
    assume(parts)
    share = draw(st.sampled_from([None, 47.13, 107.31]))
    c = comparison(*parts, order=names, share=share, limit=12.2547 if share else None)
    assume(c.tables)
    return c


many = settings(
    deadline=None, max_examples=12, suppress_health_check=[HealthCheck.filter_too_much, HealthCheck.too_slow]
)


@many
@given(comparisons())
def test_every_page_is_whole_for_any_data(c: Comparison) -> None:
    """Tags close in order, every chart has its place, and no text has a hole."""
    for block in blocks(FabricComparison(c)):
        page = Reader(block.html)
        assert page.errors == []
        assert sorted(int(m["index"]) for m in PLACE.finditer(block.html)) == list(range(len(block.figures)))
        assert len(block.alts) == len(block.figures)
        assert all(block.alts)
        for text in [*page.texts, figure_texts(block)]:
            assert not re.search(r"\bNone\b|\bnan\b|\binf\b|[{}]|\b1 runs\b|\be[+-]\d\d", text.replace("None.", "")), (
                text
            )


def rows_of(block: Any) -> list[int]:
    """Columns of every row of every data table of a page, spans counted."""
    return [
        sum(int(m or 1) for m in re.findall(r'<t[hd](?: class="[^"]*")?(?: scope="col")?(?: colspan="(\d+)")?>', row))
        for table in re.findall(r'<table class="data">.*?</table>', block.html)
        for row in re.findall(r"<tr[^>]*>(.*?)</tr>", table)
    ]


@many
@given(comparisons())
def test_every_row_of_a_table_has_all_its_columns(c: Comparison) -> None:
    """A missing value is a cell with words, so that no number slips under another fabric's head."""
    page = FabricComparison(c)
    for block in (page.latency(), page.throughput(), *page.point_to_point()):
        assert len(set(rows_of(block))) <= 1


def told(text: str) -> set[str]:
    """The factors of the sentences in a text."""
    found = re.findall(r"(?:is|are|faster:) ([\d., \u2009]+(?:(?:and|to) [\d.\u2009]+)?) times as fast", text)
    found += re.findall(r": ([\d.\u2009]+) times as fast", text)
    return {n.rstrip(",") for f in found for n in re.findall(r"[\d.\u2009]+", f)}


@many
@given(comparisons())
def test_every_factor_of_a_sentence_is_printed_by_a_table(c: Comparison) -> None:
    """The same digits, a slower fabric as 1/x; whichever page says it, some table or chart beside it shows it."""
    printed: set[str] = set()
    for block in blocks(FabricComparison(c)):
        cells = re.findall(r'<(?:td class="num|span class="under ratio)(?: none)?">([^<]*)<', block.html) + re.findall(
            r"<[bi]>([^<]*)</[bi]>", figure_texts(block)
        )
        printed |= {t.removeprefix("1/") for t in cells}
    assert told(words(c)) <= printed


@many
@given(comparisons())
def test_every_excluded_or_unmatched_run_is_on_the_evidence_page(c: Comparison) -> None:
    """Used, left out and unmatched add up to all."""
    title = FabricComparison(c).evidence().html
    used, total, left, alone = map(
        int, re.search(r"<h2>(\d+) of (\d+) runs .*?, (\d+) were left out, (\d+) have", title).groups()
    )  # type: ignore[union-attr]
    assert used + left + alone == total == len(c.runs)


def test_hostile_words_are_text_on_every_page(make: Make) -> None:
    """Labels, titles, customers, notes and paths from outside never become tags."""
    lab = make(
        {
            **runs_of("tcp", 2),
            **runs_of("roce", 1),
            "roce/<i>cut</i>.log": "# nccl-tests version 2\n# Collective test starting: x_perf\n",
        }
    )
    c = lab.compare()
    c = replace(
        c, campaign=c.campaign | {"title": HOSTILE, "customer": HOSTILE, "notes": [HOSTILE], "campaign": HOSTILE},
        fabrics=c.fabrics.with_columns(label=pl.Series([HOSTILE, HOSTILE + " 2"])), elsewhere={HOSTILE: 2},
    )  # fmt: skip
    for block in blocks(FabricComparison(c)):
        page = Reader(block.html)
        assert page.errors == []
        assert not {"script", "img", "i"} & set(page.tags)
        assert not re.search(r"<(script|img|i)\b", figure_texts(block))
        json.dumps(block.bundle())
    assert FabricComparison(c).header()["customer"] == HOSTILE


@pytest.mark.parametrize(
    ("path", "root", "shown"),
    [
        ("/home/alice/logs/tcp/1.log", "/home/alice/logs", "tcp/1.log"),
        ("/home/alice/logs/tcp/1.log", None, "1.log"),
        ("/home/alice/1.log", None, "1.log"),
        ("/home/alice/logs2/1.log", "/home/alice/logs", "1.log"),
        ("/home/alice/a.tar.gz!home/bob/1.log", None, "a.tar.gz!1.log"),
        ("/home/alice/logs/a.zip!x/1.log", "/home/alice/logs", "a.zip!x/1.log"),
    ],
)
def test_paths_name_no_user(path: str, root: str | None, shown: str) -> None:
    """Only what lies under the campaign file is shown, and without one only the name."""
    assert shown_path(path, root) == shown


FAMILY = ((2, "tcp", "Ethernet"), (4, "roce", "IB"))


@pytest.mark.parametrize("toml", [campaign("tcp:roce", "roce:infiniband"), None], ids=["campaign", "none"])
def test_no_page_tells_where_the_logs_lie(make: Make, tmp_path: Path, toml: str | None) -> None:
    """Not in the evidence, not in what was left out, not in the data for machines."""
    logs = {
        f"{f}/{i}.log": latency({8: k * 2.0 + i / 100}, qpn=k * 100 + i, link=w) for k, f, w in FAMILY for i in range(6)
    }
    logs |= {f"roce/{i}.json": iperf3(50 + i / 10, cookie=str(i)) for i in range(2)}
    logs["tcp/cut.log"] = latency({8: 2.0, 64: 3.0}, qpn=999).rpartition(" 64 ")[0]
    c = make(logs, toml).compare()
    page = FabricComparison(c)
    everything = words(c) + json.dumps([page.header(), page.figures_for_machines()])
    assert str(tmp_path) not in everything
    assert "/tmp/" not in everything
    assert "cut.log" in everything


def test_every_run_left_out_is_named_with_its_reason_or_counted(make: Make) -> None:
    """Cut and failed runs by their log, the other end of a test and empty servers by their number."""
    logs = {**runs_of("tcp", 2), **runs_of("roce", 1)}
    logs["roce/cut.log"] = next(iter(runs_of("cut", 3).values())).rpartition("# Out of")[0]
    logs["tcp/alone.log"] = next(iter(runs_of("tcp9", 3, operation="all_gather").values()))
    c = make(logs).compare()
    extra = c.runs.head(3).with_columns(
        run_id=pl.Series(["x", "y", "z"]),
        excluded_because=pl.Series(
            ["other end of abc-0, counted there", "other end of abd-0, counted there", "no_data"]
        ),
    )
    c = replace(c, runs=pl.concat([c.runs, extra]))
    text = Reader(FabricComparison(c).evidence().html).text
    assert "14 of 19 runs stand behind the numbers, 4 were left out, 1 have no counterpart" in text
    left = text.partition("Runs that were left out")[2]
    assert re.search(r"roce/cut\.log\n(?:\d+\n)?cut before its end", left)
    assert "2 runs\nthe other end of a test that is counted already" in left
    assert "1 run\nno result was printed" in left
    assert "tcp/alone.log" in text.partition("Runs without a counterpart")[2]


def test_a_long_list_of_runs_says_how_many_more() -> None:
    """Four hundred rows, and a sentence."""
    c = comparison((LATENCY, {("a", 8): around(4, 250), ("b", 8): around(2, 250)}))
    page = FabricComparison(c).evidence()
    assert page.html.count("<tr>") == 404
    assert "100 runs more; 'rdmalab runs' lists them all." in Reader(page.html).text


def test_every_refusal_is_printed_with_what_closes_it(make: Make) -> None:
    """On the evidence page all of them, in every configuration."""
    logs = {**runs_of("tcp", 2), **runs_of("roce", 1)}
    logs |= {f"roce/{q}.log": write_bw({65536: 90.0}, qpn=q * 64, queue_pairs=q) for q in range(1, 8)}
    c = make(logs).compare()
    text = Reader(FabricComparison(c).evidence().html).text
    for q in range(1, 8):
        assert f"RC, {q} QP" in text
    assert "In this configuration measured on ROCE only." in text
    assert "6 runs on TCP of the same test, or of one that [[same]] declares to measure the same." in text
    assert "Every measurement of this selection has a counterpart." not in words(c)


def test_more_than_four_refusals_point_to_the_evidence_page() -> None:
    """The summary has room for four."""
    c = comparison((LATENCY, {("a", 8): around(4), ("b", 8): around(2)}))
    other = comparison((LATENCY, {("a", 8): around(4), ("b", 8): around(2), ("b", 64): around(2)})).refusals[0]
    c = replace(c, refusals=(other,) * 6)
    assert "2 more on the evidence page." in Reader(FabricComparison(c).summary().html).text


def test_above_a_limit_is_never_without_a_word() -> None:
    """On every page that shows the share or the bandwidth."""
    c = comparison(
        (COLLECTIVE, {(f, s): around(k * s / 1e3) for f, k in (("a", 2), ("b", 1)) for s in (1 << 20, 1 << 24)}),
        share=107.31,
        limit=12.0,
    )
    page = FabricComparison(c)
    for block in (page.summary(), page.throughput(), page.utilization_and_ratio()):
        text = Reader(block.html).text
        assert "A stands above its limit in all-reduce" in text
        assert "B stands above its limit in all-reduce" in text
    calm = comparison((COLLECTIVE, {(f, 1 << 20): around(k) for f, k in (("a", 2), ("b", 1))}), share=100.2, limit=12.0)
    assert "Above a limit" not in words(calm)


def test_a_fallen_back_run_is_said(make: Make) -> None:
    """It is not counted as the fabric that it was meant for."""
    c = comparison(
        (LATENCY, {("a", 8): around(4), ("b", 8): around(2)}),
        excluded={"gone": "fell back to sockets: No device found"},
    )
    assert (
        "One A run fell back to sockets: No device found. It is not counted as A."
        in Reader(FabricComparison(c).summary().html).text
    )


def test_a_run_names_its_transport_only_if_its_log_does() -> None:
    """A verdict "unknown" names none."""
    c = comparison((COLLECTIVE, {("a", 8): around(4, 6), ("b", 8): around(2, 6)}))
    verdicts = ["socket", "unknown", "rdma_unspecified", "roce", None, None]
    shown = [None, None, None, None, "tcp", None]
    runs = c.runs.with_columns(transport_verdict=pl.Series(verdicts * 2), fabric_printed=pl.Series(shown * 2))
    html = FabricComparison(replace(c, runs=runs)).summary().html
    assert re.findall(
        r'<td class="text"><span class="keep">A</span></td>.*?<td class="num">([^<]*)</td></tr>', html
    ) == ["3 / 6"]


def test_a_tool_without_bus_bandwidth_has_a_report() -> None:
    """hccl_test: times and ratios, no throughput page made up."""
    values = {(f, s): around(k * 20) for f, k in (("a", 2), ("b", 1)) for s in (8, 1 << 20)}
    c = bare(comparison((COLLECTIVE, values)))
    page = FabricComparison(c)
    assert page.throughput().html == ""
    assert "Time of one all-reduce: median and interval of the runs" in page.cover().html
    assert all(Reader(b.html).errors == [] for b in blocks(page))


def test_a_bandwidth_that_one_fabric_lacks_is_said_in_its_column() -> None:
    """The numbers of the others stay under their own heads."""
    values = {(f, s): around(k * 500) for f, k in (("a", 3), ("b", 2), ("c", 1)) for s in (1 << 20, 1 << 24)}
    c = comparison((COLLECTIVE, values))
    cells = tuple(replace(x, busbw=None) if x.fabric == "b" else x for x in c.headline.cells)
    block = FabricComparison(replace(c, tables=(replace(c.headline, cells=cells),))).throughput()
    assert len(set(rows_of(block))) == 1
    row = re.search(r"<tr><td class=\"num\">1</td><td class=\"unit\">MiB</td>(.*?)</tr>", block.html)
    assert row
    assert re.findall(r">([^<]+)<", row[1])[2] == "not measured"


def test_hccl_logs_make_a_report(make: Make) -> None:
    """From logs to pages, with the operation from the command line."""
    logs = {
        f"{f}/{i}.log": hccl({8192: k * 30.0 + i / 10, 1 << 20: k * 90.0}, serial=k * 10 + i)
        for k, f in ((2, "tcp"), (1, "roce"))
        for i in range(6)
    }
    c = make(logs).compare()
    assert "hccl-test" in words(c)
    assert "type not stated" in words(c)


def test_a_selection_is_stated(make: Make) -> None:
    """A reader must know that a filter was set, and what the campaign holds besides."""
    lab = make({**runs_of("tcp", 2), **runs_of("roce", 1), **runs_of("strange", 1, runs=1)})
    text = words(lab.compare(size_max="1KiB"))
    assert "Only measurements with size_max = 1KiB were selected." in text
    assert "Unknown fabric: 1 run of this campaign, not in this comparison." in text


def test_synthetic_data_is_marked_on_the_cover() -> None:
    """And in the header that every page prints."""
    c = comparison((LATENCY, {("a", 8): around(4), ("b", 8): around(2)}))
    page = FabricComparison(replace(c, campaign=c.campaign | {"synthetic": True}))
    assert "SYNTHETIC DATA" in page.cover().html
    assert page.header()["status"] == "SYNTHETIC DATA: nothing was measured"
    assert FabricComparison(c).header()["status"] is None


def test_the_summary_names_the_baseline_of_its_own_table() -> None:
    """Which is not that of the comparison where the first fabric took no part."""
    c = comparison((LATENCY, {("b", 8): around(4), ("c", 8): around(2)}), order=("a", "b", "c"))
    assert "Baseline: B." in Reader(FabricComparison(c).summary().html).text


def test_machines_get_the_numbers_that_were_compared() -> None:
    """report.json holds null where nothing was measured."""
    c = comparison((LATENCY, {("a", 8): around(4), ("b", 8): around(2, 5), ("b", 64): around(2)}))
    found = json.loads(json.dumps(FabricComparison(c).figures_for_machines()))
    cells = {(x["fabric"], x["size_bytes"]): x for x in found["tables"][0]["cells"]}
    assert cells["b", 8]["ratio_low"] is None
    assert cells["b", 64]["ratio"] is None
    assert found["verdict"] == FabricComparison(c).w.verdict


@pytest.mark.parametrize(("count", "most", "picked"), [(3, 9, 3), (20, 9, 9), (5, 1, 1), (5, 0, 0), (10, 2, 2)])
def test_sizes_are_picked_evenly_with_both_ends(count: int, most: int, picked: int) -> None:
    """As far as there is room."""
    sizes = [2**i for i in range(count)]
    found = _pick(sizes, most)
    assert len(found) == len(set(found)) == picked
    if picked > 1:
        assert (found[0], found[-1]) == (sizes[0], sizes[-1])
