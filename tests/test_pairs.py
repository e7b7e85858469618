"""Who is slow among pairs of hosts."""

import math
from collections.abc import Callable
from dataclasses import replace
from itertools import combinations, permutations
from pathlib import Path

import polars as pl
import pytest
from hypothesis import given
from hypothesis import strategies as st

from rdmalab.ingest import ingest
from rdmalab.lab import Lab
from rdmalab.pairs import Failure, Pairs, all_pairs, frame, node_pairs
from rdmalab.store import Store

EXAMPLES = Path(__file__).parents[1] / "data" / "examples" / "synthetic-pairs"


def pairs_of(speed: dict[str, float], *, directed: bool = False, **other: float | None) -> Pairs:
    """All pairs of hosts, each as fast as its slower host; *other* overrides single pairs, ``a_b=...``, None: none."""
    hosts = tuple(sorted(speed))
    values = {(a, b): min(speed[a], speed[b]) for a, b in (permutations if directed else combinations)(hosts, 2)}
    values |= {tuple(k.split("_")): v for k, v in other.items()}  # type: ignore[misc]
    return Pairs(
        fabric="roce", test="all_reduce", dtype="float", ranks=16, placement="out_of_place", size_bytes=1 << 30,
        hosts=hosts, values={k: v for k, v in values.items() if v is not None}, runs=len(values), directed=directed,
    )  # fmt: skip


def test_one_slow_host_among_equal_ones_is_found() -> None:
    """Where the others are exactly equal there is no deviation to measure by: any step over 2 % counts."""
    assert pairs_of({"a": 9.0, "b": 9.0, "c": 9.0, "d": 9.0, "e": 6.0}).slow_hosts == ["e"]


def test_one_slow_host_among_noisy_ones_is_found() -> None:
    """Medians 46.0 to 46.2 and one host at 42: only this one, 42 / 46.05 of the others."""
    speed = {"a": 46.0, "b": 46.1, "c": 46.2, "d": 46.05, "e": 46.15, "f": 42.0}
    found = pairs_of(speed)
    assert found.slow_hosts == ["f"]
    # with partners that are fast with others, a reaches 46.0, d 46.05, b 46.1 (median of 46.0, 46.05, 46.1, 46.1), ...
    worst = found.standings[0]
    assert (worst.name, worst.pairs, worst.median, worst.fast_with) == ("f", 5, 42.0, ())
    assert worst.ratio == pytest.approx(42 / 46.05, abs=0.001)


def test_one_slow_host_of_three_is_found() -> None:
    """9 between the fine ones and 6 with the third: it is the third, not the median of the two."""
    assert pairs_of({"a": 9.0, "b": 9.0, "c": 6.0}).slow_hosts == ["c"]


def test_nobody_stands_out_among_equal_hosts() -> None:
    """A difference below 2 % is noise."""
    found = pairs_of({"a": 9.0, "b": 9.05, "c": 8.95, "d": 9.0})
    assert found.slow_hosts == []
    assert found.slow_pairs == []


def test_one_slow_pair_makes_no_slow_host() -> None:
    """The median over partners forgives one bad cable, and the pair is named."""
    found = pairs_of(dict.fromkeys("abcde", 9.0), a_b=4.0)
    assert found.slow_hosts == []
    assert found.slowest(1) == [(("a", "b"), 4.0)]
    assert [(r.pair, r.value) for r in found.slow_pairs] == [(("a", "b"), 4.0)]


def test_the_pairs_of_a_slow_host_are_no_slow_pairs() -> None:
    """They say whom they owe it to."""
    found = pairs_of({"a": 9.0, "b": 9.0, "c": 9.0, "d": 9.0, "e": 6.0})
    assert found.slow_pairs == []
    assert found.ranked()[0].slow_hosts == ("e",)


def test_two_slow_hosts_are_not_slowed_twice() -> None:
    """Their own pair is as slow as the slower of them."""
    assert pairs_of(dict.fromkeys("abcdef", 9.0) | {"g": 8.0, "h": 7.5}).slow_hosts == ["g", "h"]


def test_a_host_measured_with_slow_ones_only_is_not_blamed() -> None:
    """x met only s, which is slow with everybody: nothing is known of x."""
    missing = {f"{h}_x": None for h in "abcd"}
    found = pairs_of(dict.fromkeys("abcdx", 9.0) | {"s": 6.0}, **missing)
    assert found.slow_hosts == ["s"]
    assert [(s.name, s.ratio, s.slow) for s in found.standings if s.name == "x"] == [("x", None, False)]


def test_hosts_that_are_fast_with_each_other_say_so() -> None:
    """Two hosts behind one switch: slow with everybody else, not between themselves."""
    across = {f"{a}_{b}": 42.0 for a in "abcdefg" for b in "xy"}
    found = pairs_of(dict.fromkeys("abcdefgxy", 46.0), **across)
    assert found.slow_hosts == ["x", "y"]
    assert {s.name: s.fast_with for s in found.standings if s.slow} == {"x": ("y",), "y": ("x",)}


def test_a_host_slow_with_half_of_its_partners_is_no_slow_host() -> None:
    """The path is slow, not the host."""
    found = pairs_of(dict.fromkeys("abcdefgx", 46.0), **{f"{a}_x": 42.0 for a in "abcd"})
    assert found.slow_hosts == []
    assert [r.pair for r in found.slow_pairs] == [(a, "x") for a in "abcd"]


def test_sender_and_receiver_are_told_apart() -> None:
    """e receives at 6 and sends at 9."""
    found = pairs_of(dict.fromkeys("abcde", 9.0), directed=True, **{f"{h}_e": 6.0 for h in "abcd"})
    assert [(s.name, s.role) for s in found.standings if s.slow] == [("e", "receiver")]
    assert found.of("a", "e") == 6.0
    assert found.of("e", "a") == 9.0


def test_a_pair_that_was_not_measured_is_missing() -> None:
    """It is neither 0 nor the mean of its neighbours."""
    found = pairs_of(dict.fromkeys("abc", 9.0), a_c=None)
    assert found.missing == [("a", "c")]
    assert found.of("c", "a") is None
    assert found.median_of("b") == pytest.approx(9.0)


@given(
    st.integers(4, 12),
    st.lists(st.floats(-0.008, 0.008), min_size=66, max_size=66),
    st.floats(0.5, 0.85),
    st.sets(st.integers(0, 65), max_size=12),
    st.randoms(use_true_random=False),
)
def test_the_planted_host_is_found_and_nobody_else(
    n: int, noise: list[float], share: float, holes: set[int], random: object
) -> None:
    """Noise of 0.8 % and missing pairs blame nobody else; the slow host is found where it met two fine hosts."""
    hosts = [f"h{i}" for i in range(n)]
    slow = hosts[random.randrange(n)]  # type: ignore[attr-defined]
    values = {
        (a, b): 46.0 * (share if slow in (a, b) else 1) * math.exp(noise[i])
        for i, (a, b) in enumerate(combinations(hosts, 2))
        if i not in holes
    }
    found = Pairs(fabric="f", test="all_reduce", size_bytes=8, hosts=tuple(hosts), values=values, runs=1)
    assert set(found.slow_hosts) <= {slow}
    partners = [a if b == slow else b for a, b in values if slow in (a, b)]
    fine = [h for h in partners if any(h in p and slow not in p for p in values)]
    others = {h for p in values if slow not in p for h in p}
    if len(fine) >= 2 and len(others) >= max(4, n - 1):
        assert found.slow_hosts == [slow]


def rails(speed: dict[tuple[str, str], float]) -> Pairs:
    """Directed pairs of three hosts, each on two rails; *speed* by host and device, the slower end counts."""
    ends = [(a, b, r) for a, b in permutations("abc", 2) for r in ("mlx5_0", "mlx5_1")]
    values = [min(speed.get((h, r), 98.0) for h in (a, b)) for a, b, r in ends]
    rows = pl.DataFrame(
        {
            "a": [e[0] for e in ends], "b": [e[1] for e in ends], "device_a": [e[2] for e in ends],
            "device_b": [e[2] for e in ends], "value": values,
        }
    )  # fmt: skip
    medians = {(a, b): v for a, b, v in rows.group_by("a", "b").agg(pl.col("value").median()).rows()}
    return Pairs(
        fabric="f", test="ib_write_bw", size_bytes=65536, hosts=("a", "b", "c"), values=medians, runs=12, directed=True,
        rows=rows,
    )  # fmt: skip


def test_a_slow_rail_is_one_device_of_every_host() -> None:
    """mlx5_1 runs at 80 everywhere: the rail, no host."""
    found = rails({(h, "mlx5_1"): 80.0 for h in "abc"})
    assert [(s.name, s.slow, s.median) for s in found.rails] == [("mlx5_1", True, 80.0), ("mlx5_0", False, 98.0)]
    assert found.slow_hosts == []


def test_a_slow_adapter_is_one_device_of_one_host() -> None:
    """Only mlx5_1 of b is slow, as sender and as receiver."""
    found = rails({("b", "mlx5_1"): 80.0})
    assert {(s.name, s.role) for s in found.adapters if s.slow} == {("b mlx5_1", "sender"), ("b mlx5_1", "receiver")}


# -- out of logs ---------------------------------------------------------------------------------------------------


@pytest.fixture(scope="module")
def example(tmp_path_factory: pytest.TempPathFactory) -> Lab:
    """A store with the synthetic pairs."""
    store = Store(tmp_path_factory.mktemp("pairs") / "lab.duckdb")
    ingest([str(EXAMPLES)], store)
    return Lab(store.path)


def test_the_planted_node_is_found_and_nothing_else(example: Lab) -> None:
    """Node 06 is slow in every measurement and every role; no other host, no pair."""
    found = all_pairs(example, "synthetic-pairs", ["infiniband-ndr400"])
    assert [(p.test, p.placement, len(p.values), p.directed) for p in found] == [
        ("all_reduce", "out_of_place", 28, False),
        ("all_reduce", "in_place", 28, False),
        ("ib_write_bw", None, 56, True),
    ]
    for p in found:
        assert p.slow_hosts == ["synthetic-node-06"]
        assert [p.slow_pairs, p.missing, p.failed, p.adapters, p.rails] == [[]] * 5
    assert [s.role for s in found[2].standings if s.slow] == ["sender", "receiver"]
    assert [p.residue for p in found[:2]] == [{}, {}]
    assert found[2].residue == {"mtu_bytes": (4096, {1024: [("synthetic-node-03", "synthetic-node-05")]})}
    assert node_pairs(example, "synthetic-pairs", ["infiniband-ndr400"]).slow_hosts == ["synthetic-node-06"]  # type: ignore[union-attr]


def test_the_numbers_are_those_of_the_logs(example: Lab) -> None:
    """From the last column of the last rows: all_reduce.01-06.log and ib_write_bw.06-01.log, worked out by hand."""
    collective, _, write = all_pairs(example, "synthetic-pairs", ["infiniband-ndr400"])
    row = (EXAMPLES / "nccl" / "all_reduce.01-06.log").read_text().splitlines()
    assert collective.size_bytes == 4294967296
    busbw = next(float(line.split()[7]) for line in row if line.split()[:1] == ["4294967296"])
    assert collective.of("synthetic-node-06", "synthetic-node-01") == busbw
    sent = [float(p.read_text().split()[-3]) for p in sorted((EXAMPLES / "perftest").glob("*.06-??.log"))]
    sender = next(s for s in write.standings if s.role == "sender")
    assert (sender.name, sender.pairs, sender.median) == ("synthetic-node-06", 7, sorted(sent)[3])
    ranked = frame([write])
    assert ranked.height == 56
    assert set(ranked["a"][:7]) | set(ranked["b"][:7]) >= {"synthetic-node-06"}
    assert ranked["median"].is_sorted()


BANNER = """{prompt}
{rule}
                    RDMA_Write BW Test
 Dual-port       : OFF\t\tDevice         : {device}
 Number of qps   : 1\t\tTransport type : IB
 Connection type : RC\t\tUsing SRQ      : OFF
{depth} Mtu             : 4096[B]
 Link type       : IB
{rule}
 local address: LID {lid} QPN 0x0101 PSN {psn}
 remote address: LID {other_lid} QPN 0x0101 PSN {other_psn}
{rule}
"""
TABLE = """ #bytes     #iterations    BW peak[Gb/sec]    BW average[Gb/sec]   MsgRate[Mpps]
 1048576    5000             {value:.2f}              {value:.2f}  \t\t     {rate:.6f}
{rule}
"""
RULE = "-" * 87


def write_pair(folder: Path, number: int, client: str, server: str, value: float | None, *, ends: str = "both") -> None:
    """Logs of one ib_write_bw from *client* to *server*; without a value no queue pair comes up."""
    for side, own in (("client", client), ("server", server)):
        if ends in ("both", side):
            here, there = (number, number + 500) if side == "client" else (number + 500, number)
            words = "ib_write_bw -d mlx5_0 -s 1048576 --report_gbits" + (f" {server}" if side == "client" else "")
            text = BANNER.format(
                prompt=f"root@{own}:~# {words}", device="mlx5_0", rule=RULE, lid=f"{here:#06x}", psn=f"{here:#08x}",
                depth=" TX depth        : 128\n" if side == "client" else "", other_lid=f"{there:#06x}",
                other_psn=f"{there:#08x}",
            )  # fmt: skip
            failure = " Failed to modify QP 257 to RTR\n Unable to Connect the HCA's through the link\n"
            text += TABLE.format(value=value, rate=value / 8388.608, rule=RULE) if value else failure
            (folder / f"{number:03d}.{side}.log").write_text(text)


@pytest.fixture
def perftest(tmp_path: Path) -> Callable[..., Pairs]:
    """Reads pairs (client, server, value) written as logs."""

    def read(*tests: tuple[str, str, float | None], ends: str = "both") -> Pairs:
        logs = tmp_path / "logs"
        logs.mkdir()
        for number, (client, server, value) in enumerate(tests, 1):
            write_pair(logs, number, client, server, value, ends=ends)
        store = Store(tmp_path / "lab.duckdb")
        ingest([str(logs)], store)
        return all_pairs(Lab(store.path), "default", ["infiniband", "unknown"])[0]

    return read


def test_domains_fail_to_make_two_hosts_of_one(perftest: Callable[..., Pairs]) -> None:
    """n1 and n1.lan are one host, whichever end says it."""
    found = perftest(("n1", "n2.lan", 98.0), ("n2", "n1.lan", 97.0), ("n1.lan", "n3", 96.0))
    assert found.hosts == ("n1", "n2", "n3")
    assert found.values == {("n1", "n2"): 98.0, ("n2", "n1"): 97.0, ("n1", "n3"): 96.0}
    assert found.runs == 3


def test_equal_names_in_two_domains_stay_two_hosts(perftest: Callable[..., Pairs]) -> None:
    """n1.east and n1.west are not one host."""
    found = perftest(("n1.east", "n1.west", 98.0), ("n2.east", "n1.east", 97.0))
    assert found.hosts == ("n1.east", "n1.west", "n2")


def test_unequal_repeats_count_once_a_pair(perftest: Callable[..., Pairs]) -> None:
    """The value of a pair is the median of its runs: 90 of 80, 90 and 91."""
    found = perftest(("a", "b", 80.0), ("a", "b", 90.0), ("a", "b", 91.0), ("b", "c", 90.0), ("c", "a", 90.0))
    assert found.of("a", "b") == 90.0
    assert found.runs == 5


def test_failed_pairs_are_not_missing_ones(perftest: Callable[..., Pairs]) -> None:
    """a to c failed, c to b was never tried; b to a failed once and worked once."""
    found = perftest(
        ("a", "b", 90.0), ("b", "a", None), ("b", "a", 90.0), ("b", "c", 90.0), ("c", "a", 90.0), ("a", "c", None)
    )
    assert [(f.pair, f.reason) for f in found.failed] == [(("a", "c"), "failed")]
    assert {f.pair for f in found.failures} == {("a", "c"), ("b", "a")}
    assert found.missing == [("c", "b")]


def test_a_failure_of_another_test_is_none_of_this_one() -> None:
    """What the log tells must agree; what it does not tell may be anything."""
    failure = Failure(pair=("a", "b"), reason="failed", run_id="r", path="p", line=1, test="alltoall", ranks=16)
    assert failure.of("roce", "alltoall", 16)
    assert not failure.of("roce", "alltoall", 8)
    assert not failure.of("roce", "all_reduce", 16)
    assert replace(failure, test=None, ranks=None).of("roce", "all_reduce", 16)


def test_a_client_alone_names_both_hosts(perftest: Callable[..., Pairs]) -> None:
    """Without the server's log its name is the one that was typed."""
    found = perftest(("a", "b", 90.0), ("b", "c", 91.0), ("c", "a", 92.0), ends="client")
    assert found.values == {("a", "b"): 90.0, ("b", "c"): 91.0, ("c", "a"): 92.0}


def nccl_pair(a: str, b: str, device: str, busbw: float) -> str:
    """An all_reduce of two hosts with one rank each, whose connections all use one device of two."""
    info = "".join(
        f"{host}:77:77 [0] NCCL INFO NET/IB : Using [0]mlx5_0:1/RoCE [1]mlx5_1:1/RoCE [RO]; OOB eth0:192.0.2.1<0>\n"
        f"{host}:77:77 [0] NCCL INFO Channel 00/0 : {1 - i}[0] -> {i}[0] [receive] via NET/IB/{device[-1]}/GDRDMA\n"
        for i, host in enumerate((a, b))
    )
    devices = "".join(
        f"#  Rank  {i} Group  0 Pid     77 on {host} device  0 [0x1b] NVIDIA H100 80GB HBM3\n"
        for i, host in enumerate((a, b))
    )
    time = 1048576 / busbw / 1e3
    row = f"1048576 262144 float sum -1 {time:.4f} {busbw:.2f} {busbw:.2f} 0 {time:.4f} {busbw:.2f} {busbw:.2f} 0\n"
    return (
        "# Collective test starting: all_reduce_perf\n# nThread 1 nGpus 1 minBytes 1048576 maxBytes 1048576 "
        "step: 2(factor) warmup iters: 5 iters: 20 agg iters: 1 validation: 1 graph: 0\n#\n# Using devices\n"
        f"{devices}{info}"
        "#       size         count      type   redop    root     time   algbw   busbw #wrong     time   algbw   busbw "
        f"#wrong\n#        (B)    (elements)                               (us)  (GB/s)  (GB/s)            (us)  "
        f"(GB/s)  (GB/s)\n{row}# Out of bounds values : 0 OK\n# Avg bus bandwidth    : {busbw}\n#\n"
    )


def test_a_collective_on_one_device_tells_its_rail(tmp_path: Path) -> None:
    """Every pair once on mlx5_0 at 46 and once on mlx5_1 at 40: the rail is slow, no host is."""
    for a, b in combinations(("n1", "n2", "n3"), 2):
        for device, busbw in (("mlx5_0", 46.0), ("mlx5_1", 40.0)):
            (tmp_path / f"{a}-{b}-{device}.log").write_text(nccl_pair(a, b, device, busbw))
    store = Store(tmp_path / "lab.duckdb")
    ingest([str(tmp_path)], store)
    found = all_pairs(Lab(store.path), "default", ["roce"])[0]
    assert [(s.name, s.median, s.slow) for s in found.rails] == [("mlx5_1", 40.0, True), ("mlx5_0", 46.0, False)]
    assert not any(s.slow for s in found.adapters)  # no partner of mlx5_1 is fast: it is the rail
    assert found.slow_hosts == []
