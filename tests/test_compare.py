"""Medians, ratios and verdicts over runs; and nothing that was measured gets lost."""

from collections.abc import Callable
from pathlib import Path

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from rdmalab import stats
from rdmalab.compare import BASELINE, FASTER, MIN_RUNS, NO_DIFFERENCE, NOT_MEASURED, SLOWER, TOO_FEW, Comparison
from rdmalab.errors import NothingToCompare, UsageError
from rdmalab.lab import Lab
from rdmalab.pages.fabric_comparison import FabricComparison
from tests._comparisons import (
    BANDWIDTH,
    COLLECTIVE,
    LATENCY,
    SEVEN,
    around,
    campaign,
    comparison,
    hccl,
    iperf3,
    lab_of,
    latency,
    nccl,
    runs_of,
    ucx,
    write_bw,
)
from tests.conftest import Bench, nccl_log

Make = Callable[..., Lab]
TWO = campaign("tcp", "roce")

runs = st.lists(st.floats(0.01, 1e5).map(lambda x: round(x, 2)), min_size=1, max_size=9)
tables = st.dictionaries(
    st.tuples(st.sampled_from("abcde"), st.sampled_from([8, 64, 1024, 1 << 20])), runs, min_size=4, max_size=16
)


@pytest.fixture
def make(tmp_path: Path) -> Make:
    """Ingests logs beside a campaign file of the fabrics tcp and roce."""
    return lambda logs, toml=TWO: lab_of(tmp_path, logs, toml)


def test_a_ratio_is_a_speed_up_for_times_and_for_bandwidths() -> None:
    """Half the time and twice the bandwidth are both 2 times as fast."""
    times = comparison((LATENCY, {("a", 8): around(4), ("b", 8): around(2)})).headline.cell("b", 8)
    rates = comparison((BANDWIDTH, {("a", 8): around(20), ("b", 8): around(40)})).headline.cell("b", 8)
    assert times
    assert rates
    assert times.ratio == pytest.approx(2, rel=0.01)
    assert rates.ratio == pytest.approx(2, rel=0.01)
    assert (times.verdict, rates.verdict) == (FASTER, FASTER)


BASE = (10.0, 20.0, 40.0, 80.0, 160.0, 320.0)


def test_paired_runs_are_set_against_their_partners_only() -> None:
    """Every run halves the time of its partner: 2 to the digit when paired (p = 2 / 2^6), undecided when not."""
    half = tuple(t / 2 for t in BASE)
    cells = [
        comparison((LATENCY, {("a", 8): BASE, ("b", 8): half}), paired=paired).headline.cell("b", 8)
        for paired in (True, False)
    ]
    assert cells[0]
    assert cells[1]
    assert (cells[0].verdict, cells[0].pairs) == (FASTER, 6)
    assert (cells[0].ratio, cells[0].ratio_low, cells[0].ratio_high) == (2, 2, 2)
    assert cells[0].p_value == pytest.approx(2 / 2**6)
    assert (cells[1].verdict, cells[1].pairs) == (NO_DIFFERENCE, None)


def test_a_run_without_a_partner_is_in_no_pair() -> None:
    """Seven runs against six: the medians are of all runs, the ratio of the six pairs; five pairs win nothing."""
    values = {("a", 8): (*BASE, 5.0), ("b", 8): tuple(t / 2 for t in BASE)}
    cell = comparison((LATENCY, values), paired=True).headline.cell("b", 8)
    assert cell
    assert (cell.pairs, cell.verdict) == (6, FASTER)
    values["b", 8] = (None, *(t / 2 for t in BASE[1:]))  # type: ignore[assignment]
    few = comparison((LATENCY, values), paired=True).headline.cell("b", 8)
    assert few
    assert (few.pairs, few.ratio, few.verdict) == (5, 2, TOO_FEW)


def test_runs_that_should_be_paired_and_are_not_are_refused() -> None:
    """At 64 B no pair is whole: said, with the fabrics and the size, instead of an unpaired ratio."""
    values = {
        ("a", 8): BASE, ("b", 8): BASE,
        ("a", 64): (*BASE, *[None] * 6), ("b", 64): (*[None] * 6, *BASE),
    }  # fmt: skip
    made = comparison((LATENCY, values), paired=True)
    assert [(r.reason, r.fabrics, r.sizes) for r in made.refusals] == [("unpaired", ("a", "b"), (64,))]


def test_p_values_are_adjusted_for_the_sizes_of_a_table() -> None:
    """
    Six against six, fully apart: p = 2 / 924 at 8 B and 64 B; at 1 KiB the same values on both sides: p = 1.

    Holm: the two smallest times 3 and 2, never below the one before: 3 x 2 / 924 both.
    """
    six = around(10)[:6]
    apart = tuple(v / 2 for v in six)
    values = {(f, s): apart if f == "b" and s < 1024 else six for f in "ab" for s in (8, 64, 1024)}
    cells = comparison((LATENCY, values)).headline.of("b")
    assert [x.p_value for x in cells] == pytest.approx([2 / 924, 2 / 924, 1])
    assert [x.p_holm for x in cells] == pytest.approx([6 / 924, 6 / 924, 1])


@pytest.mark.parametrize(("n", "m"), [(5, 7), (7, 5), (1, 1), (5, 5)])
def test_five_runs_on_a_side_win_nothing(n: int, m: int) -> None:
    """However large the difference, there is no interval and no rank."""
    c = comparison((LATENCY, {("a", 8): around(100, n), ("b", 8): around(1, m)}))
    cell = c.headline.cell("b", 8)
    assert cell
    assert (cell.verdict, cell.ratio_low, cell.ratio_high) == (TOO_FEW, None, None)
    for fabric, count in (("a", n), ("b", m)):
        x = c.headline.cell(fabric, 8)
        assert x
        assert (x.low is None) == (count < MIN_RUNS)


@pytest.mark.parametrize(("factor", "verdict"), [(2.0, FASTER), (0.5, SLOWER), (1.0, NO_DIFFERENCE)])
def test_six_runs_a_side_decide(factor: float, verdict: str) -> None:
    """Six runs that do not overlap are the least that can be told apart."""
    c = comparison((LATENCY, {("a", 8): around(10 * factor, 6), ("b", 8): around(10, 6)}))
    assert [x.verdict for x in c.headline.cells] == [BASELINE, verdict]


def test_runs_that_are_all_alike_show_no_difference_to_their_like() -> None:
    """A tool that prints one number six times gives the interval [1, 1], which contains 1."""
    cell = comparison((LATENCY, {("a", 8): [2.06] * 7, ("b", 8): [2.06] * 7})).headline.cell("b", 8)
    assert cell
    assert (cell.verdict, cell.ratio, cell.ratio_low, cell.ratio_high) == (NO_DIFFERENCE, 1, 1, 1)


@settings(deadline=None, max_examples=60)
@given(tables)
def test_every_verdict_follows_from_its_interval(values: dict[tuple[str, int], list[float]]) -> None:
    """Faster and slower need an interval that excludes 1 and six runs a side; the estimate lies inside it."""
    for table in comparison((LATENCY, values)).tables:
        for x in table.cells:
            base = table.cell(table.baseline, x.size_bytes)
            assert x.median == stats.median(values[x.fabric, x.size_bytes])  # type: ignore[index]
            assert x.n == len(x.run_ids) == len(values[x.fabric, x.size_bytes])  # type: ignore[index]
            if x.fabric == table.baseline or base is None:
                assert x.verdict == (BASELINE if x.fabric == table.baseline else NOT_MEASURED)
                assert x.ratio is None
            elif min(x.n, base.n) < MIN_RUNS:
                assert x.verdict == TOO_FEW
                assert x.ratio_low is None
            else:
                assert x.ratio_low is not None
                assert x.ratio_high is not None
                assert x.ratio is not None
                assert x.ratio_low <= x.ratio <= x.ratio_high
                expected = FASTER if x.ratio_low > 1 else SLOWER if x.ratio_high < 1 else NO_DIFFERENCE
                assert x.verdict == expected


@settings(deadline=None, max_examples=60)
@given(tables)
def test_every_measurement_is_compared_or_refused(values: dict[tuple[str, int], list[float]]) -> None:
    """No (fabric, size) falls between the tables and the refusals, and none stands in both."""
    c = comparison((LATENCY, values))
    compared = {k for t in c.tables for k in t.compared.select("fabric", "size_bytes").iter_rows()}
    refused = {(f, s) for r in c.refusals for f in r.fabrics for s in r.sizes}
    assert compared | refused >= set(values)
    for t in c.tables:
        assert t.common_sizes
        assert set(t.common_sizes) <= set(t.compared_sizes)
        assert all(t.cell(t.baseline, s) for s in t.compared_sizes)


def test_a_size_of_one_side_only_is_not_measured_on_the_other() -> None:
    """It has a median of its own, no ratio, and a refusal that names it."""
    c = comparison((LATENCY, {("a", 8): around(4), ("b", 8): around(2), ("b", 64): around(3)}))
    cell = c.headline.cell("b", 64)
    assert cell
    assert (cell.verdict, cell.ratio) == (NOT_MEASURED, None)
    assert c.headline.cell("a", 64) is None
    assert c.headline.compared_sizes == [8]
    assert [(r.reason, r.fabrics, r.missing, r.sizes) for r in c.refusals] == [("sizes", ("b",), ("a",), (64,))]


def test_fabrics_that_share_sizes_only_pairwise_are_still_compared() -> None:
    """No size is common to all three: the table stands on the sizes that the baseline shares with one."""
    c = comparison((LATENCY, {("a", 8): around(4), ("a", 64): around(5), ("b", 8): around(2), ("c", 64): around(2)}))
    assert c.headline.fabrics == ("a", "b", "c")
    assert c.headline.common_sizes == c.headline.compared_sizes == [8, 64]


def test_a_baseline_without_a_partner_does_not_hide_the_others() -> None:
    """a shares nothing; b and c are compared, and b is their baseline."""
    c = comparison((LATENCY, {("a", 8): around(4), ("b", 64): around(2), ("c", 64): around(2)}))
    assert [(t.baseline, t.fabrics) for t in c.tables] == [("b", ("b", "c"))]
    assert [(r.reason, r.fabrics, r.missing) for r in c.refusals] == [
        ("sizes", ("a",), ("b", "c")),
        ("no_baseline", ("b", "c"), ("a",)),
    ]


def test_no_common_size_is_a_refusal() -> None:
    """The same test at other sizes is no comparison."""
    c = comparison(
        (COLLECTIVE, {("a", 8): around(4), ("b", 8): around(4)}), (LATENCY, {("a", 8): around(4), ("b", 64): around(2)})
    )
    assert [(r.reason, r.fabrics, r.missing) for r in c.refusals] == [("no_common_size", ("a", "b"), ())]


def test_a_printed_0_gives_no_ratio_and_is_said() -> None:
    """A rate below half of the last printed digit prints as 0.00: it is kept, ranked by nothing, and refused."""
    values = {("a", 2): [0.0, *around(1, 6)], ("b", 2): around(1), ("a", 8): around(4), ("b", 8): around(2)}
    c = comparison((BANDWIDTH, values))
    cell = c.headline.cell("b", 2)
    assert cell
    assert (cell.verdict, cell.ratio) == (NOT_MEASURED, None)
    assert [(r.reason, r.sizes) for r in c.refusals] == [("zero", (2,))]
    assert c.headline.compared_sizes == [8]


def test_a_column_that_one_run_lacks_is_missing_not_less() -> None:
    """The bus bandwidth of seven times is not the median of six."""
    assert comparison((LATENCY, {("a", 8): around(4), ("b", 8): around(2)})).headline.cells[0].busbw is None


def everything(fabric: str, k: int) -> dict[str, str]:
    """One log of nearly every kind for a fabric, most without a counterpart."""
    logs = {f"{fabric}/nccl.{i}.log": nccl({8: k * 20.0 + i, 0: 1.0}, pid=k * 10_000 + i) for i in range(3)}
    logs[f"{fabric}/hccl.log"] = hccl({8192: 30.0 * k}, serial=k, command="# log")
    logs[f"{fabric}/bw.log"] = write_bw({65536: 90.0 * k}, qpn=k * 512, queue_pairs=k)
    logs[f"{fabric}/both.log"] = write_bw({65536: 90.0 * k}, qpn=k * 512 + 32, both=True)
    logs[f"{fabric}/lat.log"] = latency({2 + 6 * k: 2.0}, qpn=k * 512 + 64)
    logs[f"{fabric}/ucx.log"] = ucx(20.0 * k)
    logs[f"{fabric}/bidir.json"] = iperf3(40.0, cookie=f"b{k}", back=30.0)
    logs[f"{fabric}/udp.json"] = iperf3(40.0, cookie=f"u{k}", protocol="UDP" if k == 1 else "TCP")
    logs[f"{fabric}/cut.log"] = nccl({8: 20.0}, pid=k * 10_000 + 900).rpartition("# Out of")[0]
    return logs


def test_no_run_of_the_store_is_lost(make: Make) -> None:
    """Every run is used, left out with a reason, or without a counterpart that a refusal names."""
    logs = {**everything("tcp", 1), **everything("roce", 2), **everything("roce2", 3), **everything("strange", 4)}
    facts = '[[facts]]\nlogs = ["**/hccl.log"]\nranks = 8\n'
    lab = make(logs, campaign("tcp:roce", "roce", "roce2:roce", more=facts))
    c = lab.compare()
    used, left = c.used_runs, set(c.runs.filter(c.runs["excluded_because"].is_not_null())["run_id"])
    alone = set(c.unmatched["run_id"])
    assert used | left | alone == set(c.runs["run_id"])
    assert not used & left
    assert len(c.runs) + sum(c.elsewhere.values()) == len(lab.runs())
    refused = {s.kind for r in c.refusals for s in r.subjects}
    assert refused == {"collective", "latency", "bandwidth"}
    assert {r.reason for r in c.refusals} >= {"one_fabric", "no_common_size", "test"}


def test_the_store_and_the_records_agree(make: Make) -> None:
    """A comparison from logs has the medians that the logs print."""
    c = make({**runs_of("tcp", 2), **runs_of("roce", 1)}).compare()
    expected = sorted(round(2 * 20.0008 * s, 2) for s in SEVEN)[3]
    cell = c.headline.cell("tcp", 8)
    assert cell
    assert cell.median == pytest.approx(expected, abs=0.011)
    assert cell.limit_gbyte_s
    assert cell.utilization


def test_the_baseline_that_was_asked_for_heads_the_report(make: Make) -> None:
    """Also where the table with most fabrics has another one."""
    c = make({**runs_of("tcp", 2), **runs_of("roce", 1)}).compare(baseline="roce")
    assert (c.baseline, c.headline.baseline, c.headline.others) == ("roce", "roce", ["tcp"])


def refusal(lab: Lab, **parameters: object) -> str:
    """The one sentence that a comparison is refused with."""
    with pytest.raises(NothingToCompare) as caught:
        lab.compare(**parameters)  # type: ignore[arg-type]
    text = str(caught.value)
    assert "\n" not in text
    assert "None" not in text
    return text


def test_one_fabric_is_nothing_to_compare(make: Make) -> None:
    """The sentence says what to do; it differs when the campaign has more than was selected."""
    lab = make({**runs_of("tcp", 2), **runs_of("roce", 1)})
    assert refusal(lab, fabrics=["tcp"]) == (
        "a comparison needs two fabrics, and only tcp was named; campaign 'test' also has: ROCE"
    )


def test_a_campaign_of_one_fabric_says_so(make: Make) -> None:
    """With the two ways out."""
    text = refusal(make(runs_of("tcp", 2)))
    assert text.startswith("campaign 'test' has runs of one fabric only (tcp); a comparison needs two: ingest logs of")


def test_a_campaign_without_a_quotable_run_says_why(make: Make) -> None:
    """The reasons are named once each."""
    logs = {k: v.rpartition("# Out of")[0] for k, v in {**runs_of("tcp", 2), **runs_of("roce", 1)}.items()}
    assert refusal(make(logs)) == "campaign 'test': no run can be quoted, of 14 (truncated)"


def test_a_filter_that_matches_nothing_is_said(make: Make) -> None:
    """all-reduce is not how the operation is called here."""
    lab = make({**runs_of("tcp", 2), **runs_of("roce", 1)})
    with pytest.raises(UsageError) as error:
        lab.compare(operation="all-reduce")
    assert str(error.value) == (
        "no collective with operation=all-reduce in campaign 'test'; it has: all_reduce. Did you mean 'all_reduce'?"
    )


def test_nothing_shared_names_what_each_fabric_has(make: Make) -> None:
    """And the two ways out."""
    text = refusal(make({**runs_of("tcp", 2), **runs_of("roce", 1, operation="all_gather")}))
    assert (
        "no measurand is shared by two fabrics (tcp: all_reduce; roce: all_gather); run the same test on both" in text
    )


def test_an_unknown_campaign_and_an_empty_store_are_usage_errors(make: Make) -> None:
    """One sentence each, with what there is."""
    lab = make(runs_of("tcp", 2))
    with pytest.raises(UsageError, match=r"no campaign 'tests' in this store; it has: test\. Did you mean 'test'\?"):
        lab.compare(campaign="tests")


def test_a_snapshot_changes_with_the_data_and_only_then(make: Make, tmp_path: Path) -> None:
    """The id of a report is a function of the logs and the campaign file."""
    logs = {**runs_of("tcp", 2), **runs_of("roce", 1)}
    first = make(logs).compare().snapshot
    assert make(logs).compare().snapshot == first
    assert lab_of(tmp_path, logs, TWO + "# a comment\n").compare().snapshot != first


def test_used_runs_are_those_behind_ratios(make: Make) -> None:
    """A run whose only size has no counterpart stands behind no number."""
    extra = {"roce/alone.log": nccl({4096: 9.0}, pid=777)}
    c: Comparison = make({**runs_of("tcp", 2), **runs_of("roce", 1), **extra}).compare()
    assert len(c.used_runs) == 14
    assert list(c.unmatched["path"].str.ends_with("alone.log")) == [True]
    assert [(r.reason, r.sizes) for r in c.refusals] == [("sizes", (4096,))]


def test_numbers_that_disagree_are_named_in_the_evidence(bench: Bench) -> None:
    """A log whose rows do not make up its printed average is said, with the line; what was left out is not."""
    bench.campaign(
        '[campaign]\nname = "lab"\n\n[[fabric]]\nname = "a"\nfamily = "roce"\nlogs = ["a*"]\n\n'
        '[[fabric]]\nname = "b"\nfamily = "infiniband"\nlogs = ["b*"]\n'
    )
    bench.log("a.log", nccl_log(footer="# Out of bounds values : 0 OK\n# Avg bus bandwidth    : 99.5 \n#\n"))
    bench.log("b.log", nccl_log(pid=500))
    bench.ingest()
    with Lab(bench.store.path) as lab:
        found = lab.compare()
    (doubt,) = found.doubts
    assert "in 1 of the logs, first in a.log, line" in FabricComparison(found).evidence().html
    assert (doubt.code, doubt.logs, Path(doubt.path).name) == ("average_mismatch", 1, "a.log")
