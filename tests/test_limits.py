"""Promises of rdmalab.limits: tables recompute, worked examples hold, public measurements stay below their bounds."""

import math
import re
from fractions import Fraction
from typing import Any

import pytest

from rdmalab import limits
from rdmalab.limits import ScaleUp, cluster_limit, collective_limit, goodput_gbit_s, point_to_point_limit

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
        encoded = Fraction({"Gen3": 8, "Gen4": 16, "Gen5": 32}[row["generation"]] * lanes * 128, 130 * 8)
        ceiling = encoded * payload / (payload + 24)
        assert printed(encoded) == float(row["encoded_gbyte_s"]), row
        assert printed(Fraction(payload, payload + 24)) == float(row["tlp_efficiency"]), row
        assert printed(ceiling) == float(row["ceiling_gbyte_s"]), row
        assert printed(ceiling * 8) == float(row["ceiling_gbit_s"]), row
        expected = limits.pcie_expected_gbyte_s(row["generation"], lanes, payload)
        assert expected == pytest.approx(float(ceiling))


def test_gpus_recompute_from_their_links() -> None:
    """The scale-up rate of every GPU is that of its links."""
    for row in limits.table("gpus"):
        rate = limits.link_rate_gbit_s(row["family"], row["link"], int(row["lanes"]))
        assert rate is not None
        assert printed(rate / 8) == float(row["scale_up_gbyte_s"]), row


@pytest.mark.parametrize("name", ["links", "goodput", "pcie", "gpus"])
def test_every_fact_has_a_source_and_none_is_recalled(name: str) -> None:
    """Each row names its source; no recalled fact is in a table."""
    for row in limits.table(name):
        assert row["source"], row
        assert row["confidence"] in ("V", "V, secondary", "D"), row
        assert None not in row.values()


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
        ("NVIDIA H100 80GB HBM3", ScaleUp(450, "nvlink", True)),
        ("NVIDIA H200", ScaleUp(450, "nvlink", True)),
        ("NVIDIA H20", ScaleUp(450, "nvlink", True)),
        ("NVIDIA H800", ScaleUp(200, "nvlink", True)),
        ("NVIDIA GH200 120GB", ScaleUp(450, "nvlink", True)),
        ("NVIDIA B200", ScaleUp(900, "nvlink", True)),
        ("NVIDIA B300 SXM6 AC", ScaleUp(900, "nvlink", True)),
        ("NVIDIA GB200", ScaleUp(900, "nvlink", True)),
        ("NVIDIA A100-SXM4-40GB", ScaleUp(300, "nvlink", False)),
        ("A100-SXM4-80GB", ScaleUp(300, "nvlink", False)),
        ("NVIDIA A800-SXM4-80GB", ScaleUp(200, "nvlink", False)),
        ("Tesla V100-SXM2-16GB", ScaleUp(150, "nvlink", False)),
        ("AMD Instinct MI300X", ScaleUp(448, "xgmi", False)),
        ("Ascend 910B", ScaleUp(196, "hccs", False)),
    ],
)
def test_printed_gpu_names_are_known(name: str, expected: ScaleUp) -> None:
    """A name as the driver prints it gives rate per direction, family and whether NVLS is possible."""
    assert limits.scale_up(name) == expected


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
