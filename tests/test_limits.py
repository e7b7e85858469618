"""Promises of rdmalab.limits: tables recompute, worked examples hold, public measurements stay below their bounds."""

import math
import re
from fractions import Fraction
from typing import Any

import pytest

from rdmalab import limits
from rdmalab.limits import cluster_limit, collective_limit, goodput_gbit_s, point_to_point_limit

ML = "stas00/ml-engineering:network/README.md"
AWS = "aws-samples/awsome-distributed-training:micro-benchmarks/nccl-tests/README.md"
AKS = "Azure/aks-rdma-infiniband:tests/expected-output.md"
CW = "coreweave/nccl-tests:README.md"
CSCS = "eth-cscs/cscs-docs:docs/software/communication/nccl.md"
NDV4 = "microsoft/superbench-results:v0.4.0/Azure-NDmv4-A100/baseline.json"


def printed(value: Fraction | float) -> float:
    """A number as the tables print it, with six digits."""
    return float(f"{float(value):.6g}")


def bound(operation: str, k: int, g: int, r: float = 1.0, b: float | None = None, **facts: Any) -> float:
    """Bound in GB/s of k domains of g ranks, their ports carrying *r* GB/s together without headers."""
    found = collective_limit(
        operation, ranks=k * g, ranks_per_domain=g, domains=k, port_gbit_s=r, ports_per_domain=8, mtu_bytes=None,
        family="efa", scale_up_gbyte_s=b, **facts,
    )  # fmt: skip
    assert found.gbyte_s is not None, found.missing
    return found.gbyte_s


# Tables


def test_link_rates_recompute() -> None:
    """Every link row is lanes x raw rate x coding."""
    for row in limits.table("links"):
        rate = int(row["lanes"]) * Fraction(row["raw_gbit_s_per_lane"]) * Fraction(row["efficiency"])
        assert printed(rate) == float(row["data_gbit_s"]), row
        assert printed(rate / 8) == float(row["data_gbyte_s"]), row
        assert limits.link_rate_gbit_s(row["family"], row["name"], int(row["lanes"])) == float(rate)


def test_coding_is_what_the_encoding_says() -> None:
    """The efficiency of a link follows from the name of its coding."""
    for row in limits.table("links"):
        share = Fraction(1)
        for part, whole in re.findall(r"(\d+)b/(\d+)b", row["encoding"]):
            share *= Fraction(int(part), int(whole))
        for whole, part in re.findall(r"RS\((\d+),(\d+)\)", row["encoding"]):
            share *= Fraction(int(part), int(whole))
        for part, whole in re.findall(r"FLIT (\d+)/(\d+)", row["encoding"]):
            share *= Fraction(int(part), int(whole))
        assert share == Fraction(row["efficiency"]), row


def test_ethernet_rates_are_nominal() -> None:
    """The rate of an Ethernet link is the number in its name."""
    for row in limits.table("links"):
        if row["family"] == "ethernet":
            assert row["name"].startswith(f"{row['data_gbit_s']}GBASE")


def test_goodput_recomputes() -> None:
    """Every goodput row is payload over payload and headers, and the headers add up."""
    for row in limits.table("goodput"):
        payload, overhead = int(row["mtu_bytes"]) - int(row["headers_in_mtu_bytes"]), int(row["overhead_bytes"])
        assert printed(payload / (payload + overhead)) == float(row["efficiency"]), row
        assert sum(map(int, re.findall(r" (\d+)(?= \+|$)", row["headers"]))) == overhead, row


def test_pcie_recomputes() -> None:
    """Every PCIe row is the coded rate, and its share after 24 B around each payload."""
    for row in limits.table("pcie"):
        lanes, payload = int(row["lanes"]), int(row["max_payload_bytes"])
        encoded = Fraction({"Gen3": 8, "Gen4": 16, "Gen5": 32, "Gen6": 64}[row["generation"]] * lanes, 8)
        flits = row["generation"] == "Gen6"  # FLITs of 256 B carry 242, and of a packet of 255 B 240 are payload
        encoded *= Fraction(242, 256) if flits else Fraction(128, 130)
        share = Fraction(240, 255) if flits else Fraction(payload, payload + 24)
        ceiling = encoded * share
        assert printed(encoded) == float(row["encoded_gbyte_s"]), row
        assert printed(share) == float(row["tlp_efficiency"]), row
        assert printed(ceiling) == float(row["ceiling_gbyte_s"]), row
        assert printed(ceiling * 8) == float(row["ceiling_gbit_s"]), row
        expected = limits.pcie_expected_gbyte_s(row["generation"], lanes, payload)
        assert flits or expected == pytest.approx(float(ceiling))


def test_gpus_recompute_from_their_links() -> None:
    """The scale-up rate of every GPU is that of its links."""
    for row in limits.table("gpus"):
        rate = limits.link_rate_gbit_s(row["family"], row["link"], int(row["lanes"]))
        assert rate is not None
        assert printed(rate / 8) == float(row["scale_up_gbyte_s"]), row


def test_accelerators_recompute_from_their_links() -> None:
    """The rate of one direction is that of the links and half of the total; slots and links are those of the table."""
    for row in limits.table("accelerators"):
        if row["link"]:
            family, name, lanes = row["link"].split("/")
            rate = limits.link_rate_gbit_s(family, name, int(lanes))
            assert rate is not None, row
            assert printed(rate / 8) == float(row["scale_up_gbyte_s"]) == float(row["scale_up_total_gbyte_s"]) / 2
        assert not row["pcie"] or limits.slot_rate(row["pcie"]) is not None, row
        assert all(column in row for column in row["recalled"].split())
    for row in limits.table("nics"):
        slot = limits.slot_rate(row["host_link"])
        assert slot is not None, row
        assert float(slot.value) > float(row["port_gbit_s"]), row


@pytest.mark.parametrize("name", ["links", "goodput", "pcie", "gpus", "accelerators", "nics", "latency"])
def test_every_fact_has_a_source_and_says_how_it_is_known(name: str) -> None:
    """Each row names its source, and whether it was read, derived or recalled; no cell is left open at the end."""
    for row in limits.table(name):
        assert row["source"], row
        assert row["confidence"] in ("V", "V, secondary", "D", "R"), row
        assert None not in row.values()
        assert (row["confidence"] == "R") == row["source"].startswith(("recalled", "announced")), row


def test_public_runs_recompute() -> None:
    """Every derived column of the public collective runs follows from what was printed."""
    for row in limits.table("measured"):
        n, k = int(row["ranks"]), int(row["domains"])
        busbw, r, b = (
            float(row[c] or "nan") for c in ("busbw_gbyte_s", "network_gbyte_s_per_domain", "scale_up_gbyte_s")
        )
        flat = b if k == 1 else min(b, r)
        p2p = b if k == 1 else r * (n - 1) * k / (n * (k - 1))
        switches = 2 * b * (n - 1) / (n + 1) if k == 1 else 2 * r * (n - 1) / n
        assert printed(busbw / flat) == float(row["busbw_over_flat"]), row
        assert printed(p2p) == float(row["p2p_bound_gbyte_s"]), row
        assert printed(max(p2p, switches)) == float(row["in_network_bound_gbyte_s"]), row
        if row["algbw_gbyte_s"]:
            algbw = float(row["algbw_gbyte_s"])
            assert printed(2 / (2 - busbw / algbw)) == float(row["implied_ranks"]), row
        if row["least_wire_gbyte_s"]:
            algbw = float(row["algbw_gbyte_s"] or busbw * n / (2 * (n - 1)))
            wire = limits.minimum_wire_gbyte_s("all_reduce", algbw, k)
            assert wire is not None
            assert printed(wire) == float(row["least_wire_gbyte_s"]), row
            assert printed(wire / r) == float(row["least_wire_share"]), row
    for row in limits.table("wire"):
        overhead = 26 if row["stack"] == "ib-local" else 82
        mtu, line, measured = (float(row[c]) for c in ("mtu_bytes", "line_gbit_s", "measured_gbit_s"))
        most = line * mtu / (mtu + overhead) * int(row["directions"])
        assert printed(most) == float(row["bound_gbit_s"]), row
        assert printed(measured / most) == float(row["measured_over_bound"]), row
        assert printed(measured / line) == float(row["measured_over_line"]), row


# Payload of a link


@pytest.mark.parametrize(
    ("mtu", "roce", "roce_ipv6", "infiniband", "on_400g"),
    [
        (256, 75.74, 71.51, 90.78, 303.0),
        (512, 86.20, 83.39, 95.17, 344.8),
        (1024, 92.59, 90.94, 97.52, 370.3),
        (2048, 96.15, 95.26, 98.75, 384.6),
        (4096, 98.04, 97.57, 99.37, 392.1),
    ],
)
def test_rdma_goodput(mtu: int, roce: float, roce_ipv6: float, infiniband: float, on_400g: float) -> None:
    """Payload of a 100G link is MTU / (MTU + 82) in RoCEv2, + 102 with IPv6, + 26 in InfiniBand."""
    for found, expected in [
        (goodput_gbit_s("roce", 100, mtu), roce),
        (goodput_gbit_s("softroce", 100, mtu), roce),
        (goodput_gbit_s("roce", 100, mtu, ipv6=True), roce_ipv6),
        (goodput_gbit_s("infiniband", 100, mtu), infiniband),
    ]:
        assert found.gbit_s is not None
        assert round(found.gbit_s, 2) == expected
    whole = goodput_gbit_s("roce", 400, mtu).gbit_s
    assert whole is not None
    assert round(whole, 1) == on_400g


@pytest.mark.parametrize(("mtu", "share"), [(1500, 94.15), (9000, 99.00)])
def test_tcp_goodput(mtu: int, share: float) -> None:
    """TCP with timestamps carries (MTU - 52) / (MTU + 38); with IPv6 20 B less."""
    found = goodput_gbit_s("tcp", 100, mtu)
    assert found.gbit_s is not None
    assert round(found.gbit_s, 2) == share
    assert found.formula == f"100 Gb/s x ({mtu} - 52) / ({mtu} + 38)"
    assert goodput_gbit_s("tcp", 100, mtu, ipv6=True).gbit_s == pytest.approx(100 * (mtu - 72) / (mtu + 38))


@pytest.mark.parametrize("family", ["iwarp", "efa", "slingshot", "ethernet", "unknown", None])
def test_unknown_headers_take_nothing_off(family: str | None) -> None:
    """Where the headers are not known the limit is the link rate, and says so."""
    found = goodput_gbit_s(family, 200, 4096)
    assert (found.gbyte_s, found.formula) == (25, "200 Gb/s, headers not known")


def test_unknown_mtu_gives_the_larger_bound() -> None:
    """Without MTU the limit is that of 4096 in RDMA and the link rate in TCP."""
    known, unknown = goodput_gbit_s("infiniband", 400, 4096), goodput_gbit_s("infiniband", 400, None)
    assert known.gbyte_s == unknown.gbyte_s
    assert known.formula == "400 Gb/s x 4096 / (4096 + 26)"
    assert unknown.formula == "400 Gb/s x 4096 / (4096 + 26), MTU not known: the largest"
    assert goodput_gbit_s("tcp", 100, None).gbit_s == 100


@pytest.mark.parametrize(("family", "mtu"), [("roce", 1500), ("infiniband", 9000), ("tcp", 40), ("roce", 0)])
def test_foreign_mtu_is_refused(family: str, mtu: int) -> None:
    """An interface MTU is no RDMA MTU: no limit, and the field is named."""
    found = goodput_gbit_s(family, 100, mtu)
    assert (found.gbyte_s, found.gbit_s, found.missing) == (None, None, "mtu_bytes")


def test_missing_link_rate_is_named_and_wrong_ones_raise() -> None:
    """Without link rate there is no limit; a rate of 0 is an error."""
    assert goodput_gbit_s("roce", None, 4096).missing == "link_rate_gbit_s"
    assert point_to_point_limit("roce", None, 4096).missing == "link_rate_gbit_s"
    for wrong in (0, -100, math.inf, math.nan):
        with pytest.raises(ValueError, match="link_rate_gbit_s"):
            goodput_gbit_s("roce", wrong, 4096)


def test_both_directions_and_ports_add_up() -> None:
    """A bidirectional test on two ports has four times the payload rate of one port; one of unknown direction none."""
    one = goodput_gbit_s("infiniband", 200, 4096).gbyte_s
    assert one is not None
    found = point_to_point_limit("infiniband", 200, 4096, ports=2, bidirectional=True)
    assert found.gbyte_s == 4 * one
    assert found.formula == "2 directions x 2 ports x 200 Gb/s x 4096 / (4096 + 26)"
    assert point_to_point_limit("infiniband", 200, 4096).gbyte_s == one
    assert point_to_point_limit("infiniband", 200, 4096, bidirectional=None).missing == "bidirectional"


@pytest.mark.parametrize(
    ("family", "line_gbit_s", "measured_gbit_s", "bound_gbit_s", "source"),
    [
        ("roce", 100, 92.4, 98.0373, "NVIDIA/deepops:docs/k8s-cluster/roce-perf-k8s.md"),
        ("roce", 400, 381.41, 392.149, "google/dranet:examples/demo_gke_rdma/README.md"),
        ("infiniband", 200, 197.48, 198.738, AKS),
        ("infiniband", 200, 196.55, 198.738, AKS),
        ("infiniband", 200, 197.566, 198.738, "marconetto/azadventures:chapter17/README.md"),
        ("infiniband", 100, 96.6, 99.3692, "page forums.developer.nvidia.com 273376"),
        ("infiniband", 200, 191.512, 198.738, NDV4),
    ],
)
def test_public_perftest_runs_are_possible(
    family: str, line_gbit_s: float, measured_gbit_s: float, bound_gbit_s: float, source: str
) -> None:
    """No public run at MTU 4096 is above its limit."""
    found = point_to_point_limit(family, line_gbit_s, 4096).gbit_s
    assert found is not None
    assert printed(found) == bound_gbit_s
    assert measured_gbit_s <= found, source


# Scale-up


@pytest.mark.parametrize(
    ("name", "expected"),
    [
        ("NVIDIA H100 80GB HBM3", (450, "nvlink", True)),
        ("NVIDIA H200", (450, "nvlink", True)),
        ("NVIDIA H20", (450, "nvlink", True)),
        ("NVIDIA H800", (200, "nvlink", True)),
        ("NVIDIA GH200 120GB", (450, "nvlink", True)),
        ("NVIDIA B200", (900, "nvlink", True)),
        ("NVIDIA B300 SXM6 AC", (900, "nvlink", True)),
        ("NVIDIA GB200", (900, "nvlink", True)),
        ("NVIDIA A100-SXM4-40GB", (300, "nvlink", False)),
        ("A100-SXM4-80GB", (300, "nvlink", False)),
        ("NVIDIA A800-SXM4-80GB", (200, "nvlink", False)),
        ("Tesla V100-SXM2-16GB", (150, "nvlink", False)),
        ("AMD Instinct MI300X", (448, "xgmi", False)),
        ("Ascend 910B", (196, "hccs", False)),
    ],
)
def test_printed_gpu_names_are_known(name: str, expected: tuple[float, str, bool]) -> None:
    """A name as the driver prints it gives rate per direction, family and whether NVLS is possible."""
    found = limits.scale_up(name)
    assert found is not None
    assert found[:3] == expected
    assert found.source


def test_t4_speaks_pcie() -> None:
    """A T4 has no scale-up link: PCIe Gen3 x16, 8 GT/s x 16 x 128/130 / 8."""
    found = limits.scale_up("Tesla T4")
    assert found is not None
    assert (found.family, found.gbyte_s) == ("pcie", pytest.approx(8 * 16 * 128 / 130 / 8))


@pytest.mark.parametrize(
    "name",
    [
        "", "NVIDIA H100 PCIe", "NVIDIA H100 NVL", "NVIDIA H200 NVL", "NVIDIA H800 PCIe", "NVIDIA A100-PCIE-40GB",
        "NVIDIA A100 80GB PCIe", "Tesla V100-PCIE-16GB", "Tesla P100-PCIE-16GB", "NVIDIA A40", "NVIDIA T400",
        "NVIDIA A100-SXM4-40GB MIG 3g.20gb", "NVIDIA H100 80GB HBM3 + NVIDIA H200", "AMD Instinct MI210",
        "AMD Instinct MI250X", "AMD Instinct MI355X", "NVIDIA GB10",
    ],
)  # fmt: skip
def test_ambiguous_gpu_names_are_not_guessed(name: str) -> None:
    """PCIe cards, slices, mixtures and unknown models give nothing rather than the number of a relative."""
    assert limits.scale_up(name) is None


# Collectives


@pytest.mark.parametrize(("k", "factor"), [(2, 1.875), (4, 1.292), (8, 1.125), (16, 1.058)])
@pytest.mark.parametrize("operation", ["all_reduce", "all_gather", "reduce_scatter"])
def test_several_domains_pass_more_than_their_ports(operation: str, k: int, factor: float) -> None:
    """Domains of eight GPUs reach R (n-1) k / (n (k-1)): 1.875 R in two, 1.292 R in four."""
    assert round(bound(operation, k, 8), 3) == factor


def test_other_operations_across_domains() -> None:
    """Two domains of eight on 8 x 400 Gb/s: alltoall 93.75, broadcast and reduce 400, sendrecv 50 GB/s."""
    assert bound("alltoall", 2, 8, 400) == pytest.approx(93.75)
    assert bound("broadcast", 2, 8, 400) == bound("reduce", 2, 8, 400) == 400
    assert bound("sendrecv", 2, 8, 400) == 50
    assert bound("sendrecv", 2, 1, 400) == 400  # a rank alone in its domain may use all eight ports
    assert bound("sendrecv", 2, 3, 400) == 150  # three of the eight


def test_in_network_reduction_only_when_declared() -> None:
    """SHARP lifts all_reduce of 16 nodes on 400 GB/s from 423 to 793.75, and nothing else."""
    assert bound("all_reduce", 16, 8, 400) == pytest.approx(423.333, abs=1e-3)
    assert bound("all_reduce", 16, 8, 400, in_network=True) == 793.75
    assert bound("all_gather", 16, 8, 400, in_network=True) == bound("all_gather", 16, 8, 400)


def test_gpus_cap_what_ports_allow() -> None:
    """Two nodes of A100 on 200 GB/s: B + R/g = 325 is below 1.875 R = 375; NVLS could have passed it."""
    assert bound("all_gather", 2, 8, 200, 300) == 325
    assert bound("all_reduce", 2, 8, 200, 300, nvls_possible=False) == 325
    assert bound("all_reduce", 2, 8, 200, 300, nvls_possible=True, algorithm="Ring") == 325
    assert bound("all_reduce", 2, 8, 200, 300, nvls_possible=True) == 375
    assert bound("all_reduce", 2, 8, 4000, 100, nvls_possible=True) == 2 * 600 * 15 / 16


def test_one_domain_without_nvls_is_the_scale_up_rate() -> None:
    """A100 n=8: 300 for every operation; Ring and Tree exclude NVLS on H100 too."""
    for operation in ("all_reduce", "all_gather", "reduce_scatter", "broadcast", "alltoall", "sendrecv", "gather"):
        assert bound(operation, 1, 8, b=300, nvls_possible=False) == 300
    assert (
        bound("all_reduce", 1, 8, b=450, algorithm="Ring") == bound("all_reduce", 1, 8, b=450, algorithm="TREE") == 450
    )


@pytest.mark.parametrize(("b", "n", "expected"), [(450, 8, 700), (900, 8, 1400), (900, 72, 1750.68), (450, 2, 450)])
def test_one_domain_with_nvls(b: float, n: int, expected: float) -> None:
    """NVLS all_reduce reaches 2 B (n-1)/(n+1), of two GPUs no more than B; other operations stay at B."""
    assert round(bound("all_reduce", 1, n, b=b), 2) == expected
    assert bound("all_gather", 1, n, b=b) == b


def test_formula_carries_the_numbers() -> None:
    """The formula names the rule and shows the numbers put in."""
    ndr: dict[str, Any] = {"port_gbit_s": 400, "ports_per_domain": 8, "mtu_bytes": 4096, "family": "infiniband"}
    found = collective_limit(
        "all_gather", ranks=16, ranks_per_domain=8, domains=2, scale_up_gbyte_s=None, **ndr
    )  # fmt: skip
    assert found.formula == (
        "R (n - 1) k / (n (k - 1)) = 397.48 GB/s x 15 x 2 / (16 x 1); R = 8 ports x 400 Gb/s x 4096 / (4096 + 26)"
    )
    found = collective_limit("reduce", ranks=16, ranks_per_domain=8, domains=2, scale_up_gbyte_s=None, **ndr)
    assert found.formula == "R = 8 ports x 400 Gb/s x 4096 / (4096 + 26)"
    lifted = collective_limit("all_reduce", ranks=16, ranks_per_domain=8, domains=2, scale_up_gbyte_s=450, **ndr)
    assert "above B + R / g = 450 GB/s + 397.48 GB/s / 8 as NVLink SHARP may have reduced" in lifted.formula
    single = collective_limit("all_reduce", ranks=8, ranks_per_domain=8, domains=1, scale_up_gbyte_s=450, **ndr)
    assert single.formula == "NVLink SHARP: 2 B (n - 1) / (n + 1) = 2 x 450 GB/s x 7 / 9"


@pytest.mark.parametrize(
    ("change", "missing"),
    [
        ({"port_gbit_s": None}, "link_rate_gbit_s"),
        ({"ports_per_domain": None}, "ports_per_node"),
        ({"domains": None}, "gpus_per_node"),
        ({"ranks_per_domain": None}, "gpus_per_domain"),
        ({"ranks": None}, "ranks"),
        ({"operation": None}, "operation"),
        ({"port_gbit_s": None, "ranks": None, "operation": None}, "link_rate_gbit_s"),
        ({"domains": 1, "ranks_per_domain": 16, "scale_up_gbyte_s": None}, "scale_up_gbyte_s"),
        ({"mtu_bytes": 9000}, "mtu_bytes"),
        ({"ranks": 1}, "one rank measures no fabric"),
        ({"ranks": 15}, "equal domains"),
        ({"domains": 1}, "equal domains"),
        ({"operation": "gather"}, "a bound of gather across domains"),
        ({"operation": "alltoallv", "domains": 1, "ranks_per_domain": 16}, "a bound of alltoallv"),
    ],
)
def test_what_is_missing_is_named(change: dict[str, Any], missing: str) -> None:
    """A limit that cannot be known is None and names the first fact it lacks."""
    facts: dict[str, Any] = {
        "operation": "all_reduce", "ranks": 16, "ranks_per_domain": 8, "domains": 2, "port_gbit_s": 400,
        "ports_per_domain": 8, "mtu_bytes": 4096, "family": "roce", "scale_up_gbyte_s": 450,
    } | change  # fmt: skip
    found = collective_limit(facts.pop("operation"), **facts)
    assert (found.gbyte_s, found.missing) == (None, missing)


def test_numbers_that_cannot_be_raise() -> None:
    """Zero ranks or ports are an error, no missing fact."""
    facts: dict[str, Any] = {
        "ranks": 16, "ranks_per_domain": 8, "domains": 2, "port_gbit_s": 400, "ports_per_domain": 8,
        "mtu_bytes": 4096, "family": "roce", "scale_up_gbyte_s": 450,
    }  # fmt: skip
    for name in ("ranks", "ranks_per_domain", "domains", "port_gbit_s", "ports_per_domain", "scale_up_gbyte_s"):
        with pytest.raises(ValueError, match=name):
            collective_limit("all_reduce", **facts | {name: 0})


# From nodes to domains


def cluster(operation: str | None = "all_reduce", **change: Any) -> limits.Limit:
    """Two nodes of eight H100 with eight ports of 400 Gb/s, and what is changed."""
    facts: dict[str, Any] = {
        "ranks": 16, "nodes": 2, "gpu_model": "NVIDIA H100 80GB HBM3", "gpus_per_node": 8, "gpus_per_domain": None,
        "ports_per_node": 8, "link_rate_gbit_s": 400, "mtu_bytes": None, "family": "efa",
    } | change  # fmt: skip
    return cluster_limit(operation, **facts)


@pytest.mark.parametrize(
    ("change", "k", "g", "ports"),
    [
        ({}, 2, 8, 8),
        ({"gpus_per_node": None}, 2, 8, 8),
        ({"nodes": None}, 2, 8, 8),
        ({"ranks": 8}, 2, 4, 8),
        ({"ranks": 2}, 2, 1, 8),
        ({"gpus_per_domain": 8}, 2, 8, 8),
        ({"ranks": 32, "nodes": 8, "gpus_per_node": 4, "gpus_per_domain": 16, "ports_per_node": 4}, 2, 16, 16),
        ({"ranks": 144, "nodes": 36, "gpus_per_node": 4, "gpus_per_domain": 72, "ports_per_node": 4}, 2, 72, 72),
    ],
)
def test_nodes_become_domains(change: dict[str, Any], k: int, g: int, ports: int) -> None:
    """Domains are nodes, or the racks that the campaign file states, with all the ports of their nodes."""
    inputs = cluster(**change).inputs
    assert (inputs["domains"], inputs["ranks_per_domain"], inputs["ports"]) == (k, g, ports)


def test_one_node_needs_no_campaign_file() -> None:
    """Ranks of one node share a domain: the GPU alone gives the limit."""
    nothing = dict.fromkeys(("gpus_per_node", "ports_per_node", "link_rate_gbit_s"))
    assert cluster(ranks=8, nodes=1, **nothing).gbyte_s == 700
    assert cluster(ranks=8, nodes=1, scale_up_gbyte_s=100, gpu_model=None, **nothing).gbyte_s == pytest.approx(1400 / 9)
    assert cluster(ranks=8, nodes=1, gpu_model="NVIDIA H100 PCIe", **nothing).missing == "scale_up_gbyte_s"
    assert cluster(ranks=None, nodes=1, **nothing).missing == "ranks"
    assert cluster(ranks=8, nodes=4, gpus_per_node=2, gpus_per_domain=8).gbyte_s == 700


@pytest.mark.parametrize(
    ("change", "missing"),
    [
        ({"nodes": None, "gpus_per_node": None, "ranks": None}, "gpus_per_node"),
        ({"link_rate_gbit_s": None, "ports_per_node": None}, "link_rate_gbit_s"),
        ({"ports_per_node": None}, "ports_per_node"),
        ({"gpu_model": "NVIDIA GB200", "gpus_per_node": 4, "ranks": 8}, "gpus_per_domain"),
        ({"ranks": None}, "ranks"),
        ({"ranks": 1, "nodes": 1}, "one rank measures no fabric"),
        ({"ranks": 12, "nodes": 5}, "equal domains"),
        ({"ranks": 12, "nodes": None}, "equal domains"),
        ({"gpus_per_domain": 2}, "equal domains"),
        ({"ranks": 32, "nodes": 2}, "equal domains"),
        ({"ranks": 24, "nodes": 3, "gpus_per_domain": 16}, "equal domains"),
    ],
)
def test_unknown_shapes_are_refused(change: dict[str, Any], missing: str) -> None:
    """Uneven nodes, domains inside a node and racks that nobody stated give no limit."""
    found = cluster(**change)
    assert (found.gbyte_s, found.missing) == (None, missing)


def test_operation_is_asked_for_last() -> None:
    """A run whose operation the text leaves open has no limit."""
    assert cluster(None).missing == "operation"


# Public measurements


@pytest.mark.parametrize(
    ("busbw", "algbw", "k", "g", "port_gbit_s", "ports", "family", "gpu", "source"),
    [
        (234.89, 134.22, 1, 8, None, None, None, "NVIDIA A100-SXM4-80GB", ML),
        (235.112, 134.35, 1, 8, None, None, None, "NVIDIA A100-SXM4-80GB", NDV4),
        (482.26, 275.58, 1, 8, None, None, None, "NVIDIA H200", ML),
        (838, None, 1, 8, None, None, None, "NVIDIA B200", ML),
        (312.912, None, 1, 8, None, None, None, "AMD Instinct MI300X", ML),
        (834.57, 423.16, 1, 72, None, None, None, "NVIDIA GB200", CW),
        (487.09, 259.78, 2, 8, 100, 32, "efa", "NVIDIA H100 80GB HBM3", AWS),
        (78.33, 41.78, 2, 8, 100, 4, "efa", "NVIDIA A100-SXM4-80GB", AWS),
        (187.22, 99.85, 2, 8, 200, 8, "infiniband", "NVIDIA A100-SXM4-80GB", AKS),
        (381.8, None, 4, 8, 400, 8, "efa", "NVIDIA B200", ML),
        (386.56, 195.31, 12, 8, 400, 8, "infiniband", "NVIDIA H100 80GB HBM3", CW),
        (810.41, 408.4, 2, 64, 400, 64, "infiniband", "NVIDIA GB200", CW),
        (405.74, 203.01, 20, 72, 400, 72, "infiniband", "NVIDIA GB200", CW),
        (122.57, 70.04, 2, 4, 200, 4, "slingshot", "NVIDIA GH200 120GB", CSCS),
        (5.43, 3.1, 2, 4, 200, 4, "tcp", "NVIDIA GH200 120GB", CSCS),
    ],
)
def test_public_all_reduce_runs_are_possible(
    busbw: float, algbw: float | None, k: int, g: int, port_gbit_s: float | None, ports: int | None,
    family: str | None, gpu: str, source: str,
) -> None:  # fmt: skip
    """No public run is above its limit, and none needs more wire than its domains have."""
    up = limits.scale_up(gpu)
    assert up is not None
    found = collective_limit(
        "all_reduce", ranks=k * g, ranks_per_domain=g, domains=k, port_gbit_s=port_gbit_s, ports_per_domain=ports,
        mtu_bytes=None, family=family, scale_up_gbyte_s=up.gbyte_s, nvls_possible=up.nvls_possible,
    )  # fmt: skip
    assert found.gbyte_s is not None
    assert busbw <= found.gbyte_s, source
    if algbw and port_gbit_s and ports:
        wire = limits.minimum_wire_gbyte_s("all_reduce", algbw, k)
        assert wire is not None
        assert wire <= port_gbit_s * ports / 8, source


@pytest.mark.parametrize(
    ("gpu", "port_gbit_s", "ports", "bound_gbyte_s", "asked_gbyte_s"),
    [
        ("NVIDIA A100-SXM4-40GB", 100, 4, 93.75, 300),
        ("NVIDIA H100 80GB HBM3", 100, 32, 750, 800),
        ("NVIDIA B200", 400, 8, 750, 900),
    ],
)
def test_a_health_check_that_nobody_can_pass(
    gpu: str, port_gbit_s: float, ports: int, bound_gbyte_s: float, asked_gbyte_s: float
) -> None:
    """What a public health check asks of two EFA nodes is above the limit (aws-samples, 5-nccl-allreduce.sh)."""
    found = cluster(gpu_model=gpu, link_rate_gbit_s=port_gbit_s, ports_per_node=ports).gbyte_s
    assert found == pytest.approx(bound_gbyte_s)
    assert asked_gbyte_s > bound_gbyte_s


def test_minimum_wire_rate() -> None:
    """259.78 GB/s of algbw on two nodes needs as much on the wire, 65 % of 400; on four 1.5 times; inside one none."""
    assert limits.minimum_wire_gbyte_s("all_reduce", 259.78, 2) == 259.78
    assert limits.minimum_wire_gbyte_s("all_reduce", 100, 4) == 150
    assert (
        limits.minimum_wire_gbyte_s("all_gather", 100, 4) == limits.minimum_wire_gbyte_s("reduce_scatter", 100, 4) == 75
    )
    assert limits.minimum_wire_gbyte_s("all_reduce", 100, 1) == 0
    assert limits.minimum_wire_gbyte_s("alltoall", 100, 4) is None
    with pytest.raises(ValueError, match="domains"):
        limits.minimum_wire_gbyte_s("all_reduce", 100, 0)


@pytest.mark.parametrize(
    ("busbw", "algbw", "ranks", "within"),
    [(234.89, 134.22, 8, 0.01), (487.09, 259.78, 16, 0.01), (386.56, 195.31, 96, 0.5), (810.41, 408.4, 128, 0.5)],
)
def test_ranks_follow_from_the_two_bandwidths(busbw: float, algbw: float, ranks: int, within: float) -> None:
    """A log labelled 64 GPUs shows 96, one labelled rank 143 shows 128."""
    found = limits.implied_ranks(busbw, algbw)
    assert found is not None
    assert abs(found - ranks) < within


def test_implied_ranks_of_other_operations() -> None:
    """all_gather of 8: 7/8. A factor of 2 or more, and operations without a factor, imply nothing."""
    assert limits.implied_ranks(87.5, 100, "all_gather") == 8
    assert limits.implied_ranks(200, 100) is None
    assert limits.implied_ranks(100, 100, "broadcast") is None
    with pytest.raises(ValueError, match="algbw_gbyte_s"):
        limits.implied_ranks(1, 0)


# Slots, meshes, algorithms


def test_a_slot_caps_its_port() -> None:
    """400G behind Gen4 x16 carries 16 GT/s x 16 x 128/130 = 252.06 Gb/s; Gen5 x16 takes nothing off, nor does Gen6."""
    found = point_to_point_limit("infiniband", 400, 4096, pcie="Gen4 x16")
    assert found.gbit_s == pytest.approx(16 * 16 * 128 / 130)
    assert (found.formula, found.flag) == ("PCIe Gen4 x16, 252.062 Gb/s", "V")
    assert "pci.h" in found.source
    for slot in ("Gen5 x16", "Gen6 x8", None):
        plain = point_to_point_limit("infiniband", 400, 4096, pcie=slot)
        assert plain.formula == "400 Gb/s x 4096 / (4096 + 26)"
    assert point_to_point_limit("infiniband", 800, 4096, pcie="Gen6 x4").gbit_s == pytest.approx(800 * 4096 / 4122)
    two = point_to_point_limit("roce", 400, 4096, ports=2, bidirectional=True, pcie="Gen4 x8").gbit_s
    assert two == pytest.approx(4 * 16 * 8 * 128 / 130)


def test_a_slot_caps_a_cluster() -> None:
    """Two nodes of A100 with eight 400G ports in Gen4 x16: R = 8 x 31.51, capped by B + R/g = 300 + 31.51."""
    slot = 16 * 16 * 128 / 130 / 8
    assert cluster(gpu_model="NVIDIA A100-SXM4-80GB", pcie="Gen4 x16").gbyte_s == pytest.approx(300 + slot)
    reduced = cluster("broadcast", gpu_model="NVIDIA A100-SXM4-80GB", pcie="Gen4 x16")
    assert reduced.gbyte_s == pytest.approx(8 * slot)
    assert reduced.formula == "R = 8 ports x PCIe Gen4 x16, 252.062 Gb/s"


@pytest.mark.parametrize(
    ("gpu", "ranks", "operation", "expected"),
    [
        ("AMD Instinct MI300X", 8, "all_reduce", 448),
        ("AMD Instinct MI300X", 2, "all_reduce", 64),
        ("AMD Instinct MI300X", 4, "all_gather", 192),
        ("AMD Instinct MI300X", 8, "sendrecv", 64),
        ("Ascend 910B", 2, "sendrecv", 28),
        ("Ascend 910B", 8, "all_reduce", 196),
        ("NVIDIA A100-SXM4-80GB", 2, "sendrecv", 300),
    ],
)
def test_a_pair_of_a_full_mesh_has_one_link(gpu: str, ranks: int, operation: str, expected: float) -> None:
    """n GPUs of a full mesh use n - 1 links each, a pair one of 64 or 28 GB/s; NVSwitch gives a pair all links."""
    found = cluster(operation, gpu_model=gpu, ranks=ranks, nodes=1)
    assert found.gbyte_s == pytest.approx(expected)
    up = limits.scale_up(gpu)
    assert up is not None
    assert up.source in found.source
    if ranks == 2:
        assert up.pair_gbyte_s == expected


def test_every_algorithm_has_its_bound() -> None:
    """16 nodes of eight H100 on 400 GB/s: 423.3 on the GPUs alone, 793.75 in the network; one node: 450, NVLS 700."""
    many: dict[str, Any] = {
        "ranks": 128, "ranks_per_domain": 8, "domains": 16, "port_gbit_s": 400, "ports_per_domain": 8,
        "mtu_bytes": None, "family": "efa", "scale_up_gbyte_s": 450,
    }  # fmt: skip
    found = {k: round(v.gbyte_s or 0, 2) for k, v in limits.algorithm_limits("all_reduce", **many).items()}
    assert found == {"Ring": 423.33, "Tree": 423.33, "NVLS": 423.33, "CollNet": 793.75}
    one = many | {"ranks": 8, "domains": 1}
    found = {k: v.gbyte_s for k, v in limits.algorithm_limits("all_reduce", **one).items()}
    assert found == {"Ring": 450, "Tree": 450, "NVLS": 700}
    assert list(limits.algorithm_limits("all_reduce", **one, nvls_possible=False)) == ["Ring", "Tree"]
    assert {v.gbyte_s for v in limits.algorithm_limits("all_gather", **one).values()} == {450}


def test_a_rack_is_one_domain() -> None:
    """72 GB200 of one rack: 900 each, 1750.68 by NVLS; two racks of 64 on 400G a GPU need the network."""
    rack = {"gpu_model": "NVIDIA GB200", "gpus_per_node": 4, "gpus_per_domain": 72, "ports_per_node": 4}
    assert printed(cluster(ranks=72, nodes=18, **rack).gbyte_s or 0) == 1750.68
    assert cluster("all_gather", ranks=72, nodes=18, **rack).gbyte_s == 900


# Three answers

H100 = {"gpu_model": "NVIDIA H100 80GB HBM3", "family": "efa", "link_rate_gbit_s": 400, "ports_per_domain": 8}
TWO_NODES = {**H100, "ranks": 16, "domains": 2}


@pytest.mark.parametrize(
    ("gbyte_s", "facts", "verdict", "missing"),
    [
        (750, {}, "open", ("in_network", "nvls")),
        (490, {"in_network": False, "nvls": False}, "possible", ()),
        (499, {"in_network": False, "nvls": False}, "possible", ()),
        (502, {"in_network": False, "nvls": False}, "impossible", ()),
        (500, {}, "possible", ()),
        (751.4, {"in_network": False, "nvls": True}, "possible", ()),
        (752, {"in_network": False, "nvls": True}, "impossible", ()),
        (752, {}, "impossible", ()),
        (3000, {"ports_per_domain": None}, "open", ("ports_per_domain",)),
        (3000, {"link_rate_gbit_s": None}, "open", ("link_rate_gbit_s",)),
        (3000, {"link_rate_gbit_s": None, "nic": "ConnectX-7"}, "impossible", ()),
        (3000, {"link_rate_gbit_s": None, "nic": "a card of ours"}, "open", ("link_rate_gbit_s",)),
    ],
)
def test_a_verdict_needs_every_choice_to_agree(
    gbyte_s: float, facts: dict[str, Any], verdict: str, missing: tuple[str, ...]
) -> None:
    """Two nodes of eight H100 on 400 GB/s: 500 on the GPUs alone, 750 in switches; what is missing is named."""
    found = limits.judge("all_reduce", gbyte_s, TWO_NODES | facts)
    assert found.verdict == verdict, found
    assert set(found.missing) == set(missing)
    assert verdict == "open" or (found.formula and found.source)


def test_bounds_of_what_is_missing() -> None:
    """The least and the greatest bound over ports, switches and domains that nobody states."""
    found = limits.bounds("all_reduce", TWO_NODES)
    assert found is not None
    assert (found.low.gbyte_s, found.high.gbyte_s) == (500, 750)
    assert limits.bounds("all_reduce", {**H100, "ranks": 16, "gpus_per_domain": 8}) == found
    inside = limits.bounds("all_reduce", {"gpu_model": "NVIDIA H100 80GB HBM3", "ranks": 8, "domains": 1})
    assert inside is not None
    assert (inside.low.gbyte_s, inside.high.gbyte_s, inside.missing) == (450, 700, ("nvls",))
    anything = limits.bounds(None, {"ranks": 16})
    assert anything is not None
    assert anything.high.gbyte_s == math.inf
    assert limits.bounds("gather", TWO_NODES) is None
    refused = limits.judge("gather", 1, TWO_NODES)
    assert (refused.verdict, refused.missing) == ("open", ("a bound of gather across domains",))


def test_recalled_facts_make_nothing_impossible() -> None:
    """Only second-hand documents know H20 and 910B; that an A100 host has Gen4 slots is recalled."""
    alone = {"ranks": 8, "domains": 1}
    assert limits.judge("all_gather", 460, {**alone, "gpu_model": "NVIDIA H20"}).verdict == "implausible"
    assert limits.judge("all_gather", 460, {**alone, "gpu_model": "NVIDIA H200"}).verdict == "impossible"
    host = {"gpu_model": "NVIDIA A100-SXM4-80GB", "family": "infiniband", "link_rate_gbit_s": 400, "mtu_bytes": 4096}
    found = limits.judge("write", 40, {**host, "ports": 1, "bidirectional": False})
    assert (found.verdict, found.missing) == ("open", ("pcie",))
    assert limits.judge("write", 40, {**host, "ports": 1, "bidirectional": False, "pcie": "Gen4 x16"}).verdict == (
        "impossible"
    )
    assert limits.judge("write", 31.5, {**host, "ports": 1, "bidirectional": False}).verdict == "possible"


def test_the_direction_of_a_test_is_asked_for() -> None:
    """720 Gb/s on NDR is both directions: possible if the test says so, impossible if it does not, else open."""
    ndr = {"family": "infiniband", "link_rate_gbit_s": 400, "mtu_bytes": 4096, "ports": 1}
    assert limits.judge("write", 90, {**ndr, "bidirectional": True}).verdict == "possible"
    assert limits.judge("write", 90, {**ndr, "bidirectional": False}).verdict == "impossible"
    found = limits.judge("write", 90, ndr)
    assert (found.verdict, found.missing) == ("open", ("bidirectional",))


def test_an_unknown_fact_is_a_mistake() -> None:
    """A misspelt fact would be varied in silence."""
    with pytest.raises(ValueError, match="Did you mean 'domains'"):
        limits.judge("all_reduce", 1, {"domain": 2})


def test_no_public_run_is_impossible() -> None:
    """Whatever is left out of what was published, no collective and no wire run is called impossible."""
    for row in limits.table("measured"):
        facts: dict[str, Any] = {"ranks": int(row["ranks"]), "domains": int(row["domains"])}
        facts["scale_up_gbyte_s"] = float(row["scale_up_gbyte_s"])
        if network := row["network_gbyte_s_per_domain"]:
            facts |= {"link_rate_gbit_s": float(network) * 8, "ports_per_domain": 1}
        for without in ((), *((name,) for name in facts), ("ranks", "domains"), tuple(facts)):
            known = {k: v for k, v in facts.items() if k not in without}
            judged = limits.judge(row["operation"], float(row["busbw_gbyte_s"]), known)
            assert judged.verdict in ("possible", "open"), (row["run"], without, judged)
            assert judged.verdict == "possible" or judged.missing
    for row in limits.table("wire"):
        family = "infiniband" if row["stack"] == "ib-local" else "roce"
        facts = {"family": family, "link_rate_gbit_s": float(row["line_gbit_s"]), "mtu_bytes": int(row["mtu_bytes"])}
        for known in (facts, {**facts, "ports": 1, "bidirectional": False}, {}):
            judged = limits.judge("write", float(row["measured_gbit_s"]) / 8, known)
            assert judged.verdict == "possible" or (judged.verdict == "open" and not known), (row, judged)


def test_labels_of_public_runs_are_held_against_their_numbers() -> None:
    """A log labelled 64 GPUs shows 96, one labelled 143 shows 128; all ranks of the table fit the printed digits."""
    for row in limits.table("measured"):
        if row["algbw_gbyte_s"]:
            busbw, algbw = float(row["busbw_gbyte_s"]), float(row["algbw_gbyte_s"])
            # 20 racks: 1440 of 1439.7 to 1460.6; NDv4 prints three decimals of one and two of the other
            assert limits.ranks_agree(busbw, algbw, int(row["ranks"])), row
            if row["stated_ranks"]:
                assert limits.ranks_agree(busbw, algbw, int(row["stated_ranks"])) is False, row
    assert {r["stated_ranks"] for r in limits.table("measured")} == {"", "64", "143"}
    assert limits.ranks_agree(100, 100, 8, "broadcast") is None
    assert limits.ranks_that_fit(200, 100) is None


def test_few_digits_allow_many_ranks() -> None:
    """0.14 over 0.08 GB/s of all_reduce: from 0.135/0.085 (4.86 ranks) to more than any, as 0.145/0.075 is nearly 2."""
    fit = limits.ranks_that_fit(0.14, 0.08)
    assert fit is not None
    assert fit[0] == pytest.approx(2 / (2 - 0.135 / 0.085))
    assert fit[1] == pytest.approx(2 / (2 - 0.145 / 0.075))
    assert limits.ranks_that_fit(0.15, 0.08) == (pytest.approx(2 / (2 - 0.145 / 0.085)), math.inf)


# Latency


@pytest.mark.parametrize(
    ("ranks", "domains", "algorithm", "protocol", "us"),
    [
        (8, 1, "Ring", "LL", 15.0), (8, 1, "Tree", "LL", 15.2), (8, 1, "Ring", "Simple", 56.0),
        (8, 1, "Tree", "Simple", 64.4), (8, 2, "Tree", "LL", 20.4), (16, 2, "Ring", "LL", 40.0),
        (16, 2, "Tree", "LL", 25.2), (16, 2, "Ring", "Simple", 131.6), (16, 2, "Tree", "Simple", 92.4),
        (64, 8, "Ring", "LL", 156.4), (64, 8, "Tree", "LL", 45.2), (64, 8, "Ring", "Simple", 585.2),
        (64, 8, "Tree", "Simple", 148.4), (10240, 1280, "Tree", "LL", 115.2), (10240, 1280, "Tree", "Simple", 344.4),
    ],
)  # fmt: skip
def test_the_model_of_nccl(ranks: int, domains: int, algorithm: str, protocol: str, us: float) -> None:
    """The constants of tuning.cc give these latencies of a small all_reduce."""
    assert limits.latency_model_us(ranks, domains, algorithm, protocol) == pytest.approx(us)


def test_the_model_of_nccl_answers_nothing_else() -> None:
    """Other algorithms, and ranks that do not fill the domains, have no model."""
    assert (
        limits.latency_model_us(8, 3) is limits.latency_model_us(8, 1, "PAT") is limits.latency_model_us(1, 1) is None
    )
    with pytest.raises(ValueError, match="convention"):
        limits.traversal_us("both")


@pytest.mark.parametrize(
    ("us", "how", "verdict", "missing"),
    [
        (0.4, {"convention": "one_way", "family": "infiniband"}, "impossible", ()),
        (0.6, {"convention": "one_way", "family": "infiniband"}, "possible", ()),
        (0.6, {"convention": "round_trip", "family": "infiniband"}, "impossible", ()),
        (0.6, {"convention": None, "family": "infiniband"}, "open", ("latency_convention",)),
        (0.4, {"convention": "one_way", "family": None}, "open", ("family",)),
        (0.4, {"convention": "one_way", "family": "nvlink"}, "possible", ()),
        (0.9, {"convention": "one_way", "family": "roce", "metres": 100}, "impossible", ()),
        (23.7, {"convention": "one_way", "family": "roce", "ranks": 10240, "domains": 1280}, "implausible",
         ("in_network",)),
        (23.7, {"convention": "one_way", "family": "roce", "ranks": 10240, "domains": 1280, "in_network": True},
         "possible", ()),
        (17.4, {"convention": "one_way", "family": "slingshot", "ranks": 8, "domains": 2}, "possible", ()),
    ],
)  # fmt: skip
def test_latencies(us: float, how: dict[str, Any], verdict: str, missing: tuple[str, ...]) -> None:
    """Below one traversal of an adapter nothing is possible; far below the model is implausible at most."""
    found = limits.judge_latency(us, **how)
    assert (found.verdict, found.missing) == (verdict, missing)


# Facts of parts


def test_facts_of_gpus_and_cards() -> None:
    """Memory and power by printed name, each with flag and source; unknown names give nothing."""
    h100 = limits.accelerator("NVIDIA H100 80GB HBM3")
    assert h100 is not None
    assert h100.memory_gbyte is not None
    assert h100.tdp_w is not None
    assert h100.pcie is not None
    assert (h100.memory_gbyte.value, h100.tdp_w.value, h100.tdp_w.flag, h100.pcie.value) == (80, 700, "V", "Gen5 x16")
    assert h100.pcie.flag == "R"
    a100 = limits.accelerator("NVIDIA A100-SXM4-40GB")
    assert a100 is not None
    assert a100.memory_bandwidth_gbyte_s is not None
    assert a100.memory_bandwidth_gbyte_s.value == 1555
    card = limits.nic("Mellanox ConnectX-6 Dx")
    assert card is not None
    assert (card.port_gbit_s.value, card.host_link[:2]) == (200, ("Gen4 x16", "R"))
    assert limits.accelerator("NVIDIA A40") is limits.nic("E810") is None


@pytest.mark.parametrize(
    ("gbyte_s", "verdict", "missing"),
    [
        (12.6, "impossible", ()),
        (12.45, "open", ("family",)),
        (12.0, "open", ("family", "mtu_bytes")),
        (5.0, "possible", ()),
    ],
)
def test_a_family_that_nobody_states_is_varied(gbyte_s: float, verdict: str, missing: tuple[str, ...]) -> None:
    """100 Gb/s are 12.5 GB/s on the line, 12.25 after RoCE's headers at MTU 4096 and 9.47 at 256."""
    found = limits.judge("write", gbyte_s, {"link_rate_gbit_s": 100.0, "ports": 1, "bidirectional": False})
    assert (found.verdict, found.missing) == (verdict, missing)
