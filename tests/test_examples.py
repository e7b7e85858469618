"""The example data is what it says: reproducible, consistent to the printed digit, and within physics."""

import importlib.util
import json
import re
import sys
import tomllib
from collections import defaultdict
from collections.abc import Iterator
from pathlib import Path
from types import ModuleType
from typing import NamedTuple

import pytest

EXAMPLES = Path(__file__).resolve().parents[1] / "data" / "examples"
SYNTHETIC, PAIRS = EXAMPLES / "synthetic", EXAMPLES / "synthetic-pairs"
RANKS, NODES, GPUS_PER_NODE = 16, 2, 8
PAYLOAD_GBYTE_S = {  # link rate / 8 x MTU / (MTU + headers)
    "tcp-100g": 12.5 * 8948 / 9038,
    "roce-100g": 12.5 * 4096 / 4178,
    "infiniband-ndr400": 50 * 4096 / 4122,
}
FACTOR = {"all_reduce": 2 * 15 / 16, "all_gather": 15 / 16, "alltoall": 15 / 16}
ROW = re.compile(r"\s+\d+\s+\d+\s+float\s+(sum|none)\s+-1(\s+\S+){8}")
RULE = "-" * 87


class Placement(NamedTuple):
    """One placement of one row, as printed."""

    size: int
    count: int
    time: str
    algbw: str
    busbw: str
    wrong: str


def nccl_logs(pattern: str = "*/nccl/*.[1-7].log") -> list[Path]:
    return sorted(SYNTHETIC.glob(pattern))


def perftest_logs(test: str) -> list[Path]:
    return sorted(SYNTHETIC.glob(f"*/perftest/{test}.[1-7].log"))


def placements(path: Path) -> Iterator[Placement]:
    for line in path.read_text().splitlines():
        if ROW.fullmatch(line):
            t = line.split()
            for at in (5, 9):
                yield Placement(int(t[0]), int(t[1]), *t[at : at + 4])


def half_digit(printed: str) -> float:
    """Half a unit of the last printed digit."""
    mantissa, _, exponent = printed.partition("e")
    return 0.5 * 10.0 ** (int(exponent or 0) - len(mantissa.partition(".")[2]))


def busbw_bound(fabric: str, operation: str) -> float:
    """GB/s that two domains of eight ranks and one port a node allow."""
    port = PAYLOAD_GBYTE_S[fabric]
    if operation == "alltoall":
        return port / GPUS_PER_NODE * (RANKS - 1) / (RANKS - GPUS_PER_NODE)
    return port * (RANKS - 1) * NODES / (RANKS * (NODES - 1))


@pytest.fixture(scope="module")
def generator() -> ModuleType:
    spec = importlib.util.spec_from_file_location("generate_examples", EXAMPLES / "generate.py")
    assert spec is not None
    assert spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    sys.modules[spec.name] = module  # dataclasses look their module up
    spec.loader.exec_module(module)
    return module


def test_generator_reproduces_the_committed_files(generator: ModuleType, tmp_path: Path) -> None:
    """The same seed gives the same bytes, and no file lies in the folders that it does not write."""
    generator.main(["--out", str(tmp_path), "--seed", "7"])
    made = {p.relative_to(tmp_path): p.read_bytes() for p in tmp_path.rglob("*") if p.is_file()}
    folders = [p for campaign in generator.CAMPAIGNS for p in (EXAMPLES / campaign).rglob("*")]
    kept = {p.relative_to(EXAMPLES): p.read_bytes() for p in folders if p.is_file()}
    assert sorted(made) == sorted(kept)
    assert [str(p) for p in made if made[p] != kept[p]] == []


def test_another_seed_gives_other_numbers(generator: ModuleType) -> None:
    """The seed reaches the logs."""
    path = "tcp-100g/nccl/all_reduce.1.log"
    assert dict(generator.everything(8))[path] != (SYNTHETIC / path).read_text()


def test_numbers_of_files() -> None:
    """Seven repeats of every test, both ends of every pair, and three bad logs."""
    counts: dict[str, int] = defaultdict(int)
    for path in SYNTHETIC.rglob("*.*"):
        if path.parent != SYNTHETIC:
            counts[re.sub(r"\.[1-7]\.", ".K.", path.relative_to(SYNTHETIC).as_posix())] += 1
    verbs = "ib_write_bw", "ib_read_bw", "ib_write_lat", "ib_read_lat"
    names = [f"{fabric}/nccl/{op}.K.log" for fabric in PAYLOAD_GBYTE_S for op in FACTOR]
    for test in verbs:
        for fabric in ("roce-100g", "infiniband-ndr400"):
            names += [f"{fabric}/perftest/{test}.K.log", f"{fabric}/perftest/{test}.K.server.log"]
    names += [f"tcp-100g/{name}" for name in ("iperf3/tcp.K.json", "ucx/tag_lat.K.log", "ucx/tag_lat.K.server.log")]
    bad = "roce-100g/nccl/all_reduce.failed", "roce-100g/nccl/all_reduce.fallback", "tcp-100g/nccl/all_reduce.cut"
    expected = dict.fromkeys(names, 7)
    assert dict(counts) == expected | {f"{name}.log": 1 for name in bad}
    assert sum(p.stat().st_size for p in SYNTHETIC.rglob("*") if p.is_file()) < 3_000_000


@pytest.mark.parametrize("path", nccl_logs("*/nccl/*.log"), ids=lambda p: f"{p.parent.parent.name}-{p.stem}")
def test_every_collective_row_obeys_its_formula(path: Path) -> None:
    """Time, algbw and busbw agree to half of their last digits, and nothing passes the bound of the fabric."""
    fabric, operation = path.parent.parent.name, path.name.split(".")[0]
    bound = busbw_bound(fabric, operation)
    parts = 1 if operation == "all_reduce" else RANKS
    for row in placements(path):
        time, algbw, busbw = float(row.time), float(row.algbw), float(row.busbw)
        assert row.size == row.count * 4 * parts
        assert row.count % 4 == 0 or parts == 1
        slack = half_digit(row.algbw) + half_digit(row.time) * row.size / time**2 / 1e3
        assert abs(row.size / time / 1e3 - algbw) <= slack * 1.001, row
        slack = half_digit(row.algbw) * FACTOR[operation] + half_digit(row.busbw)
        assert abs(algbw * FACTOR[operation] - busbw) <= slack + 1e-9, row
        assert busbw <= bound, row
        assert len(row.time) <= 7
        assert time > 10 or row.size == 0


@pytest.mark.parametrize("path", nccl_logs(), ids=lambda p: f"{p.parent.parent.name}-{p.stem}")
def test_every_average_is_the_mean_of_its_rows(path: Path) -> None:
    """The footer's average is the mean of all busbw, and the table runs from 8 B to 4 GiB at two placements."""
    rows = list(placements(path))
    assert len(rows) == 60
    assert rows[-1].size == 2**32
    printed = re.search(r"^# Avg bus bandwidth    : (\S+) $", path.read_text(), re.M)
    assert printed is not None
    assert abs(float(printed[1]) - sum(float(r.busbw) for r in rows) / 60) < 0.005
    operation = path.name.split(".")[0]
    assert {r.wrong for r in rows} == ({"0", "N/A"} if operation == "alltoall" else {"0"})


def test_transport_lines_say_what_the_folder_says() -> None:
    """Every channel between the nodes runs over the network of its folder, except in the log that fell back."""
    wanted = {"tcp-100g": "Socket", "roce-100g": "IB", "infiniband-ndr400": "IB"}
    for path in nccl_logs("*/nccl/*.log"):
        nets = set(re.findall(r"-> \d+\[\d\] \[receive\] via NET/(\w+)/0", path.read_text()))
        assert nets == {"Socket" if ".fallback." in path.name else wanted[path.parent.parent.name]}, path
    assert "NET/IB : No device found." in (SYNTHETIC / "roce-100g/nccl/all_reduce.fallback.log").read_text()


def test_the_bad_logs_are_bad_in_the_promised_way() -> None:
    """One log stops in mid-row, one fails after nineteen rows; neither has a footer."""
    cut = (SYNTHETIC / "tcp-100g/nccl/all_reduce.cut.log").read_text()
    failed = (SYNTHETIC / "roce-100g/nccl/all_reduce.failed.log").read_text()
    assert not cut.endswith("\n")
    assert 5 < len(cut.splitlines()[-1].split()) < 13
    assert "Test NCCL failure" in failed
    assert len(list(placements(SYNTHETIC / "roce-100g/nccl/all_reduce.failed.log"))) == 2 * 19
    assert "Avg bus bandwidth" not in cut + failed


def tables(path: Path) -> list[list[str]]:
    """The rows of a perftest table, split."""
    rows = [line.split() for line in path.read_text().splitlines()]
    return [r for r in rows if r and r[0].isdigit()]


@pytest.mark.parametrize("path", [*perftest_logs("ib_*_bw")], ids=lambda p: f"{p.parent.parent.name}-{p.stem}")
def test_bandwidth_is_message_rate_times_size(path: Path) -> None:
    """Bandwidth and message rate agree, and neither average nor peak passes the payload of the port."""
    bound = PAYLOAD_GBYTE_S[path.parent.parent.name] * 8
    rows = tables(path)
    assert [int(r[0]) for r in rows] == [2**i for i in range(1, 24)]
    for size, _, peak, average, rate in rows:
        from_rate = float(rate) * int(size) * 8e-3
        slack = half_digit(average) + half_digit(rate) * int(size) * 8e-3
        assert abs(from_rate - float(average)) <= slack * 1.001
        assert float(average) <= float(peak) <= bound
    server = path.with_name(path.name.replace(".log", ".server.log"))
    assert tables(server) == rows[-1:]


@pytest.mark.parametrize("path", [*perftest_logs("ib_*_lat")], ids=lambda p: f"{p.parent.parent.name}-{p.stem}")
def test_latency_columns_are_in_order(path: Path) -> None:
    """Minimum, median and percentiles are ordered, above 0.5 us and above the time the bytes take."""
    rate = PAYLOAD_GBYTE_S[path.parent.parent.name] * 1e3
    server = path.with_name(path.name.replace(".log", ".server.log"))
    assert len(tables(path)) == 23
    assert len(tables(server)) == (0 if "read" in path.name else 23)
    for size, _, low, high, typical, average, _, p99, p999 in (*tables(path), *tables(server)):
        assert 0.5 + int(size) / rate <= float(low) <= float(typical) <= float(p99) <= float(p999) <= float(high)
        assert float(typical) <= float(average) <= float(high)


def test_both_ends_of_a_pair_name_each_other() -> None:
    """Local address of one end is the remote address of the other, and no two pairs share one."""
    seen: set[str] = set()
    for path in perftest_logs("ib_*"):
        texts = path.read_text(), path.with_name(path.name.replace(".log", ".server.log")).read_text()
        local, remote = (
            [re.search(rf" {which} address: (.*(?:\n GID: .*)?)", text)[1] for text in texts]  # type: ignore[index]
            for which in ("local", "remote")
        )
        assert local == remote[::-1]
        assert all(text.endswith(RULE + "\n") for text in texts)
        address = path.parent.parent.name + local[0]
        assert address not in seen
        seen.add(address)


@pytest.mark.parametrize("path", sorted(SYNTHETIC.glob("tcp-100g/iperf3/*.json")), ids=lambda p: p.stem)
def test_iperf_sums_are_sums(path: Path) -> None:
    """Streams add up to intervals and intervals to the end, below the payload of the port."""
    document = json.loads(path.read_text())
    end, bound = document["end"], PAYLOAD_GBYTE_S["tcp-100g"] * 8e9
    assert document["start"]["test_start"]["num_streams"] == len(end["streams"]) == 8
    for interval in document["intervals"]:
        assert interval["sum"]["bytes"] == sum(s["bytes"] for s in interval["streams"])
        assert interval["sum"]["bits_per_second"] < bound
    assert end["sum_sent"]["bytes"] == sum(i["sum"]["bytes"] for i in document["intervals"])
    assert end["sum_received"]["bytes"] == sum(s["receiver"]["bytes"] for s in end["streams"])
    assert end["sum_received"]["bits_per_second"] == end["sum_received"]["bytes"] * 8 / end["sum_received"]["seconds"]


def test_ucx_client_shows_the_size_in_its_command() -> None:
    """The client's command names the size that its server prints; rate and overall latency agree."""
    for path in sorted(SYNTHETIC.glob("tcp-100g/ucx/tag_lat.[1-7].log")):
        lines = path.read_text().splitlines()
        assert lines[0] == "+ ucx_perftest synthetic-node-02 -t tag_lat -s 8 -n 10000"
        final = lines[-1].split()
        assert abs(1e6 / float(final[4]) - float(final[8])) < 10
        server = path.with_name(path.name.replace(".log", ".server.log")).read_text()
        assert "| Message size: 8 " in server


def test_every_pair_of_nodes_has_its_logs_and_two_faults() -> None:
    """28 collectives, 56 directions of both ends; an MTU of 1024 in one test, and node 06 below everyone else."""
    names = [f"{i:02d}" for i in range(1, 9)]
    unordered = {f"{a}-{b}" for a in names for b in names if a < b}
    directed = {f"{a}-{b}" for a in names for b in names if a != b}
    assert {p.name.split(".")[1] for p in PAIRS.glob("nccl/*")} == unordered
    assert {p.name.split(".")[1] for p in PAIRS.glob("perftest/*")} == directed
    assert len([*PAIRS.glob("perftest/*.server.log")]) == 56
    small = {p.name for p in PAIRS.glob("perftest/*") if " Mtu             : 1024[B]\n" in p.read_text()}
    assert small == {"ib_write_bw.03-05.log", "ib_write_bw.03-05.server.log"}
    assert all(p.read_text().count(" mtu 5 LID ") == 2 for p in PAIRS.glob("nccl/*"))
    speed = {p.name.split(".")[1]: float(tables(p)[-1][3]) for p in PAIRS.glob("perftest/*.server.log")}
    slow = {name: v for name, v in speed.items() if "06" in name}
    assert max(slow.values()) < 0.9 * min(v for name, v in speed.items() if name not in slow)
    assert sum(p.stat().st_size for p in PAIRS.rglob("*") if p.is_file()) < 500_000


@pytest.mark.parametrize("folder", ["synthetic", "synthetic-pairs", "softroce/repeats", "softroce/single"])
def test_each_log_belongs_to_one_fabric_at_most(folder: str) -> None:
    """Globs of the campaign file put every log into its fabric, and states of machines into none."""
    campaign = tomllib.loads((EXAMPLES / folder / "rdmalab.toml").read_text())
    claims: dict[Path, list[str]] = defaultdict(list)
    for fabric in campaign["fabric"]:
        for glob in fabric["logs"]:
            for path in (EXAMPLES / folder).glob(f"{glob}/*" if glob.endswith("**") else glob):
                if path.is_file():
                    claims[path].append(fabric["name"])
    assert [p for p, names in claims.items() if len(names) != 1] == []
    root = EXAMPLES / folder
    logs = {p for p in root.rglob("*.*") if p.is_file() and p.parent.name != "state" and p.parent != root}
    assert {p for p in logs if p.name != "commands.txt"} == set(claims)


def test_facts_of_ucx_clients_agree_with_commands_and_servers() -> None:
    """What the campaign file adds to a log stands in the command of the run and in the log of the other end."""
    found = 0
    for folder in (EXAMPLES / "softroce" / "repeats", EXAMPLES / "softroce" / "single"):
        campaign = tomllib.loads((folder / "rdmalab.toml").read_text())
        for facts, path in ((f, p) for f in campaign["facts"] for glob in f["logs"] for p in folder.glob(glob)):
            commands = dict(line.split("|", 1) for line in (path.parents[1] / "commands.txt").read_text().splitlines())
            test, size = facts["program"].split()[1], facts["size_bytes"]
            assert f"ucx_perftest -t {test} -s {size} " in commands[path.stem]
            assert f"| Message size: {size} " in (path.parents[1] / "server" / f"{path.stem}.server.log").read_text()
            found += 1
    assert found == 16
