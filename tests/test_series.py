"""Like with like: what may stand in one median, what may not, and what is said about the rest."""

import re
from collections.abc import Callable, Mapping
from pathlib import Path

import polars as pl
import pytest

from rdmalab import series
from rdmalab.compare import Comparison
from rdmalab.errors import NothingToCompare, UsageError
from rdmalab.lab import Lab
from rdmalab.series import Selection, Subject
from tests._comparisons import campaign, hccl, iperf3, lab_of, latency, nccl, runs_of, ucx, write_bw

Make = Callable[..., Lab]
TWO = campaign("tcp", "roce")


@pytest.fixture
def make(tmp_path: Path) -> Make:
    """Ingests logs beside a campaign file of the fabrics tcp and roce."""
    return lambda logs, toml=TWO: lab_of(tmp_path, logs, toml)


def kinds(c: Comparison) -> set[tuple[str, tuple[str, ...]]]:
    """(reason, fabrics) of all refusals."""
    return {(r.reason, r.fabrics) for r in c.refusals}


def perftest(fabric: str, first: int, *, runs: int = 6, **how: object) -> dict[str, str]:
    """Logs of ib_write_bw of one fabric; *first* is the queue pair number of the first."""
    rates = {65536: 90.0, 1 << 20: 95.0}
    return {
        f"{fabric}/write_bw.{first}.{i}.log": write_bw({s: r + i / 100 for s, r in rates.items()}, qpn=first + i, **how)  # type: ignore[arg-type]
        for i in range(runs)
    }


@pytest.mark.parametrize(
    ("name", "other"),
    [
        ("dtype", "half"),
        ("ranks", 8),
        ("operation", "all_gather"),
        ("redop", "max"),
        ("nodes", 4),
        ("root", 3),
        ("agg", 10),
    ],
)
def test_collectives_that_differ_in_a_key_are_never_mixed(make: Make, name: str, other: object) -> None:
    """Another type, rank count, node count, operation, reduction, root or aggregation is another measurand."""
    c = make(
        {**runs_of("tcp", 2), **runs_of("roce", 1), **runs_of("roce2", 9, **{name: other})},
        campaign("tcp", "roce", "roce2:roce"),
    ).compare()
    assert {t.fabrics for t in c.tables} == {("tcp", "roce")}
    assert kinds(c) == {("one_fabric", ("roce2",))}
    same = lab_in_one_fabric(make, name, other)
    assert all(x.n == 7 for t in same.tables for x in t.cells)


def lab_in_one_fabric(make: Make, name: str, other: object) -> Comparison:
    """The same question, with the other runs among those of one of the two fabrics."""
    extra = {k.replace("roce2/", "roce/other."): v for k, v in runs_of("roce2", 9, **{name: other}).items()}  # type: ignore[arg-type]
    return make({**runs_of("tcp", 2), **runs_of("roce", 1), **extra}).compare(fabrics=["tcp", "roce"])


def test_placements_are_never_mixed(make: Make) -> None:
    """In place and out of place are two measurands of the same runs."""
    c = make({**runs_of("tcp", 2, in_place=3.0), **runs_of("roce", 1, in_place=3.0)}).compare()
    assert {t.subject.placement for t in c.tables} == {"out_of_place", "in_place"}
    medians = {t.subject.placement: t.cells[0].median for t in c.tables}
    assert medians["in_place"] == pytest.approx(3 * medians["out_of_place"], rel=1e-3)


def test_unlike_tools_of_one_collective_are_not_compared(make: Make) -> None:
    """nccl-tests on one side and hccl_test on the other is refused, although operation, ranks and sizes agree."""
    sizes = {8192: 30.0, 1 << 20: 90.0}
    logs = {f"roce/{i}.log": hccl(sizes, serial=i) for i in range(7)}
    facts = '[[facts]]\nlogs = ["roce/**"]\nranks = 8\noperation = "all_reduce"\n'
    lab = make({**runs_of("tcp", 2, tuple(sizes), ranks=8, nodes=1), **logs}, campaign("tcp", "roce", more=facts))
    points = series.points(lab, Selection(), ["tcp", "roce"])
    assert {s.tool for s, _ in series.subjects(points)} == {"nccl-tests", "hccl-test"}
    assert all(rows["fabric"].n_unique() == 1 for _, rows in series.subjects(points))


def test_a_collective_that_no_line_names_stands_beside_nothing(make: Make) -> None:
    """Two tables of unknown operation may be two operations: they are refused with the fact that closes it."""
    facts = '[[facts]]\nlogs = ["**"]\nranks = 8\n'
    sizes = {8192: 30.0, 1 << 20: 90.0}
    logs = {
        f"{f}/{i}.log": hccl(sizes, serial=10 * j + i, command="# log")
        for j, f in enumerate(("tcp", "roce"))
        for i in range(7)
    }
    lab = make({**logs, **runs_of("tcp", 2), **runs_of("roce", 1)}, campaign("tcp", "roce", more=facts))
    c = lab.compare()
    assert all(t.subject.operation for t in c.tables)
    assert ("operation", ("tcp", "roce")) in kinds(c)


def test_a_run_that_measured_a_size_in_several_cycles_counts_once(make: Make) -> None:
    """The unit is the run: its cycles are one value, their median."""
    logs = {
        f"{f}/{i}.log": nccl([(8, k * 10.0), (8, k * 12.0), (8, k * 50.0)], pid=k * 1000 + i)
        for k, f in ((1, "roce"), (2, "tcp"))
        for i in range(5)
    }
    c = make(logs).compare()
    assert {x.n for t in c.tables for x in t.cells} == {5}
    assert {x.median for x in c.headline.cells} == {12.0, 24.0}
    assert {x.verdict for x in c.headline.cells} == {"baseline", "too few runs"}


def test_messages_of_no_bytes_are_not_compared(make: Make) -> None:
    """A row of 0 bytes moves nothing, whatever its time."""
    c = make({**runs_of("tcp", 2, (0, 8)), **runs_of("roce", 1, (0, 8))}).compare()
    assert c.headline.sizes == [8]


@pytest.mark.parametrize(
    "how", [{"queue_pairs": 4}, {"connection": "UC"}, {"verb": "Read"}, {"both": True}], ids=lambda h: next(iter(h))
)
def test_point_to_point_tests_in_another_configuration_are_never_mixed(make: Make, how: dict[str, object]) -> None:
    """Queue pairs, connection, verb and direction are parts of the measurand."""
    c = make(
        {**perftest("tcp", 256), **perftest("roce", 512), **perftest("roce", 1024, **how)}, campaign("tcp:roce", "roce")
    ).compare()
    assert all(x.n == 6 for t in c.tables for x in t.cells)
    assert kinds(c) == {("one_fabric", ("roce",))}


def test_what_differs_inside_one_median_is_said(make: Make) -> None:
    """MTU and iterations are no part of the measurand: they are residue, also where one fabric only varies."""
    c = make(
        {**perftest("tcp", 256), **perftest("roce", 512, mtu=1024), **perftest("roce", 1024, iterations=100)},
        campaign("tcp:roce", "roce"),
    ).compare()
    assert c.headline.residue["mtu_bytes"] == {"roce": [1024, 4096], "tcp": [4096]}
    assert c.headline.residue["iterations"] == {"roce": [100, 5000], "tcp": [5000]}


def test_a_gid_index_belongs_to_its_fabric() -> None:
    """It is residue only where it varies inside one."""
    assert "gid_index" in series.FABRIC_BOUND
    assert "gid_index" in series.RESIDUE


def test_residue_counts_the_sizes_that_are_compared(make: Make) -> None:
    """What differs at a size that one fabric alone measured does not concern any ratio."""
    alone = {"roce/alone.log": write_bw({8: 1.0}, qpn=2000, mtu=256)}
    c = make({**perftest("tcp", 256), **perftest("roce", 512), **alone}, campaign("tcp:roce", "roce")).compare()
    assert c.headline.residue == {}


def test_one_way_latency_is_never_set_against_a_round_trip(make: Make) -> None:
    """A declaration does not help: the conventions clash, and that is what is said."""
    logs = {f"tcp/{i}.log": latency({8: 4.0 + i / 100}, qpn=256 + i, verb="Read") for i in range(6)}
    logs |= {f"roce/{i}.log": latency({8: 2.0 + i / 100}, qpn=512 + i) for i in range(6)}
    logs |= runs_of("tcp", 2) | runs_of("roce", 1)
    same = '[[same]]\nmeasures = "latency"\ntests = ["ib_read_lat", "ib_write_lat"]\n'
    c = make(logs, campaign("tcp:roce", "roce", more=same)).compare()
    assert {t.subject.kind for t in c.tables} == {"collective"}
    assert kinds(c) == {("clash", ("tcp",)), ("clash", ("roce",))}


def test_a_latency_of_unknown_convention_stands_beside_nothing(make: Make) -> None:
    """The client of ucx_perftest names no test: one way and round trip print the same table."""
    logs = {f"{f}/{i}.log": ucx(k * 20.0 + i / 10) for k, f in ((1, "roce"), (2, "tcp")) for i in range(6)}
    c = make({**logs, **runs_of("tcp", 2), **runs_of("roce", 1)}).compare()
    assert kinds(c) == {("test", ("tcp", "roce"))}


SAME = '[[same]]\nmeasures = "bandwidth"\ntests = ["ib_write_bw", "iperf3"]\nsize_bytes = 65536\n'


def streams(runs: int = 6, **how: object) -> dict[str, str]:
    """iperf3 documents of the fabric tcp."""
    name = "-".join(f"{k}{v}" for k, v in how.items()) or "plain"
    return {f"tcp/{name}.{i}.json": iperf3(50 + i / 100, cookie=f"{name}{i}", **how) for i in range(runs)}  # type: ignore[arg-type]


def test_unlike_tools_are_compared_only_where_the_campaign_file_declares_it(make: Make) -> None:
    """Without [[same]] a byte stream has no counterpart; with it it stands beside the stated size."""
    logs = {**streams(), **perftest("roce", 512), **runs_of("tcp", 2), **runs_of("roce", 1)}
    assert kinds(make(logs).compare()) == {("one_fabric", ("tcp",)), ("one_fabric", ("roce",))}


def test_a_declared_stream_stands_beside_the_stated_size_only(make: Make) -> None:
    """And the other sizes of the other test are refused by name."""
    c = make({**streams(), **perftest("roce", 512)}, campaign("tcp", "roce", more=SAME)).compare()
    assert c.headline.subject.tests == (("tcp", "iperf3"), ("roce", "ib_write_bw"))
    assert c.headline.compared_sizes == [65536]
    assert [(r.reason, r.fabrics, r.sizes) for r in c.refusals] == [("sizes", ("roce",), (1 << 20,))]


@pytest.mark.parametrize(
    "how", [{"protocol": "UDP"}, {"streams": 4}, {"reverse": True}, {"server": True}], ids=lambda h: next(iter(h))
)
def test_a_declared_group_takes_one_configuration_a_test(make: Make, how: dict[str, object]) -> None:
    """UDP, more streams, the reverse direction and the server's own log do not enter the median of the plain runs."""
    c = make({**streams(), **streams(3, **how), **perftest("roce", 512)}, campaign("tcp", "roce", more=SAME)).compare()
    assert [x.n for x in c.headline.cells if x.size_bytes == 65536] == [6, 6]
    assert ("one_fabric", ("tcp",)) in kinds(c)


def test_ends_of_perftest_without_addresses_are_not_mixed(make: Make) -> None:
    """Nothing tells which client belongs to which server: the two ends of six tests are not twelve runs."""
    both = {
        f"{f}/{end}.{i}.log": re.sub(
            r" (local|remote) address.*\n|  ?GID:.*\n", "", text.replace("5000", str(5000 + n + first))
        )
        for f, first in (("tcp", 256), ("roce", 512))
        for n, end in enumerate(("client", "server"))
        for i, text in enumerate(perftest(f, first).values())
    }
    both = {k: v.replace(" TX depth        : 128\n", "") if "/server" in k else v for k, v in both.items()}
    c = make(both, campaign("tcp:roce", "roce")).compare()
    assert {x.n for t in c.tables for x in t.cells} == {6}


def test_a_declared_group_prefers_the_configuration_that_most_fabrics_share(make: Make) -> None:
    """Two fabrics with the same test stand in a declared group in the same configuration, or one stays out."""
    logs = {
        **streams(),
        **perftest("roce", 512, queue_pairs=4, runs=8),
        **perftest("roce", 1024),
        **perftest("ib", 2048),
    }
    c = make(logs, campaign("tcp", "roce", "ib:roce", more=SAME)).compare()
    table = c.headline
    assert table.fabrics == ("tcp", "roce", "ib")
    assert set(table.points.filter(table.points["test"] == "ib_write_bw")["queue_pairs"]) == {1}


def test_both_directions_of_one_iperf3_invocation_are_one_run(make: Make) -> None:
    """Three invocations are three runs, not six, and their rates are added like those of perftest -b."""
    logs = {f"tcp/{i}.json": iperf3(40.0, cookie=f"t{i}", back=30.0 + i) for i in range(3)}
    logs |= {f"roce/{i}.json": iperf3(60.0, cookie=f"r{i}", back=50.0 + i) for i in range(3)}
    c = make(logs, campaign("tcp", "roce:tcp")).compare()
    assert [(x.n, x.median, x.verdict) for x in c.headline.cells] == [(3, 71.0, "baseline"), (3, 111.0, "too few runs")]
    assert sorted(c.runs["excluded_because"].is_not_null()) == [False] * 6 + [True] * 6


def test_bidirectional_and_unidirectional_are_never_declared_the_same(make: Make) -> None:
    """A declared group holds tests in one direction."""
    c = make(
        {**streams(), **perftest("roce", 512), **perftest("roce", 1024, both=True, runs=9)},
        campaign("tcp", "roce", more=SAME),
    ).compare()
    assert not set(c.headline.points["bidirectional"]) & {True}


def test_what_prints_no_value_is_refused_not_forgotten() -> None:
    """Message rates and rows without the metric come back from the split, to be told."""
    from tests._comparisons import LATENCY, points_of

    frame = points_of(LATENCY, {("a", 8): [1.0, 2.0]})
    nulls = frame.with_columns(lat_typical_us=frame["lat_typical_us"] * None)
    assert series.subjects(nulls) == []
    ((subject, rows),) = series.without_value(nulls)
    assert (subject, len(rows)) == (LATENCY, 2)


def test_fabrics_are_listed_once_and_the_baseline_first(make: Make) -> None:
    """Names given twice count once; an unknown one is told with what there is."""
    lab = make({**runs_of("tcp", 2), **runs_of("roce", 1)})
    assert series.fabrics_of(lab, Selection(fabrics=["roce", "roce", "tcp"], baseline="tcp"))["fabric"].to_list() == [
        "tcp",
        "roce",
    ]
    assert series.fabrics_of(lab, Selection(fabrics="roce, tcp"))["fabric"].to_list() == ["roce", "tcp"]  # type: ignore[arg-type]
    for wrong in ({"fabrics": ["rocev2", "tcp"]}, {"baseline": "rocev2"}):
        with pytest.raises(
            UsageError,
            match=r"no run of a fabric 'rocev2' in campaign 'test'; it has: tcp, roce\. Did you mean 'roce'\?",
        ):
            lab.compare(**wrong)  # type: ignore[arg-type]


@pytest.mark.parametrize(
    ("stated", "shown"),
    [
        ((None, None), ["TCP", "RoCE"]),
        (("", "  "), ["TCP", "RoCE"]),
        (("Net", "Net"), ["Net (tcp)", "Net (roce)"]),
        (("a\n b\tc", "d"), ["a b c", "d"]),
    ],
)
def test_labels_are_never_empty_and_no_two_alike(stated: tuple[str | None, str | None], shown: list[str]) -> None:
    """A sentence that says "TCP is faster than TCP" helps nobody."""
    assert series._labels(["tcp", "roce"], list(stated)) == shown


@pytest.mark.parametrize(("name", "value"), [("size_min", "8 apples"), ("size_max", "x")])
def test_a_size_that_is_none_is_a_usage_error(make: Make, name: str, value: str) -> None:
    """The message names the parameters and shows what they want."""
    lab = make({**runs_of("tcp", 2), **runs_of("roce", 1)})
    with pytest.raises(UsageError, match="size_min and size_max want a size like"):
        lab.compare(**{name: value})


def test_sizes_are_included_at_both_ends(make: Make) -> None:
    """1KiB to 1 MiB has both."""
    lab = make({**runs_of("tcp", 2), **runs_of("roce", 1)})
    assert lab.compare(size_min="1KiB", size_max="1 MiB").headline.sizes == [1024, 1 << 20]
    assert lab.compare(size_max=8).headline.sizes == [8]


def test_parameters_that_are_empty_count_as_not_given() -> None:
    """Notebooks pass empty texts, lists and 0."""
    assert Selection(campaign="", fabrics=[], ranks=0, size_min="") == Selection()
    assert Selection(ranks=16, size_min="8").filters == {"ranks": "16", "size_min": "8"}


@pytest.mark.parametrize(
    ("subject", "unknown"),
    [
        (Subject(kind="collective"), "operation"),
        (Subject(kind="collective", operation="all_reduce"), None),
        (Subject(kind="latency", test="ib_write_lat"), "convention"),
        (Subject(kind="latency", test="ib_write_lat", latency_convention="one_way"), None),
        (Subject(kind="bandwidth", test="ucx_perftest"), "test"),
        (Subject(kind="bandwidth", test="iperf3"), None),
    ],
)
def test_a_subject_knows_what_its_logs_leave_open(subject: Subject, unknown: str | None) -> None:
    """An operation, a test or a convention that is not known may be another one on the other side."""
    assert subject.unknown == unknown


def test_other_fabrics_of_the_campaign_are_counted(make: Make) -> None:
    """Runs that no fabric claims, fabrics that were not selected, and fabrics without a run are all told."""
    logs: Mapping[str, str] = {**runs_of("tcp", 2), **runs_of("roce", 1), **runs_of("strange", 5, runs=2)}
    lab = make(logs, campaign("tcp", "roce", "ib:infiniband"))
    assert lab.compare().elsewhere == {"IB": 0, "Unknown fabric": 2}
    assert lab.compare(fabrics=["tcp", "unknown"]).elsewhere == {"IB": 0, "ROCE": 7}


def test_node_counts_differ_only_where_no_two_fabrics_share_one(make: Make) -> None:
    """The same ranks inside a node and between nodes: a table of its own, which says that the nodes differ."""
    inside, between = runs_of("nvl", 1, ranks=8, nodes=1), runs_of("roce", 2, ranks=8, nodes=2)
    c = make({**inside, **between}, campaign("nvl:nvlink", "roce")).compare()
    assert {t.subject.across_nodes for t in c.tables} == {True}
    assert c.refusals == ()


def test_a_shared_node_count_is_compared_alone(make: Make) -> None:
    """Two fabrics between the same nodes are like with like; the third, inside a node, is refused."""
    logs = {**runs_of("tcp", 3, ranks=8), **runs_of("roce", 2, ranks=8), **runs_of("nvl", 1, ranks=8, nodes=1)}
    c = make(logs, campaign("tcp", "roce", "nvl:nvlink")).compare()
    assert {t.fabrics for t in c.tables} == {("tcp", "roce")}
    assert kinds(c) == {("one_fabric", ("nvl",))}


def _nodes_frame(nodes: dict[str, int]) -> pl.DataFrame:
    """One all_reduce run of 8 ranks a fabric, on the given numbers of nodes."""
    rows = [
        {
            "fabric": fabric, "kind": "collective", "tool": "nccl-tests", "operation": "all_reduce", "dtype": "float",
            "redop": "sum", "root": None, "ranks": 8, "communicator_ranks": None, "nodes": count,
            "placement": "out_of_place", "aggregated_iterations": None, "run_id": f"{fabric}-0", "time_us": 10.0,
        }
        for fabric, count in nodes.items()
    ]  # fmt: skip
    return pl.DataFrame(rows)


def test_inside_a_node_stands_beside_the_network() -> None:
    """Eight ranks on one node against eight ranks on two: the nodes are no part of the measurand, and are said."""
    found = series.across_nodes(_nodes_frame({"nvlink": 1, "network": 2}), ["nvlink", "network"])
    assert [(s.ranks, s.nodes, s.across_nodes) for s, _ in found] == [(8, None, True)]
    assert sorted(found[0][1]["fabric"]) == ["network", "nvlink"]


def test_two_networks_on_unlike_nodes_are_not_compared() -> None:
    """Two nodes of four against four nodes of two is another test."""
    assert series.across_nodes(_nodes_frame({"roce": 2, "ib": 4}), ["roce", "ib"]) == []


def test_shared_nodes_need_no_crossing() -> None:
    """Where both fabrics have runs on two nodes, these are compared and no others."""
    assert series.across_nodes(_nodes_frame({"roce": 2, "ib": 2}), ["roce", "ib"]) == []


# Refused, with the field that differs


@pytest.mark.parametrize(
    ("here", "there", "field", "says"),
    [
        ({"ranks": 16}, {"ranks": 8}, "ranks", ("ranks 16 against 8", "ranks 8 against 16")),
        ({"dtype": "float"}, {"dtype": "half"}, "dtype", ("dtype float against half", "dtype half against float")),
        ({"nodes": 2}, {"nodes": 4}, "nodes", ("nodes 2 against 4", "nodes 4 against 2")),
        ({"redop": "sum"}, {"redop": "max"}, "redop", ("redop sum against max", "redop max against sum")),
    ],
)
def test_a_refusal_names_the_field_that_differs(
    make: Make, here: dict[str, object], there: dict[str, object], field: str, says: tuple[str, str]
) -> None:
    """Three fabrics, of which two agree: the third is refused with the field and both values; so is a pair alone."""
    logs = {**runs_of("roce", 2, **here), **runs_of("roce2", 1, **there)}  # type: ignore[arg-type]
    c = make({**runs_of("tcp", 2, **here), **logs}, campaign("tcp", "roce", "roce2:roce")).compare()  # type: ignore[arg-type]
    (refused,) = [r for r in c.refusals if r.fabrics == ("roce2",)]
    assert (refused.reason, [d.field for d in refused.differs]) == ("one_fabric", [field])
    assert str(refused) == f"one_fabric ({says[1]})"
    with pytest.raises(NothingToCompare, match=rf"what differs: all_reduce: {says[0]}\)"):
        c_of(make, logs)


def c_of(make: Make, logs: dict[str, str]) -> Comparison:
    """The comparison of two fabrics that share nothing, in a campaign of their own."""
    toml = campaign("roce", "roce2:roce").replace('name = "test"', 'name = "pair"')
    lab = make({f"pair/{k}": v for k, v in logs.items()} | {"pair/rdmalab.toml": toml})
    return lab.compare(campaign="pair")


def test_latencies_of_unlike_conventions_are_refused(make: Make) -> None:
    """ib_write_lat prints half the round trip, ib_read_lat all of it: refused, and the convention is named."""
    logs = {f"tcp/{i}.log": latency({8: 2.0}, qpn=256 + i) for i in range(6)}
    logs |= {f"roce/{i}.log": latency({8: 2.0}, qpn=512 + i, verb="Read") for i in range(6)}
    with pytest.raises(NothingToCompare, match="latency_convention one_way against round_trip"):
        make(logs, campaign("tcp:roce", "roce")).compare()


def test_in_place_against_out_of_place_is_refused(make: Make) -> None:
    """A selection of one placement shows the other nowhere; a measurand that only differs in it says so."""
    a = Subject(kind="collective", operation="all_reduce", ranks=8, placement="in_place")
    b = Subject(kind="collective", operation="all_reduce", ranks=8, placement="out_of_place")
    assert series.differing(a, [b]) == (series.Difference("placement", "in_place", "out_of_place"),)
    c = make({**runs_of("tcp", 2, in_place=0.5), **runs_of("roce", 1, in_place=2.0)}).compare()
    ratios = {(t.subject.placement, x.ratio) for t in c.tables for x in t.cells if x.ratio}
    assert {(p, round(r, 2)) for p, r in ratios} == {("out_of_place", 2.0), ("in_place", 0.5)}


def test_far_measurands_explain_nothing() -> None:
    """Another operation, or more than two fields: the refusal names no field."""
    a = Subject(kind="collective", operation="all_reduce", ranks=8, nodes=1, dtype="float")
    far = [
        Subject(kind="collective", operation="all_gather", ranks=8, nodes=1, dtype="float"),
        Subject(kind="collective", operation="all_reduce", ranks=4, nodes=2, dtype="half"),
    ]
    assert series.differing(a, far) == ()
    near = Subject(kind="collective", operation="all_reduce", ranks=8)
    told = [str(d) for d in series.differing(a, [*far, near])]
    assert told == ["dtype float against not stated", "nodes 1 against not stated"]


def test_equal_distributions_show_no_difference(make: Make) -> None:
    """The same seven times on both sides, in another order: no size of either placement shows a difference."""
    c = make({**runs_of("tcp", 1), **runs_of("roce", 1)}).compare()
    cells = [x for t in c.tables for x in t.cells if x.fabric == "roce"]
    assert len(cells) == 6
    assert {x.verdict for x in cells} == {"no difference shown"}
    assert all(x.ratio == pytest.approx(1) and x.ratio_low < 1 < x.ratio_high for x in cells)  # type: ignore[operator]
