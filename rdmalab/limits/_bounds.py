"""Upper bounds: payload rates of ports, scale-up rates of GPUs, the largest busbw of a collective."""

import math
from dataclasses import dataclass, field
from typing import Any, NamedTuple

from rdmalab.limits._tables import DERIVED, RECALLED, flag_of, gpu_row, link_rate_gbit_s, slot_rate, table, weakest

RDMA_MTUS = (256, 512, 1024, 2048, 4096)  # torvalds/linux:include/rdma/ib_verbs.h, enum ib_mtu
BUSBW_SOURCE = "NVIDIA/nccl-tests:doc/PERFORMANCE.md (busbw); the least traffic that the operation needs"
NVLS_SOURCE = "NVIDIA/nccl:docs/userguide/source/env.rst (NCCL_NVLS_ENABLE)"

_STACK = {"infiniband": "ib-local", "roce": "roce2-ipv4", "softroce": "roce2-ipv4", "tcp": "tcp-ipv4-timestamps"}
# operations in which a rank (the root, or every one) must send or receive busbw x time bytes: nccl-tests:src/*.cu
_WITHIN = (
    "all_reduce", "all_gather", "reduce_scatter", "broadcast", "reduce", "gather", "scatter", "alltoall", "sendrecv",
    "hypercube",
)  # fmt: skip
_POINT_TO_POINT = ("ring", "tree", "pat")  # algorithms of NCCL that reduce on the GPUs alone
_IN_NETWORK = ("collnetdirect", "collnetchain", "collnet", "sharp")  # and those that need switches that reduce
_FULL_MESH = ("xgmi", "hccs")  # every GPU has one link to every other; NVSwitch gives a pair all links
STATED = "rates as stated"


@dataclass(frozen=True, slots=True, kw_only=True)
class Limit:
    """
    An upper bound in 10^9 byte/s, payload only, with the way it was found; ``missing`` names what it lacks otherwise.

    ``formula`` has the numbers put in, ``inputs`` holds them by name, ``source`` names the rows of the tables, and
    ``flag`` is the weakest of their facts: V read, D derived, R recalled or second-hand: that makes nothing impossible.
    """

    gbyte_s: float | None
    formula: str
    inputs: dict[str, Any] = field(default_factory=dict)
    missing: str | None = None
    source: str = ""
    flag: str = DERIVED

    @property
    def gbit_s(self) -> float | None:
        """The same in 10^9 bit/s, the unit of links."""
        return None if self.gbyte_s is None else self.gbyte_s * 8


class ScaleUp(NamedTuple):
    """
    What joins the GPUs of a domain: rate of one GPU per direction over all its links; family nvlink, xgmi, hccs, pcie.

    ``pair_gbyte_s`` is what two of them have between each other: all links through NVSwitch, one link of a full mesh.
    """

    gbyte_s: float
    family: str
    nvls_possible: bool
    links: int
    source: str
    flag: str

    @property
    def full_mesh(self) -> bool:
        """Whether a link joins two GPUs directly, so that a pair has that one link alone."""
        return self.family in _FULL_MESH

    @property
    def pair_gbyte_s(self) -> float:
        """Rate of one pair of GPUs per direction."""
        return self.gbyte_s / self.links if self.full_mesh else self.gbyte_s


def goodput_gbit_s(
    family: str | None, link_rate_gbit_s: float | None, mtu_bytes: int | None, *, ipv6: bool = False
) -> Limit:
    """
    Payload rate of one port in one direction, with the least headers that the facts allow.

    InfiniBand: local headers of 26 B. RoCE, Soft-RoCE: RoCEv2 of 82 B, with IPv6 102 B. TCP: IPv4 (or IPv6) and
    timestamps, (MTU - 52) / (MTU + 38). Other families, and TCP of unknown MTU: the link rate itself.

    Args:
        family: A fabric family.
        link_rate_gbit_s: Data rate of the port, as sold: 100, 200, 400.
        mtu_bytes: RDMA MTU (256 to 4096) for InfiniBand and RoCE, 4096 where not known; interface MTU for TCP.
        ipv6: The packets are known to be IPv6.

    Raises:
        ValueError: The link rate is not positive.
    """
    _require_positive(link_rate_gbit_s=link_rate_gbit_s)
    if link_rate_gbit_s is None:
        return _refused("link_rate_gbit_s")
    inputs = {"family": family, "link_rate_gbit_s": link_rate_gbit_s, "mtu_bytes": mtu_bytes}
    line = f"{link_rate_gbit_s:g} Gb/s"
    stack = _STACK.get(family or "", "")
    if not stack or (family == "tcp" and mtu_bytes is None):
        formula = f"{line}, {'MTU' if stack else 'headers'} not known"
        return Limit(gbyte_s=link_rate_gbit_s / 8, formula=formula, inputs=inputs, source="the link rate as stated")
    row = _headers(stack.replace("ipv4", "ipv6") if ipv6 else stack)
    overhead, inside = int(row["overhead_bytes"]), int(row["headers_in_mtu_bytes"])
    mtu = RDMA_MTUS[-1] if mtu_bytes is None else mtu_bytes
    if (mtu <= inside) if inside else (mtu not in RDMA_MTUS):
        return _refused("mtu_bytes", f"{mtu} is no {'interface' if inside else 'RDMA'} MTU", inputs)
    payload, above = (f"({mtu} - {inside})", overhead - inside) if inside else (f"{mtu}", overhead)
    formula = f"{line} x {payload} / ({mtu} + {above})" + (", MTU not known: the largest" if mtu_bytes is None else "")
    share = (mtu - inside) / (mtu + above)
    return Limit(
        gbyte_s=link_rate_gbit_s / 8 * share, formula=formula, inputs=inputs, source=row["source"],
        flag=weakest(flag_of(row["confidence"]), DERIVED),
    )  # fmt: skip


def point_to_point_limit(
    family: str | None, link_rate_gbit_s: float | None, mtu_bytes: int | None, *, ports: int = 1,
    bidirectional: bool | None = False, pcie: str | None = None,
) -> Limit:  # fmt: skip
    """
    Payload rate between two hosts: :func:`goodput_gbit_s` of the ports used, both directions summed if bidirectional.

    Args:
        pcie: The slot of a port, ``Gen4 x16``: a port carries no more than its slot, 252 Gb/s here.
        ports: Ports that carried the test; one, unless the test says that it used two.
        bidirectional: Whether the tool printed the sum of both directions; None where that is not known.

    Raises:
        ValueError: The link rate or *ports* is not positive.
    """
    _require_positive(ports=ports)
    one = _through(pcie, goodput_gbit_s(family, link_rate_gbit_s, mtu_bytes))
    if one.gbyte_s is None:
        return one
    if bidirectional is None:
        return _refused("bidirectional", inputs=one.inputs)
    formula = f"{ports} ports x {one.formula}" if ports > 1 else one.formula
    return Limit(
        gbyte_s=one.gbyte_s * ports * (2 if bidirectional else 1),
        formula=f"2 directions x {formula}" if bidirectional else formula,
        inputs=one.inputs | {"ports": ports, "bidirectional": bidirectional},
        source=one.source, flag=one.flag,
    )  # fmt: skip


def _through(slot: str | None, port: Limit) -> Limit:
    """What a port carries behind its slot; a recalled rate of a slot takes nothing off."""
    rate = slot_rate(slot) if slot else None
    if rate is None or port.gbit_s is None or rate.flag == RECALLED or float(rate.value) >= port.gbit_s:
        return port
    return Limit(
        gbyte_s=float(rate.value) / 8, formula=f"PCIe {slot}, {float(rate.value):.6g} Gb/s",
        inputs=port.inputs | {"pcie": slot}, source=rate.source, flag=rate.flag,
    )  # fmt: skip


def scale_up(gpu_model: str) -> ScaleUp | None:
    """
    What joins GPUs of this printed name: ``NVIDIA H100 80GB HBM3`` is NVLink, 450 GB/s per direction, NVLS possible.

    Only whole names match. None for unknown or mixed models, for MIG slices, and for PCIe cards that a bridge may join
    in pairs (``NVIDIA H100 PCIe``, ``NVIDIA A100-PCIE-40GB``, ``NVIDIA H200 NVL``): the name does not say it.
    """
    row = gpu_row(gpu_model)
    rate = link_rate_gbit_s(row["family"], row["link"], int(row["lanes"])) if row else None
    if row is None or rate is None:
        return None
    flag = flag_of(row["confidence"])
    return ScaleUp(rate / 8, row["family"], row["nvls"] == "yes", int(row["lanes"]), row["source"], flag)


def collective_limit(
    operation: str | None, *, ranks: int | None, ranks_per_domain: int | None, domains: int | None,
    port_gbit_s: float | None, ports_per_domain: int | None, mtu_bytes: int | None, family: str | None,
    scale_up_gbyte_s: float | None, algorithm: str | None = None, nvls_possible: bool = True, in_network: bool = False,
    pcie: str | None = None, mesh_links: int | None = None, scale_up_source: str = STATED, scale_up_flag: str = DERIVED,
) -> Limit:  # fmt: skip
    """
    The largest busbw that ranks, domains and ports allow, in GB/s.

    One domain: B, for all_reduce 2 B (n-1)/(n+1) where NVLink SHARP may have reduced in the switch. Several: what must
    leave or enter each domain at R, and no more than B + R/g on average of its GPUs.

    Args:
        ranks_per_domain: GPUs of a scale-up domain that take part, the same in all.
        port_gbit_s: Link rate of one port.
        ports_per_domain: Ports of a domain that may carry the traffic.
        scale_up_gbyte_s: B; needed in one domain, else its share of the bound is left open.
        algorithm: As NCCL names it, where every row of the run is known to have used it; Ring, Tree, PAT exclude NVLS
            and the network, CollNet says that the network reduces.
        nvls_possible: As :func:`scale_up` says; True where that is not known.
        in_network: Switches of the network reduce (SHARP), declared.
        pcie: The slot of every port.
        mesh_links: Links of a GPU where one link joins one pair (xGMI, HCCS); n ranks then use n - 1 of them.
        scale_up_source, scale_up_flag: Where B comes from.

    Returns:
        A limit; ``missing`` is the first campaign field that lacks, or what else forbids a bound.

    Raises:
        ValueError: A number is not positive.
    """
    _require_positive(
        ranks=ranks, ranks_per_domain=ranks_per_domain, domains=domains, port_gbit_s=port_gbit_s,
        ports_per_domain=ports_per_domain, scale_up_gbyte_s=scale_up_gbyte_s,
    )  # fmt: skip
    if ranks == 1:
        return _refused("one rank measures no fabric")
    ports: dict[str, Any] = {
        "link_rate_gbit_s": port_gbit_s, "ports_per_node": ports_per_domain, "gpus_per_node": domains,
        "gpus_per_domain": ranks_per_domain,
    }  # fmt: skip
    run: dict[str, Any] = {"ranks": ranks, "operation": operation}
    if absent := _first_missing(run | {"scale_up_gbyte_s": scale_up_gbyte_s} if domains == 1 else ports | run):
        return _refused(absent)
    assert ranks is not None  # for the type checker
    assert operation is not None
    shape = _Shape(
        ranks, domains or 1, ranks_per_domain or ranks, scale_up_gbyte_s, mesh_links, scale_up_source, scale_up_flag
    )
    if ranks != shape.k * shape.g:
        return _refused("equal domains", f"{ranks} ranks are not {shape.k} domains of {shape.g}")
    how = (algorithm or "").lower()
    nvls = operation == "all_reduce" and nvls_possible and how not in _POINT_TO_POINT
    in_network = how in _IN_NETWORK or (in_network and how not in _POINT_TO_POINT)
    if shape.k == 1:
        return _within(operation, shape, nvls)
    network = point_to_point_limit(family, port_gbit_s, mtu_bytes, ports=ports_per_domain or 1, pcie=pcie)
    return network if network.gbyte_s is None else _across(operation, shape, network, nvls, in_network)


def cluster_limit(
    operation: str | None, *, ranks: int | None, nodes: int | None, gpu_model: str | None,
    gpus_per_node: int | None, gpus_per_domain: int | None, ports_per_node: int | None, link_rate_gbit_s: float | None,
    mtu_bytes: int | None, family: str | None, scale_up_gbyte_s: float | None = None, algorithm: str | None = None,
    in_network: bool = False, pcie: str | None = None,
) -> Limit:  # fmt: skip
    """
    :func:`collective_limit` from what a log says (ranks, nodes, GPU) and a campaign file states (all the rest).

    A node is one domain unless ``gpus_per_domain`` says otherwise; of GPUs that racks join (GB200) it has to. Without
    ``nodes`` the run fills nodes of ``gpus_per_node``. ``scale_up_gbyte_s`` stated goes before that of the GPU.

    Returns:
        A limit; several domains inside one node have none, for what passes between them uses no port.

    Raises:
        ValueError: A number is not positive.
    """
    _require_positive(ranks=ranks, nodes=nodes, gpus_per_node=gpus_per_node, gpus_per_domain=gpus_per_domain)
    up, row = scale_up(gpu_model or ""), gpu_row(gpu_model or "")
    facts: dict[str, Any] = {
        "ranks": ranks, "port_gbit_s": link_rate_gbit_s, "mtu_bytes": mtu_bytes, "family": family,
        "scale_up_gbyte_s": scale_up_gbyte_s or (up.gbyte_s if up else None),
        "nvls_possible": up.nvls_possible if up else True, "algorithm": algorithm, "in_network": in_network,
        "pcie": pcie,
    }  # fmt: skip
    if up and not scale_up_gbyte_s:
        facts |= {"mesh_links": up.links if up.full_mesh else None, "scale_up_source": up.source}
        facts |= {"scale_up_flag": up.flag}
    if ranks == 1 or (nodes == 1 and (not ranks or not gpus_per_domain or ranks <= gpus_per_domain)):
        return collective_limit(operation, ranks_per_domain=ranks, domains=1, ports_per_domain=ports_per_node, **facts)
    per_node = ranks / nodes if ranks and nodes else gpus_per_node
    node_size = gpus_per_node or per_node
    domain_size = gpus_per_domain or (None if row and row["spans_nodes"] == "yes" else node_size)
    stated = {
        "link_rate_gbit_s": link_rate_gbit_s, "ports_per_node": ports_per_node, "gpus_per_node": per_node,
        "gpus_per_domain": domain_size, "ranks": ranks, "operation": operation,
    }  # fmt: skip
    if absent := _first_missing(stated):
        return _refused(absent)
    numbers = ranks or 0, per_node or 1, node_size or 1, domain_size or 1
    nodes_per_domain = _nodes_per_domain(*numbers)
    if nodes_per_domain is None:
        return _refused("equal domains", f"{ranks} ranks do not fill equal domains of whole nodes")
    taking_part = int(numbers[1]) * nodes_per_domain
    return collective_limit(
        operation, ranks_per_domain=taking_part, domains=numbers[0] // taking_part,
        ports_per_domain=(ports_per_node or 1) * nodes_per_domain, **facts,
    )  # fmt: skip


def minimum_wire_gbyte_s(operation: str, algbw_gbyte_s: float, domains: int) -> float | None:
    """
    What each domain of k must have sent into the network, in GB/s, for this algbw without in-network reduction.

    all_reduce: algbw x 2 (k-1)/k; all_gather, reduce_scatter: algbw x (k-1)/k; None for other operations.

    Raises:
        ValueError: *algbw_gbyte_s* or *domains* is not positive.
    """
    _require_positive(algbw_gbyte_s=algbw_gbyte_s, domains=domains)
    passes = {"all_reduce": 2, "all_gather": 1, "reduce_scatter": 1}.get(operation)
    return None if passes is None else algbw_gbyte_s * passes * (domains - 1) / domains


def implied_ranks(busbw_gbyte_s: float, algbw_gbyte_s: float, operation: str = "all_reduce") -> float | None:
    """
    The number of ranks that the two printed columns imply, as exact as their decimals: 2 / (2 - busbw/algbw).

    Returns:
        None where the operation has no factor that grows with the ranks, or no number of ranks gives this factor.

    Raises:
        ValueError: A bandwidth is not positive.
    """
    _require_positive(busbw_gbyte_s=busbw_gbyte_s, algbw_gbyte_s=algbw_gbyte_s)
    passes = {
        "all_reduce": 2, "all_gather": 1, "reduce_scatter": 1, "alltoall": 1, "gather": 1, "scatter": 1,
    }.get(operation)  # fmt: skip
    if passes is None or busbw_gbyte_s >= passes * algbw_gbyte_s:
        return None
    return passes / (passes - busbw_gbyte_s / algbw_gbyte_s)


def ranks_that_fit(
    busbw_gbyte_s: float, algbw_gbyte_s: float, operation: str = "all_reduce", *, decimals: int = 2
) -> tuple[float, float] | None:
    """
    The least and the greatest number of ranks that two printed columns allow, each half a unit of its last digit off.

    Returns:
        None where :func:`implied_ranks` has no answer. The greatest is infinite where the digits bound nothing above.

    Raises:
        ValueError: A bandwidth is not positive.
    """
    if implied_ranks(busbw_gbyte_s, algbw_gbyte_s, operation) is None:
        return None
    half = 0.5 * 10.0**-decimals
    least = implied_ranks(max(busbw_gbyte_s - half, half), algbw_gbyte_s + half, operation)
    most = implied_ranks(busbw_gbyte_s + half, max(algbw_gbyte_s - half, half), operation)
    return least or 1.0, most or math.inf


def ranks_agree(
    busbw_gbyte_s: float, algbw_gbyte_s: float, ranks: int, operation: str = "all_reduce", *, decimals: int = 2
) -> bool | None:
    """
    Whether the two columns allow the number of ranks that a log is said to have; None where they say nothing.

    Raises:
        ValueError: A bandwidth is not positive.
    """
    fit = ranks_that_fit(busbw_gbyte_s, algbw_gbyte_s, operation, decimals=decimals)
    return None if fit is None else fit[0] <= ranks <= fit[1]


def algorithm_limits(operation: str, **facts: Any) -> dict[str, Limit]:
    """
    The bound of every algorithm of NCCL by name: Ring and Tree reduce on the GPUs, NVLS in NVSwitch, CollNet (SHARP) in
    the network. *facts* are those of :func:`collective_limit`; NVLS and CollNet stand only where they can be.
    """
    ways: dict[str, dict[str, Any]] = {"Ring": {"algorithm": "Ring"}, "Tree": {"algorithm": "Tree"}}
    if operation == "all_reduce" and facts.get("nvls_possible", True):
        ways["NVLS"] = {"algorithm": "NVLS", "in_network": False}
    if operation == "all_reduce" and facts.get("domains") != 1:
        ways["CollNet"] = {"algorithm": "CollNet"}
    return {name: collective_limit(operation, **facts | how) for name, how in ways.items()}


class _Shape(NamedTuple):
    """Ranks, domains, ranks of a domain, scale-up rate of a GPU in GB/s, and where that comes from."""

    n: int
    k: int
    g: int
    b: float | None
    mesh_links: int | None
    source: str
    flag: str

    @property
    def inputs(self) -> dict[str, Any]:
        return {"ranks": self.n, "domains": self.k, "ranks_per_domain": self.g, "scale_up_gbyte_s": self.b}


def _within(operation: str, shape: _Shape, nvls: bool) -> Limit:
    """One domain: every rank, the root at least, sends or receives busbw x time bytes at B."""
    n, b = shape.n, shape.b or 0.0
    if operation not in _WITHIN:
        return _refused(f"a bound of {operation}")
    bound, formula, source = b, f"B = {b:g} GB/s per GPU and direction", f"{BUSBW_SOURCE}; {shape.source}"
    if shape.mesh_links:
        used = 1 if operation == "sendrecv" else min(shape.mesh_links, n - 1)
        bound, formula = (
            b / shape.mesh_links * used,
            f"{used} of {shape.mesh_links} links x {b / shape.mesh_links:g} GB/s",
        )
    if nvls and 2 * b * (n - 1) / (n + 1) > b:  # each GPU moves S (n+1)/n per direction
        bound, source = 2 * b * (n - 1) / (n + 1), f"{NVLS_SOURCE}; {shape.source}"
        formula = f"NVLink SHARP: 2 B (n - 1) / (n + 1) = 2 x {b:g} GB/s x {n - 1} / {n + 1}"
    return Limit(
        gbyte_s=bound, formula=formula, inputs=shape.inputs | {"operation": operation}, source=source,
        flag=weakest(shape.flag, DERIVED),
    )  # fmt: skip


def _across(operation: str, shape: _Shape, network: Limit, nvls: bool, in_network: bool) -> Limit:
    """Several domains: the smaller of what the ports and what the GPUs together can move."""
    n, k, g, b = shape[:4]
    r, flag = network.gbyte_s or 0.0, network.flag
    ports, put_in = network.inputs["ports"], f"{r:.5g} GB/s"
    shared = r * (n - 1) * k / (n * (k - 1)), f"R (n - 1) k / (n (k - 1)) = {put_in} x {n - 1} x {k} / ({n} x {k - 1})"
    reduced = 2 * r * (n - 1) / n, f"in-network reduction: 2 R (n - 1) / n = 2 x {put_in} x {n - 1} / {n}"
    per_rank = math.ceil(ports / g)
    bounds = {
        "all_reduce": reduced if in_network else shared,
        "all_gather": shared,
        "reduce_scatter": shared,
        "alltoall": (r / g * (n - 1) / (n - g), f"R / g x (n - 1) / (n - g) = {put_in} / {g} x {n - 1} / {n - g}"),
        "broadcast": (r, "R"),
        "reduce": (r, "R"),
        "sendrecv": (r / ports * per_rank, f"R x {per_rank} / {ports}, the ports of the crossing rank"),
    }
    if operation not in bounds:
        return _refused(f"a bound of {operation} across domains")
    bound, formula = bounds[operation]
    source = f"{BUSBW_SOURCE}; {network.source}"
    if b is not None:
        cap, text = b + r / g, f"B + R / g = {b:g} GB/s + {put_in} / {g}"
        if operation == "all_reduce" and (nvls or in_network):  # no more than that a GPU sends each byte once
            if cap < bound:
                formula += f", above {text} as {'NVLink SHARP' if nvls else 'the network'} may have reduced in switches"
            text = f"2 (B + R / g) (n - 1) / n = 2 x ({b:g} GB/s + {put_in} / {g}) x {n - 1} / {n}"
            cap = 2 * cap * (n - 1) / n
        if cap < bound:
            bound, formula, source, flag = cap, text, f"{source}; {shape.source}", weakest(flag, shape.flag)
    formula = f"R = {network.formula}" if formula == "R" else f"{formula}; R = {network.formula}"
    inputs = network.inputs | shape.inputs | {"operation": operation, "network_gbyte_s": r, "in_network": in_network}
    return Limit(gbyte_s=bound, formula=formula, inputs=inputs, source=source, flag=weakest(flag, DERIVED))


def _refused(missing: str, formula: str = "", inputs: dict[str, Any] | None = None) -> Limit:
    return Limit(gbyte_s=None, formula=formula, inputs=inputs or {}, missing=missing)


def _nodes_per_domain(ranks: int, ranks_per_node: float, node_size: float, domain_size: float) -> int | None:
    """Nodes that a scale-up domain joins, no more than the run has; None where they do not divide evenly."""
    if ranks % ranks_per_node or ranks_per_node % 1 or ranks_per_node > node_size or domain_size % node_size:
        return None
    nodes, joined = int(ranks // ranks_per_node), int(domain_size // node_size)
    return None if nodes > joined and nodes % joined else min(nodes, joined)


def _first_missing(facts: dict[str, Any]) -> str | None:
    return next((name for name, value in facts.items() if value is None), None)


def _require_positive(**numbers: float | None) -> None:
    for name, value in numbers.items():
        if value is not None and not (math.isfinite(value) and value > 0):
            raise ValueError(f"{name} = {value} is not a positive number")


def _headers(stack: str) -> dict[str, str]:
    return next(row for row in table("goodput") if row["stack"] == stack)
