"""The numbers of the workbench are those of a comparison, aggregated in the store."""

from pathlib import Path

import pytest

from rdmalab import stats
from rdmalab.explore import Exploration, View
from rdmalab.lab import Lab
from rdmalab.series import Difference
from tests._comparisons import campaign, iperf3, lab_of, latency, nccl, runs_of

MIB = 1 << 20


def view_of(e: Exploration, test: int = 0, variant: int = 0, **how: object) -> View:
    """A view of all fabrics, the first the baseline."""
    names = tuple(e.fabrics["fabric"])
    return View(subject=e.subjects(e.tests[test])[variant], fabrics=names, baseline=names[0], **how)  # type: ignore[arg-type]


@pytest.fixture
def two(tmp_path: Path) -> Lab:
    """Seven runs of two fabrics, RoCE half the time of TCP; two latencies of RoCE; one run that was cut."""
    logs = runs_of("tcp", 2.0) | runs_of("roce", 1.0)
    logs |= {f"roce/lat.{i}.log": latency({8: 2.0 + i / 100, 64: 2.5}, qpn=100 + i) for i in range(2)}
    logs["tcp/cut.log"] = (
        logs["tcp/all_reduce.float.16.0.log"].partition("# Out of bounds")[0].replace("Pid ", "Pid  9")
    )
    return lab_of(tmp_path, logs, campaign("tcp", "roce"))


def test_every_cell_is_that_of_a_comparison(two: Lab) -> None:
    """Median, interval, count, bus bandwidth, utilization, limit and ratio of every table, by both ways."""
    comparison = two.compare()
    e = Exploration(two)
    for table in comparison.tables:
        view = View(subject=table.subject, fabrics=table.fabrics, baseline=table.baseline)
        mine, ratios = e.table(view, "busbw_gbyte_s", "utilization_pct"), e.compared(view)
        assert ratios
        assert len(mine.cells) == len(table.cells) > 0
        for theirs in table.cells:
            cell = mine.cell(theirs.fabric, theirs.size_bytes)
            assert cell
            assert (cell.n, cell.median, cell.low, cell.high) == (theirs.n, theirs.median, theirs.low, theirs.high)
            assert (cell.limit_gbyte_s, cell.limit_formula) == (theirs.limit_gbyte_s, theirs.limit_formula)
            for one, other in ((cell.busbw, theirs.busbw), (cell.utilization, theirs.utilization)):
                assert one
                assert other
                assert (one.median, one.low, one.high) == pytest.approx((other.median, other.low, other.high))
            ratio = ratios.cell(theirs.fabric, theirs.size_bytes)
            assert ratio
            assert (ratio.ratio, ratio.ratio_low, ratio.verdict) == (theirs.ratio, theirs.ratio_low, theirs.verdict)
        assert mine.residue == table.residue


def test_the_printed_query_gives_the_numbers_of_the_chart(two: Lab) -> None:
    """1 MiB: 20 + 104.8576 = 124.86 us on RoCE, twice that on TCP; and every other cell likewise."""
    e = Exploration(two)
    view = view_of(e)
    rows = two.sql(e.sql(view)).rows()
    assert [(f, s, n, round(v, 2)) for f, s, n, v in rows if s == MIB] == [
        ("roce", MIB, 7, 124.86),
        ("tcp", MIB, 7, 249.72),
    ]
    assert {(f, s): (n, v) for f, s, n, v in rows} == {
        (c.fabric, c.size_bytes): (c.n, c.median) for c in e.table(view).cells
    }
    busbw = two.sql(e.sql(view, "busbw_gbyte_s")).rows()
    cells = e.table(view, "busbw_gbyte_s").cells
    assert {(f, s): v for f, s, _, v in busbw} == {(c.fabric, c.size_bytes): c.busbw.median for c in cells if c.busbw}


def test_sizes_narrow_a_view_with_both_ends(two: Lab) -> None:
    """From 1 KiB to 1 KiB is one size."""
    e = Exploration(two)
    view = view_of(e, size_min=1024, size_max=1024)
    assert {c.size_bytes for c in e.table(view).cells} == {1024}
    assert two.sql(e.sql(view))["size_bytes"].unique().to_list() == [1024]
    assert e.count(view) == 14


def test_what_is_left_out_is_counted_with_its_reason(two: Lab) -> None:
    """The cut run of TCP is in the table of runs, and in no median."""
    e = Exploration(two)
    assert e.left_out(view_of(e)) == {"truncated": 1}
    runs = e.runs(view_of(e))
    assert (len(runs), runs["left_out_because"].drop_nulls().to_list()) == (15, ["truncated"])


def test_a_fabric_that_measured_something_else_says_in_what(tmp_path: Path) -> None:
    """Eight ranks are no sixteen; a fabric without the test has nothing near."""
    logs = runs_of("tcp", 2.0) | runs_of("roce", 1.0) | runs_of("nvlink", 0.1, ranks=8, nodes=1)
    e = Exploration(lab_of(tmp_path, logs, campaign("tcp", "roce", "nvlink")))
    subject = e.subjects(e.tests[0])[0]
    assert e.measured(subject) == {"tcp": 7, "roce": 7, "nvlink": 0}
    assert e.instead(subject, "nvlink") == Difference("ranks", 16, 8)


def test_cycles_of_one_run_and_both_directions_of_one_invocation_count_once(tmp_path: Path) -> None:
    """A run that measured 1 KiB three times counts with its median; 40 + 31 Gb/s in both directions are 71."""
    logs = {
        f"{f}/{i}.log": nccl([(1024, 10.0), (1024, 30.0), (1024, 20.0 + i)], pid=1 + i + 100 * k)
        for k, f in enumerate(("tcp", "roce"))
        for i in range(3)
    }
    logs |= {f"tcp/{i}.json": iperf3(40.0, cookie=f"t{i}", back=30.0 + i) for i in range(3)}
    lab = lab_of(tmp_path, logs, campaign("tcp", "roce"))
    e = Exploration(lab)
    found = {t.tool or t.test: (t, view_of(e, i)) for i, t in enumerate(e.tests)}
    cycles, both = found["nccl-tests"][1], found["iperf3"][1]
    assert [(c.n, c.median) for c in e.table(cycles).cells] == [(3, 21.0), (3, 21.0)]
    assert [(c.n, c.median) for c in e.table(both).cells] == [(3, 71.0)]
    for view in (cycles, both):
        assert lab.sql(e.sql(view)).select("runs", view.subject.metric).rows() == [
            (c.n, c.median) for c in sorted(e.table(view).cells, key=lambda c: c.fabric)
        ]


def test_the_lines_of_a_value_are_those_of_its_log(two: Lab) -> None:
    """The row of 1 MiB stands in the middle of what is quoted; a log that changed is not quoted."""
    e = Exploration(two)
    row = e.values(view_of(e), MIB).row(0, named=True)
    lines = e.lines(row["run_id"], MIB)
    assert lines[0] == f"{row['path']}:"
    assert any(line.split()[:2] == [str(row["line"]), str(MIB)] for line in lines[1:])
    Path(row["path"]).write_text("other", encoding="utf-8")
    assert e.lines(row["run_id"], MIB) == [
        f"{row['path']}: the log has changed since it was read; its lines are not shown"
    ]


def test_a_view_becomes_the_parameters_of_a_report(two: Lab) -> None:
    """The names are those of every report; a point-to-point test has no filter but sizes."""
    e = Exploration(two)
    assert view_of(e, size_max=MIB).parameters("test") == {
        "campaign": "test", "fabrics": ["tcp", "roce"], "baseline": "tcp", "operation": "all_reduce", "dtype": "float",
        "ranks": 16, "placement": "out_of_place", "size_max": MIB,
    }  # fmt: skip
    assert view_of(e, test=1).parameters("test") == {"campaign": "test", "fabrics": ["tcp", "roce"], "baseline": "tcp"}


def test_quotes_in_names_are_no_sql(tmp_path: Path) -> None:
    """A fabric called o'neill is looked at like any other."""
    logs = runs_of("o'neill", 2.0) | runs_of("roce", 1.0)
    e = Exploration(lab_of(tmp_path, logs, campaign("o'neill:tcp", "roce")))
    assert len(e.table(view_of(e)).cells) == 6
    assert len(e.lab.sql(e.sql(view_of(e)))) == 6


@pytest.mark.parametrize(("n", "rank"), [(5, 0), (6, 1), (8, 1), (9, 2), (15, 4), (100, 40)])
def test_the_rank_of_a_median_interval_is_that_of_the_tables(n: int, rank: int) -> None:
    """Ranks of the sign test, Hollander & Wolfe, Nonparametric Statistical Methods, table A.2 halves."""
    assert stats.median_rank(n) == rank


def test_the_interval_of_very_many_values_is_found_at_once() -> None:
    """At n = 2,001 counting gives way to the normal distribution: 1000.5 - 1.96 x 22.37 = 956.7."""
    assert stats.median_rank(2_001) == pytest.approx(1000.5 - 1.96 * 2001**0.5 / 2, abs=1)
    assert stats.median_rank(2_000) == pytest.approx(1000.0 - 1.96 * 2000**0.5 / 2, abs=1)
