#!/usr/bin/env python3
"""Writes the synthetic example logs, two campaigns:

synthetic        three fabrics, two nodes of eight GPUs, seven repeats of every test
synthetic-pairs  one fabric, every pair of eight nodes, one of them slow, one test with a small MTU

    python data/examples/generate.py [--out DIR] [--seed 7]

The same seed gives the same bytes. No number was measured: each comes from the curves below, shaped so that no limit of
the link is passed, with a shift per run and noise per row. The text is laid out as nccl-tests 2.17.8, NCCL 2.28.7,
perftest 25.01, iperf 3.12 and ucx_perftest 1.13 print it.
"""

import argparse
import json
import math
import shutil
import struct
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from itertools import permutations
from pathlib import Path
from random import Random

HERE = Path(__file__).resolve().parent
REPEATS = 7
NODES = tuple(f"synthetic-node-{i:02d}" for i in range(1, 9))  # the first campaign has the first two
GPUS_PER_NODE, RANKS = 8, 16
GPU, GPU_BUSES = "NVIDIA H100 80GB HBM3", ("1b", "43", "52", "61", "9d", "c3", "d1", "df")
MIB = 2**20
NCCL_SIZES = [2**i for i in range(3, 33)]  # 8 B to 4 GiB
PERFTEST_SIZES = [2**i for i in range(1, 24)]  # what -a runs: 2 B to 8 MiB
RULE = "-" * 87


@dataclass(frozen=True)
class Noise:
    """How much runs and rows scatter, as shares of the value: the tail is the chance of a slow row."""

    run_start: float
    run_rate: float
    row: float
    tail: float = 0.0


@dataclass(frozen=True)
class Curve:
    """Time of a collective: a start, a term that fades above 64 MiB, and the bytes at a share of the bound."""

    start_us: float
    middle_us: float
    share: float


@dataclass(frozen=True)
class Verbs:
    """What the RDMA port does without GPUs, per direction: Gb/s, 10^6 messages/s, microseconds at 2 B."""

    write_gbit_s: float
    read_gbit_s: float
    write_mpps: float
    read_mpps: float
    write_lat_us: float
    read_lat_us: float


@dataclass(frozen=True)
class Fabric:
    """One network between two nodes, with one port a node."""

    name: str
    link_gbit_s: float
    payload_share: float  # what headers leave: MTU / (MTU + headers)
    subnet: tuple[int, int, int]  # a range kept for documentation
    noise: Noise
    curves: dict[str, Curve]
    verbs: Verbs | None = None
    link_type: str = ""
    mtu: int = 4096  # of the RDMA port, as perftest prints it
    nodes: tuple[int, int] = (0, 1)  # indices into NODES

    @property
    def payload_gbyte_s(self) -> float:
        """The most payload that one port carries in one direction."""
        return self.link_gbit_s * self.payload_share / 8

    def address(self, node: int) -> str:
        """The address of a node, 0 or 1."""
        return ".".join(map(str, (*self.subnet, 11 + self.nodes[node])))

    def host(self, node: int) -> str:
        """The name of a node, 0 or 1."""
        return NODES[self.nodes[node]]


TCP = Fabric(
    name="tcp-100g", link_gbit_s=100, payload_share=(9000 - 52) / (9000 + 38), subnet=(198, 51, 100),
    noise=Noise(run_start=0.09, run_rate=0.055, row=0.03, tail=0.05),
    curves={
        "all_reduce": Curve(186, 260, 0.91), "all_gather": Curve(142, 230, 0.89),
        "alltoall": Curve(305, 340, 0.78),
    },
)  # fmt: skip
ROCE = Fabric(
    name="roce-100g", link_gbit_s=100, payload_share=4096 / (4096 + 82), subnet=(192, 0, 2), link_type="Ethernet",
    noise=Noise(run_start=0.02, run_rate=0.008, row=0.01, tail=0.004),
    curves={
        "all_reduce": Curve(36.6, 38, 0.938), "all_gather": Curve(31.5, 34, 0.935),
        "alltoall": Curve(58, 55, 0.86),
    },
    verbs=Verbs(94.6, 92.9, 6.1, 4.3, 2.08, 3.86),
)  # fmt: skip
NDR = Fabric(
    name="infiniband-ndr400", link_gbit_s=400, payload_share=4096 / (4096 + 26), subnet=(203, 0, 113), link_type="IB",
    noise=Noise(run_start=0.015, run_rate=0.004, row=0.008, tail=0.002),
    curves={
        "all_reduce": Curve(26.6, 24, 0.955), "all_gather": Curve(22.8, 21, 0.95),
        "alltoall": Curve(43, 34, 0.91),
    },
    verbs=Verbs(392.4, 388.6, 7.2, 5.4, 1.24, 2.31),
)  # fmt: skip
FABRICS = (TCP, ROCE, NDR)

# The RoCE device is not found, so NCCL takes one untuned socket a connection over the same port.
FALLBACK = replace(
    ROCE, payload_share=TCP.payload_share, noise=TCP.noise, curves={"all_reduce": Curve(228, 300, 0.37)}, verbs=None
)

COLLECTIVES = {  # operation: (redop, busbw / algbw, ranks that share the size, in-place results are checked)
    "all_reduce": ("sum", 2 * (RANKS - 1) / RANKS, 1, True),
    "all_gather": ("none", (RANKS - 1) / RANKS, RANKS, True),
    "alltoall": ("none", (RANKS - 1) / RANKS, RANKS, False),
}


# --- collectives: nccl-tests with NCCL INFO lines -------------------------------------------------------------------


def busbw_ceiling(fabric: Fabric, operation: str) -> float:
    """GB/s that a flat ring reaches at best; for alltoall the share of one GPU in the port of its node."""
    if operation == "alltoall":
        return fabric.payload_gbyte_s / GPUS_PER_NODE * (RANKS - 1) / (RANKS - GPUS_PER_NODE)
    return fabric.payload_gbyte_s


def trimmed(operation: str, size: int) -> tuple[int, int]:
    """Bytes and elements of a row: nccl-tests cuts the part of one rank to 16 bytes."""
    parts = COLLECTIVES[operation][2]
    count = size // 4 if parts == 1 else size // 4 // parts & ~3
    return count * 4 * parts, count


class CollectiveTimes:
    """Times of one run: its own start and rate, then noise per row."""

    def __init__(self, fabric: Fabric, operation: str, rng: Random) -> None:
        noise, self.curve = fabric.noise, fabric.curves[operation]
        self.rng, self.noise = rng, noise
        self.factor = COLLECTIVES[operation][1]
        self.ceiling = busbw_ceiling(fabric, operation)
        self.start = self.curve.start_us * math.exp(rng.gauss(0, noise.run_start))
        self.rate = self.ceiling * min(0.985, self.curve.share * math.exp(rng.gauss(0, noise.run_rate)))

    def time_us(self, size: int) -> float:
        """Mean time of one call, never faster than the ceiling allows."""
        if size == 0:
            return self.rng.uniform(0.24, 0.40)  # nothing is sent
        mib = size / MIB
        steps = self.start + 0.6 * math.log2(max(size / 8, 1)) + self.curve.middle_us * math.sqrt(mib) / (1 + mib / 64)
        scatter = math.exp(self.rng.gauss(0, self.noise.row) * self.calm(mib))
        time = (steps + size * self.factor / (self.rate * 1e3)) * scatter
        if self.rng.random() < self.noise.tail:
            time *= 1 + self.rng.random() * (0.9 if mib < 1 else 0.25)
        return max(time, size * self.factor / (0.99 * self.ceiling * 1e3))

    @staticmethod
    def calm(mib: float) -> float:
        """Long transfers average their noise out."""
        return 1 / (1 + math.log2(1 + mib) / 4)


def fitted(value: float, width: int) -> str:
    """The number with as many decimals, two at most, as the column takes."""
    texts = (f"{value:{width}.{places}f}" for places in (2, 1, 0))
    return next((text for text in texts if len(text) <= width), f"{value:{width}.{1 if width >= 7 else 0}e}")


def preamble(operation: str, size: int, count: int) -> str:
    """The first five columns, printed before the test of the row runs."""
    return f"{size:12d}  {count:12d}  {'float':>8}  {COLLECTIVES[operation][0]:>6}  {-1:6d}"


def nccl_rows(
    fabric: Fabric, operation: str, rng: Random, sizes: Sequence[int] = NCCL_SIZES
) -> tuple[list[str], list[float]]:
    """The rows of one table, and every busbw before it was rounded."""
    times, rows, busbws = CollectiveTimes(fabric, operation, rng), [], []
    factor, checked = COLLECTIVES[operation][1], COLLECTIVES[operation][3]
    for asked in sizes:
        size, count = trimmed(operation, asked)
        row = preamble(operation, size, count)
        for wrong in ("0", "0" if checked else "N/A"):
            time = times.time_us(size)
            algbw = size / time / 1e3
            busbws.append(algbw * factor)
            row += f"  {fitted(time, 7)}  {fitted(algbw, 6)}  {fitted(busbws[-1], 6)}  {wrong:>6}"
        rows.append(row)
    return rows, busbws


def nccl_head(fabric: Fabric, operation: str, pids: Sequence[int], sizes: Sequence[int]) -> list[str]:
    """What stands before the table: versions, parameters, devices."""
    return [
        "# nccl-tests version 2.17.8 nccl-headers=22807 nccl-library=22807",
        f"# Collective test starting: {operation}_perf",
        f"# nThread 1 nGpus 1 minBytes {sizes[0]} maxBytes {sizes[-1]} step: 2(factor) warmup iters: 5 "
        "iters: 20 agg iters: 1 validation: 1 graph: 0",
        "#",
        "# Using devices",
        *(
            f"#  Rank {rank:2d} Group  0 Pid {pids[rank]:6d} on {fabric.host(rank // GPUS_PER_NODE):>10} "
            f"device {rank % GPUS_PER_NODE:2d} [0000:{GPU_BUSES[rank % GPUS_PER_NODE]}:00] {GPU}"
            for rank in range(RANKS)
        ),
    ]


def nccl_columns() -> list[str]:
    """The header of the table."""
    blank = "#" + " " * 62
    places = "time", "algbw", "busbw", "#wrong"
    units = "(us)", "(GB/s)", "(GB/s)", ""
    line = "# %10s  %12s  %8s  %6s  %6s" + "  %7s  %6s  %6s  %6s" * 2 + " "
    return [
        "#",
        f"{blank}out-of-place                       in-place          ",
        line % ("size", "count", "type", "redop", "root", *places, *places),
        line % ("(B)", "(elements)", "", "", "", *units, *units),
    ]


def network_lines(fabric: Fabric, node: int) -> list[str]:
    """How NCCL chose its network on one node."""
    interface = f"eth0:{fabric.address(node)}<0>"
    if fabric.verbs is not None:
        link = "RoCE" if fabric.link_type == "Ethernet" else "IB"
        found, name = [f"NET/IB : Using [0]mlx5_0:1/{link} [RO]; OOB {interface}"], "IB"
    else:
        reason = "NCCL_IB_DISABLE set by environment to 1." if fabric.name == TCP.name else "NET/IB : No device found."
        found, name = [reason, "Failed to initialize NET plugin IB", f"NET/Socket : Using [0]{interface}"], "Socket"
    return [*found, f"Initialized NET plugin {name}", f"Assigned NET plugin {name} to comm", f"Using network {name}"]


def channel_lines(fabric: Fabric, node: int) -> list[str]:
    """The connections of the first GPU of a node: one ring through both nodes, two channels."""
    first, before = node * GPUS_PER_NODE, (1 - node) * GPUS_PER_NODE + GPUS_PER_NODE - 1
    over = "NET/IB/0/GDRDMA" if fabric.verbs is not None else "NET/Socket/0"
    lines = [f"Channel {c:02d}/0 : {before}[7] -> {first}[0] [receive] via {over}" for c in (0, 1)]
    lines += [f"Channel {c:02d}/0 : {first}[0] -> {first + 1}[1] via P2P/CUMEM" for c in (0, 1)]
    return [*lines, f"Connected all rings, use ring PXN 0 GDR {int(fabric.verbs is not None)}"]


def info_lines(fabric: Fabric, pids: Sequence[int], rng: Random) -> list[str]:
    """NCCL INFO lines of the first rank of each node."""
    comm_id, lines = f"0x{rng.getrandbits(64):016x}", []
    for node in (0, 1):
        rank, comm = node * GPUS_PER_NODE, f"0x{0x5500_0000_0000 + rng.getrandbits(36) * 16:x}"
        tail = f"cudaDev 0 nvmlDev 0 busId {GPU_BUSES[0]}000 commId {comm_id} - Init"
        texts = [
            f"Bootstrap: Using eth0:{fabric.address(node)}<0>",
            "cudaDriverVersion 12090",
            "NCCL version 2.28.7+cuda12.9",
            "NET/Plugin: Could not find: libnccl-net.so",
            *network_lines(fabric, node),
            f"ncclCommInitRank comm {comm} rank {rank} nranks {RANKS} {tail} START",
            f"comm {comm} rank {rank} nRanks {RANKS} nNodes 2 localRanks {GPUS_PER_NODE} localRank 0 MNNVL 0",
            "NCCL_RUNTIME_CONNECT set by environment to 0.",
            *channel_lines(fabric, node),
            f"ncclCommInitRank comm {comm} rank {rank} nranks {RANKS} {tail} COMPLETE",
        ]
        lines += [f"{fabric.host(node)}:{pids[rank]}:{pids[rank]} [0] NCCL INFO {text}" for text in texts]
    return lines


def nccl_start(
    fabric: Fabric, operation: str, rng: Random, sizes: Sequence[int] = NCCL_SIZES
) -> tuple[list[str], list[int]]:
    """Everything before the first row, and the process ids by rank."""
    first = [rng.randrange(20_000, 900_000) for _ in fabric.nodes]
    pids = [first[rank // GPUS_PER_NODE] + rank % GPUS_PER_NODE for rank in range(RANKS)]
    return [*nccl_head(fabric, operation, pids, sizes), *info_lines(fabric, pids, rng), *nccl_columns()], pids


def nccl_log(fabric: Fabric, operation: str, rng: Random, sizes: Sequence[int] = NCCL_SIZES) -> str:
    """One complete run."""
    start, _ = nccl_start(fabric, operation, rng, sizes)
    rows, busbws = nccl_rows(fabric, operation, rng, sizes)
    footer = [
        "# Out of bounds values : 0 OK",
        f"# Avg bus bandwidth    : {sum(busbws) / len(busbws):g} ",
        "#",
        f"# Collective test concluded: {operation}_perf",
        "#",
        "",
    ]
    return text_of([*start, *rows, *footer])


def cut_log(fabric: Fabric, rng: Random) -> str:
    """A run whose log ends in the middle of a row, as when a job is cancelled or a disk is full."""
    start, _ = nccl_start(fabric, "all_reduce", rng)
    rows, _ = nccl_rows(fabric, "all_reduce", rng)
    return "\n".join([*start, *rows[:21], rows[21][:66]])


def failed_log(fabric: Fabric, rng: Random) -> str:
    """A run that dies in its twentieth row because the other node no longer answers."""
    start, pids = nccl_start(fabric, "all_reduce", rng)
    rows, _ = nccl_rows(fabric, "all_reduce", rng)
    here, there = fabric.address(0), fabric.address(1)
    process = f"{NODES[0]}:{pids[0]}:{pids[0] + 97} [0]"
    return text_of([
        *start,
        *rows[:19],
        "",
        f"[2026-03-12 14:17:56] {process} transport/net_ib.cc:2453 NCCL WARN NET/IB: Got completion from peer "
        f"{there}<51161> with status=IBV_WC_RETRY_EXC_ERR(12) opcode=IBV_WC_RDMA_WRITE(1) reqSize=0 vendor_err=129 "
        f"req_type=Send localGid ::ffff:{here} remoteGids::ffff:{there} hca mlx5_0",
        f"{process} NCCL INFO transport/net.cc:1340 -> 6",
        f"{process} NCCL INFO proxy.cc:735 -> 6",
        f"{process} NCCL INFO proxy.cc:907 -> 6 [Progress Thread]",
        f"{preamble('all_reduce', *trimmed('all_reduce', NCCL_SIZES[19]))}{NODES[0]}: Test NCCL failure common.cu:307 "
        "'remote process exited or there was a network error / '",
        *(f" .. {NODES[0]} pid {pids[0]}: Test failure {at}" for at in FAILURE_STACK),
    ])  # fmt: skip


FAILURE_STACK = "common.cu:404", "common.cu:614", "all_reduce.cu:90", "common.cu:641", "common.cu:1206", "common.cu:936"


# --- perftest: both ends ---------------------------------------------------------------------------------------------


@dataclass(frozen=True)
class End:
    """One end of a pair: what its address line says."""

    lid: int
    qpn: int
    psn: int
    rkey: int
    vaddr: int
    gid: str | None

    def lines(self, which: str, read: bool) -> list[str]:
        """The address line and, on Ethernet, the GID."""
        lid = f"{self.lid:#04x}" if self.lid else "0000"
        out = " OUT 0x10" if read else ""
        line = f" {which} address: LID {lid} QPN {self.qpn:#06x} PSN {self.psn:#06x}{out}"
        return [f"{line} RKey {self.rkey:#08x} VAddr {self.vaddr:#016x}", *([f" GID: {self.gid}"] if self.gid else [])]


def ends_of(fabric: Fabric, number: int, rng: Random) -> tuple[End, End]:
    """Client and server of pair *number* of a fabric."""
    return tuple(
        End(
            lid=0 if fabric.link_type == "Ethernet" else 0x1A + fabric.nodes[node],
            qpn=0x011C + 13 * number + node * 0x40, psn=rng.getrandbits(24) | 0x10_0000,
            rkey=0x18_1200 + rng.getrandbits(8) + 0x2000 * node, vaddr=0x7F00_0000_0000 + (rng.getrandbits(24) << 12),
            gid=gid_of(fabric, node),
        )
        for node in (0, 1)
    )  # fmt: skip


def gid_of(fabric: Fabric, node: int) -> str | None:
    """The address of the port as sixteen decimal bytes; plain InfiniBand prints none."""
    if fabric.link_type != "Ethernet":
        return None
    return ":".join(f"{b:02d}" for b in (*[0] * 10, 255, 255, *map(int, fabric.address(node).split("."))))


def perftest_banner(fabric: Fabric, test: str, server: bool) -> list[str]:
    """The option lines between the first two rules."""
    read, latency = test.startswith("ib_read"), test.endswith("_lat")
    relaxed = "OFF" if test == "ib_write_lat" else "ON"
    return [
        *(["", "*" * 36, "* Waiting for client to connect... *", "*" * 36] if server else []),
        RULE,
        f"{' ' * 20}{'RDMA_Read' if read else 'RDMA_Write'} {'Latency' if latency else 'BW'} Test",
        " Dual-port       : OFF\t\tDevice         : mlx5_0",
        " Number of qps   : 1\t\tTransport type : IB",
        " Connection type : RC\t\tUsing SRQ      : OFF",
        f" PCIe relax order: {relaxed}\t\tLock-free      : OFF",
        " ibv_wr* API     : ON\t\tUsing DDP      : OFF",
        *([] if server else [f" TX depth        : {1 if latency else 128}"]),
        *([] if latency else [" CQ Moderation   : 100"]),
        f" Mtu             : {fabric.mtu}[B]",
        f" Link type       : {fabric.link_type}",
        *([" GID index       : 3"] if fabric.link_type == "Ethernet" else []),
        " Outstand reads  : 16" if read else f" Max inline data : {220 if latency else 0}[B]",
        " rdma_cm QPs\t : OFF",
        " Data ex. method : Ethernet",
    ]


def bandwidth_rows(fabric: Fabric, test: str, rng: Random, sizes: Sequence[int] = PERFTEST_SIZES) -> list[str]:
    """Message rate at small sizes, the port at large ones."""
    verbs, noise = fabric.verbs, fabric.noise
    top, mpps = (verbs.read_gbit_s, verbs.read_mpps) if test == "ib_read_bw" else (verbs.write_gbit_s, verbs.write_mpps)
    top *= 1 + max(-0.012, min(0.008, rng.gauss(0, noise.run_rate * 0.45)))
    mpps *= math.exp(rng.gauss(0, noise.run_start))
    most = fabric.link_gbit_s * fabric.payload_share * 0.999
    rows = []
    for size in sizes:
        pace = size * 8e-3 * mpps * math.exp(rng.gauss(0, noise.row))
        average = (pace**-5 + top**-5) ** -0.2 * (1 - abs(rng.gauss(0, noise.row * 0.08)))
        peak = min(most, average * (1 + rng.random() * (0.06 if pace < top else 0.003)))
        rows.append(bandwidth_row(size, peak, average))
    return rows


def bandwidth_row(size: int, peak: float, average: float) -> str:
    """One row in Gb/s; an average below 0.1 is printed in the finer layout."""
    rate = average / size / 8e-3
    if average < 0.1:
        return f" {size:<7d}    5000           {peak:<7.6f}            {average:<7.6f}            {rate:<7.6f}"
    return f" {size:<7d}    {5000:<10d}       {peak:<7.2f}            {average:<7.2f}\t\t     {rate:<7.6f}"


def run_latency(fabric: Fabric, test: str, rng: Random) -> float:
    """Microseconds of the smallest message in one run, the same for both ends."""
    start = fabric.verbs.read_lat_us if test == "ib_read_lat" else fabric.verbs.write_lat_us
    return start * math.exp(rng.gauss(0, fabric.noise.run_start))


def latency_rows(fabric: Fabric, test: str, base: float, rng: Random) -> list[str]:
    """Rows of 10,000 iterations as one end sees them."""
    noise, read = fabric.noise, test == "ib_read_lat"
    rate = fabric.verbs.read_gbit_s if read else fabric.verbs.write_gbit_s
    rows = []
    for size in PERFTEST_SIZES:
        host = 0.0 if read or size <= 220 else 0.34  # above the inline limit the NIC fetches the data itself
        level = base + host + 0.3 * min(1, size / 4096) + size * 8e-3 / rate
        rows.append(latency_row(size, level * math.exp(rng.gauss(0, noise.row * 0.4)), noise, rng))
    return rows


def latency_row(size: int, typical: float, noise: Noise, rng: Random) -> str:
    """One row; the tail is drawn, and the deviation counts whole microseconds as the tool does."""
    spread = noise.row * min(1, math.sqrt(4 / typical))  # long messages average their noise out
    slow = sorted((0.25 + 6 * noise.row / 0.01 * rng.random() ** 6 for _ in range(24)), reverse=True)
    p99 = typical * (1 + spread * (2.2 + rng.random())) + 0.02
    average = typical * (1 + spread * 0.2 * rng.random()) + sum(slow) / 10_000
    deviation = math.sqrt(sum(int(s) ** 2 for s in slow) / 10_000)
    low = typical * (1 - spread * (1.5 + rng.random()))
    high, p999 = typical * 1.02 + 0.2 + slow[0] * 1.5, max(p99, typical * 1.01 + slow[9])
    return (
        f" {size:<7d} 10000          {low:<7.2f}        {max(high, p999):<7.2f}      {typical:<7.2f}  \t"
        f"       {average:<7.2f}     \t{deviation:<7.2f}\t\t{p99:<7.2f} \t\t{p999:<7.2f}"
    )


BANDWIDTH_HEAD = " #bytes     #iterations    BW peak[Gb/sec]    BW average[Gb/sec]   MsgRate[Mpps]"
LATENCY_HEAD = (
    " #bytes #iterations    t_min[usec]    t_max[usec]  t_typical[usec]    t_avg[usec]    t_stdev[usec]"
    "   99% percentile[usec]   99.9% percentile[usec] "
)


def perftest_tables(fabric: Fabric, test: str, rng: Random, sizes: Sequence[int]) -> tuple[list[str], list[str]]:
    """The tables of the client and the server of one run."""
    if test.endswith("_bw"):
        rows = bandwidth_rows(fabric, test, rng, sizes)
        return [BANDWIDTH_HEAD, *rows], [BANDWIDTH_HEAD, rows[-1]]  # the server repeats the last size only
    base = run_latency(fabric, test, rng)
    client = [LATENCY_HEAD, *latency_rows(fabric, test, base, rng)]
    if test == "ib_read_lat":
        return client, []  # the server of a read measures nothing
    return client, [LATENCY_HEAD, *latency_rows(fabric, test, base, rng)]


def perftest_logs(
    fabric: Fabric, test: str, number: int, rng: Random, sizes: Sequence[int] = PERFTEST_SIZES
) -> tuple[str, str]:
    """What the client and the server print of one run."""
    ends = ends_of(fabric, number, rng)
    client, server = perftest_tables(fabric, test, rng, sizes)
    return perftest_log(fabric, test, ends, client), perftest_log(fabric, test, ends[::-1], server, server=True)


def perftest_log(fabric: Fabric, test: str, ends: Sequence[End], table: list[str], server: bool = False) -> str:
    """One end: banner, addresses, table, closing rule."""
    read = test.startswith("ib_read")
    addresses = [*ends[0].lines("local", read), *ends[1].lines("remote", read)]
    return text_of([*perftest_banner(fabric, test, server), RULE, *addresses, RULE, *table, *([RULE] if table else [])])


# --- TCP: iperf3 and ucx_perftest -------------------------------------------------------------------------------------


class Pairs(list):
    """A JSON object as a list of pairs: iperf prints some keys once per stream."""


def json_text(value: object, depth: int = 0) -> str:
    """JSON laid out as iperf 3.12 prints it: tabs, one member a line, arrays of objects run on."""
    if isinstance(value, Pairs):
        tabs = "\t" * (depth + 1)
        members = ",\n".join(f'{tabs}"{key}":\t{json_text(v, depth + 1)}' for key, v in value)
        return f"{{\n{members}\n{tabs[1:]}}}"
    if isinstance(value, list):
        return "[" + ", ".join(json_text(v, depth + 1) for v in value) + "]"
    if isinstance(value, float):
        short = f"{value:.15g}"
        return short if float(short) == value else f"{value:.17g}"
    return json.dumps(value)


def single(value: float) -> float:
    """The value in single precision, in which iperf keeps the length of an interval."""
    return struct.unpack("f", struct.pack("f", value))[0]


@dataclass
class Stream:
    """One connection of iperf and what it moved."""

    socket: int
    port: int
    sent: int = 0
    retransmits: int = 0
    rtts: tuple[int, ...] = ()
    windows: tuple[int, ...] = ()

    def interval(self, start: float, end: float, gbit_s: float, rng: Random) -> Pairs:
        """One interval of about a second, in whole blocks of 128 KiB."""
        moved = int(gbit_s * 1e9 / 8 * (end - start) / 131072) * 131072
        window, rtt = 8948 * rng.randrange(150, 420), rng.randrange(180, 900)
        again = rng.randrange(0, 40) if rng.random() < 0.3 else 0
        self.sent, self.retransmits = self.sent + moved, self.retransmits + again
        self.rtts, self.windows = (*self.rtts, rtt), (*self.windows, window)
        return Pairs([
            ("socket", self.socket), *interval_pairs(start, end, moved, again),
            ("snd_cwnd", window), ("snd_wnd", 6_291_456), ("rtt", rtt), ("rttvar", rtt // 9), ("pmtu", 9000),
            ("omitted", False), ("sender", True),
        ])  # fmt: skip

    def summary(self, sent_s: float, received_s: float) -> Pairs:
        """The stream in the end section; the receiver prints the sender's seconds but divides by its own."""
        means = [
            ("max_snd_cwnd", max(self.windows)), ("max_snd_wnd", 6_291_456), ("max_rtt", max(self.rtts)),
            ("min_rtt", min(self.rtts)), ("mean_rtt", sum(self.rtts) // len(self.rtts)), ("sender", True),
        ]  # fmt: skip
        sender = [("socket", self.socket), *total_pairs(sent_s, sent_s, self.sent), ("retransmits", self.retransmits)]
        receiver = [("socket", self.socket), *total_pairs(received_s, received_s, self.sent), ("sender", True)]
        receiver[3] = ("seconds", sent_s)
        return Pairs([("sender", Pairs([*sender, *means])), ("receiver", Pairs(receiver))])


def interval_pairs(start: float, end: float, moved: int, again: int) -> list[tuple[str, object]]:
    """Start to retransmits of an interval, or of the sum of its streams."""
    seconds = single(end - start)
    rate = [("seconds", seconds), ("bytes", moved), ("bits_per_second", moved * 8 / seconds), ("retransmits", again)]
    return [("start", number(start)), ("end", number(end)), *rate]


def total_pairs(end: float, seconds: float, moved: int) -> list[tuple[str, object]]:
    """Start to rate of a whole test."""
    rate = [("seconds", seconds), ("bytes", moved), ("bits_per_second", moved * 8 / seconds)]
    return [("start", 0), ("end", end), *rate]


def number(value: float) -> float | int:
    """A whole number without its decimal point."""
    return int(value) if value == int(value) else value


def iperf_start(streams: Sequence[Stream], repeat: int, rng: Random) -> Pairs:
    """The start section; three keys come once per stream."""
    letters = "abcdefghijklmnopqrstuvwxyz234567"
    here, there = ("local_host", TCP.address(0)), ("remote_host", TCP.address(1))
    seconds = 1773325200 + 60 * repeat
    return Pairs([
        ("connected", [
            Pairs([("socket", s.socket), here, ("local_port", s.port), there, ("remote_port", 5201)])
            for s in streams
        ]),
        ("version", "iperf 3.12"),
        ("system_info", f"Linux {NODES[0]} 6.1.0-30-amd64 #1 SMP PREEMPT_DYNAMIC Debian 6.1.124-1 (2025-01-12) x86_64"),
        ("timestamp", Pairs([("time", f"Thu, 12 Mar 2026 14:{20 + repeat}:00 GMT"), ("timesecs", seconds)])),
        ("connecting_to", Pairs([("host", TCP.address(1)), ("port", 5201)])),
        ("cookie", "".join(letters[rng.randrange(32)] for _ in range(36))),
        ("tcp_mss_default", 8948), ("target_bitrate", 0),
        *[("sock_bufsize", 0), ("sndbuf_actual", 16384), ("rcvbuf_actual", 131072)] * len(streams),
        ("test_start", Pairs([
            ("protocol", "TCP"), ("num_streams", len(streams)), ("blksize", 131072), ("omit", 0), ("duration", 10),
            ("bytes", 0), ("blocks", 0), ("reverse", 0), ("tos", 0), ("target_bitrate", 0),
        ])),
    ])  # fmt: skip


def iperf_intervals(streams: Sequence[Stream], rng: Random) -> tuple[list[Pairs], float]:
    """Ten intervals of about a second, and where the last one ends."""
    most = TCP.link_gbit_s * TCP.payload_share
    run = 93.4 * math.exp(rng.gauss(0, 0.035)) * (0.9 if rng.random() < 0.15 else 1)
    weights = [1 + rng.random() for _ in streams]
    intervals, start = [], 0.0
    for second in range(1, 11):
        end = round(second + rng.random() * 0.0009, 6)
        total = min(0.985 * most, run * math.exp(rng.gauss(0, 0.015)))
        parts = [s.interval(start, end, total * w / sum(weights), rng) for s, w in zip(streams, weights, strict=True)]
        moved, again = (sum(dict(p)[key] for p in parts) for key in ("bytes", "retransmits"))
        whole = Pairs([*interval_pairs(start, end, moved, again), ("omitted", False), ("sender", True)])
        intervals.append(Pairs([("streams", parts), ("sum", whole)]))
        start = end
    return intervals, start


def iperf_log(repeat: int, rng: Random) -> str:
    """One run of ``iperf3 -c synthetic-node-02 -P 8 -J``."""
    first = rng.randrange(34_000, 58_000)
    streams = [Stream(5 + 2 * i, first + 2 * i + 12) for i in range(8)]
    head = iperf_start(streams, repeat, rng)
    intervals, sent_s = iperf_intervals(streams, rng)
    received_s = round(sent_s + 0.0004 + rng.random() * 0.0003, 6)
    moved, again = sum(s.sent for s in streams), sum(s.retransmits for s in streams)
    busy = [(side, rng.uniform(*span)) for side, span in (("host", (330, 390)), ("remote", (520, 610)))]
    parts = ("total", 1), ("user", 0.03), ("system", 0.97)
    cpu = [(f"{side}_{part}", load * share) for side, load in busy for part, share in parts]
    end = Pairs([
        ("streams", [s.summary(sent_s, received_s) for s in streams]),
        ("sum_sent", Pairs([*total_pairs(sent_s, sent_s, moved), ("retransmits", again), ("sender", True)])),
        ("sum_received", Pairs([*total_pairs(received_s, received_s, moved), ("sender", True)])),
        ("cpu_utilization_percent", Pairs(cpu)),
        ("sender_tcp_congestion", "cubic"), ("receiver_tcp_congestion", "cubic"),
    ])  # fmt: skip
    return json_text(Pairs([("start", head), ("intervals", intervals), ("end", end)])) + "\n"


UCX_BOX = (
    "+--------------+--------------+------------------------------+---------------------+-----------------------+",
    "|              |              |        latency (usec)        |   bandwidth (MB/s)  |  message rate (msg/s) |",
    "+--------------+--------------+----------+---------+---------+----------+----------+-----------+-----------+",
    "|    Stage     | # iterations | 50.0%ile | average | overall |  average |  overall |  average  |  overall  |",
    "+--------------+--------------+----------+---------+---------+----------+----------+-----------+-----------+",
)


def ucx_logs(rng: Random) -> tuple[str, str]:
    """Client and server of one tag_lat run of 8 bytes, captured with ``set -x``: the client prints no size itself."""
    median = 14.6 * math.exp(rng.gauss(0, 0.06))
    average = median * (1.05 + 0.12 * rng.random() ** 2)
    rate, width = 1e6 / average, len(UCX_BOX[0]) - 4
    mbyte_s = 8 * rate / MIB
    final = f"{'Final:':<10}{10000:18d}{median:11.3f}{average:10.3f}{average:10.3f}"
    final += f"{mbyte_s:12.2f}{mbyte_s:11.2f}{rate:12.0f}{rate:12.0f}"
    facts = {
        "API": "protocol layer", "Test": "tag match latency", "Data layout": "(automatic)",
        "Send memory": "host", "Recv memory": "host", "Message size": "8",
    }  # fmt: skip
    box = "+" + "-" * (width + 2) + "+"
    lines = [f"| {f'{key}:':<14}{value}".ljust(width + 3) + "|" for key, value in facts.items()]
    accepted = f"Accepted connection from {TCP.address(0)}:{rng.randrange(34_000, 60_000)}"
    server = ["+ ucx_perftest", "Waiting for connection...", accepted, box, *lines, box]
    return text_of([f"+ ucx_perftest {NODES[1]} -t tag_lat -s 8 -n 10000", *UCX_BOX, final]), text_of(server)


# --- the folder -------------------------------------------------------------------------------------------------------

README = """# Synthetic example logs

**No number here was measured.** Every log in this folder was written by `data/examples/generate.py` (seed {seed}):
curves with noise, laid out as the tools print them. Hosts are called `synthetic-node-01` and `synthetic-node-02`,
addresses come from the ranges kept for documentation (192.0.2, 198.51.100, 203.0.113).
Nothing here says how fast a product is.

What the logs pretend: two nodes of eight H100 GPUs, joined three times, each time by **one port a node**:

| folder | fabric | port | MTU |
|---|---|---|---|
| `tcp-100g` | TCP over 100 Gb/s Ethernet | 100 Gb/s | 9000 (interface) |
| `roce-100g` | RoCEv2 | 100 Gb/s | 4096 (RDMA) |
| `infiniband-ndr400` | InfiniBand NDR | 400 Gb/s | 4096 (RDMA) |

- `*/nccl/<operation>.<1-7>.log`: nccl-tests all_reduce, all_gather, alltoall on 16 ranks, 8 B to 4 GiB, with the
  NCCL INFO lines of ranks 0 and 8 (the other ranks are left out, as people do with `grep`);
- `*/perftest/<test>.<1-7>.log` and `.server.log`: both ends of ib_write_bw, ib_read_bw, ib_write_lat, ib_read_lat
  with `-a`, bandwidth with `--report_gbits`, latency with `-n 10000` (RDMA fabrics only);
- `tcp-100g/iperf3/tcp.<1-7>.json`: `iperf3 -P 8 -J`;
- `tcp-100g/ucx/tag_lat.<1-7>.log` and `.server.log`: both ends of `ucx_perftest -t tag_lat -s 8`,
  captured with `set -x`.

Three logs are bad on purpose, as in any folder from a customer:

- `tcp-100g/nccl/all_reduce.cut.log` ends in the middle of a row;
- `roce-100g/nccl/all_reduce.failed.log` dies after nineteen rows (`Test NCCL failure`);
- `roce-100g/nccl/all_reduce.fallback.log` lies among the RoCE logs, but NCCL found no RDMA device and used sockets.

Repeats of a run share a shift and rows scatter around it; TCP scatters most. Small sizes of all_gather and alltoall
print size 0, because nccl-tests cuts the part of one rank to 16 bytes.
"""


PAIRS_README = """# Synthetic node pairs

**No number here was measured.** Every log in this folder was written by `data/examples/generate.py` (seed {seed}), laid
out as the tools print it. Nothing here says how fast a product is.

What the logs pretend: eight nodes of eight H100 GPUs, `synthetic-node-01` to `synthetic-node-08`, each with one port of
InfiniBand NDR (400 Gb/s, MTU 4096), tested pair by pair before they are handed over:

- `nccl/all_reduce.<a>-<b>.log`: all_reduce among the sixteen GPUs of two nodes, 1 MiB to 4 GiB, for all 28 pairs, with
  the NCCL INFO lines of the first rank of each node;
- `perftest/ib_write_bw.<client>-<server>.log` and `.server.log`: both ends of `ib_write_bw -s 1048576`, for all 28
  pairs in both directions, each with the shell prompt and the command that was typed: perftest itself names no host.

Two faults are planted; everything else is clean:

- **`synthetic-node-06` is slow**: 12 % below the others in every test that it takes part in, as sender and as receiver;
- **one test ran with an MTU of 1024**: `perftest/ib_write_bw.03-05.log` and its `.server.log` print `Mtu : 1024[B]`
  although both ports have 4096, as every other test of these nodes prints and as NCCL does (`mtu 5` is 4096 bytes).
  It costs 1.4 %, too little to make this pair a slow one.
"""

PAIR_SIZES = NCCL_SIZES[17:]  # 1 MiB to 4 GiB
SLOW_NODE, SLOW_SHARE = 5, 0.88  # synthetic-node-06
SMALL_MTU, SMALL_MTU_GBIT_S = (2, 4), 386.8  # from synthetic-node-03 to -05; 1024 of 1050 bytes are payload


def pair_fabric(nodes: tuple[int, int]) -> Fabric:
    """The fabric as two nodes see it: slower for the slow one."""
    share = SLOW_SHARE if SLOW_NODE in nodes else 1
    curve = NDR.curves["all_reduce"]
    return replace(
        NDR, nodes=nodes, curves={"all_reduce": replace(curve, share=curve.share * share)},
        verbs=replace(NDR.verbs, write_gbit_s=NDR.verbs.write_gbit_s * share),
    )  # fmt: skip


def queue_pair_line(fabric: Fabric, node: int, pid: int, rng: Random) -> str:
    """What NCCL prints of a queue pair with NCCL_DEBUG_SUBSYS=NET; mtu is a code, 5 is 4096 bytes."""
    key = f"0x{0x18_0000 + rng.getrandbits(12):x}"
    return (
        f"{fabric.host(node)}:{pid}:{pid + 41} [0] NCCL INFO NET/IB: NCCL Dev 0 IbDev 0 Port 1 qpn "
        f"{rng.randrange(300, 9000)} mtu 5 LID {0x1A + fabric.nodes[node]} subnet-prefix 18338657682652659712  FLID 0 "
        f"fifoRkey={key} fifoLkey={key}"
    )


def pair_nccl_log(fabric: Fabric, rng: Random) -> str:
    """An all_reduce of two nodes, with the queue pair of each node among the NCCL INFO lines."""
    lines = nccl_log(fabric, "all_reduce", rng, PAIR_SIZES).splitlines()
    for at in reversed([i for i, line in enumerate(lines) if "Connected all rings" in line]):
        host, pid = lines[at].split(":")[:2]
        lines.insert(at, queue_pair_line(fabric, int(host == fabric.host(1)), int(pid), rng))
    return text_of(lines)


def prompted(fabric: Fabric, text: str, node: int) -> str:
    """What one end printed, below the prompt and the command that started it."""
    peer = "" if node else f" {fabric.host(1)}"
    return f"operator@{fabric.host(node)}:~$ ib_write_bw -d mlx5_0 -s {MIB} --report_gbits{peer}\n{text}"


def pair_logs(seed: int) -> Iterator[tuple[str, str]]:
    """Path and text of every log of the pairs: collectives, then both directions of perftest."""
    for number, nodes in enumerate(permutations(range(len(NODES)), 2)):
        fabric, name = pair_fabric(nodes), f"{nodes[0] + 1:02d}-{nodes[1] + 1:02d}"
        rng = Random(f"{seed}/pairs/{name}")
        if nodes[0] < nodes[1]:
            yield f"nccl/all_reduce.{name}.log", pair_nccl_log(fabric, rng)
        if nodes == SMALL_MTU:
            verbs = replace(fabric.verbs, write_gbit_s=SMALL_MTU_GBIT_S)
            fabric = replace(fabric, verbs=verbs, mtu=1024, payload_share=1024 / (1024 + 26))
        ends = perftest_logs(fabric, "ib_write_bw", number, rng, [MIB])
        for node, end in enumerate(("", ".server")):
            yield f"perftest/ib_write_bw.{name}{end}.log", prompted(fabric, ends[node], node)


def text_of(lines: Sequence[str]) -> str:
    """Lines as a text with a final newline."""
    return "\n".join(lines) + "\n"


def logs_of(fabric: Fabric, seed: int) -> Iterator[tuple[str, str]]:
    """Path and text of every log of a fabric; each draws from numbers of its own."""

    def rng(name: str) -> Random:
        return Random(f"{seed}/{fabric.name}/{name}")

    runs = range(1, REPEATS + 1)
    for operation in COLLECTIVES:
        for k in runs:
            name = f"nccl/{operation}.{k}.log"
            yield name, nccl_log(fabric, operation, rng(name))
    if fabric.verbs is None:
        for k in runs:
            yield f"iperf3/tcp.{k}.json", iperf_log(k, rng(f"iperf3.{k}"))
            names = f"ucx/tag_lat.{k}.log", f"ucx/tag_lat.{k}.server.log"
            yield from zip(names, ucx_logs(rng(f"ucx.{k}")), strict=True)
        return
    for t, test in enumerate(("ib_write_bw", "ib_read_bw", "ib_write_lat", "ib_read_lat")):
        for k in runs:
            texts = perftest_logs(fabric, test, t * REPEATS + k, rng(f"{test}.{k}"))
            yield from zip((f"perftest/{test}.{k}.log", f"perftest/{test}.{k}.server.log"), texts, strict=True)


def everything(seed: int) -> Iterator[tuple[str, str]]:
    """Path and text of every file of the first campaign."""
    yield "README.md", README.format(seed=seed)
    for fabric in FABRICS:
        yield from ((f"{fabric.name}/{name}", text) for name, text in logs_of(fabric, seed))
    yield f"{TCP.name}/nccl/all_reduce.cut.log", cut_log(TCP, Random(f"{seed}/cut"))
    yield f"{ROCE.name}/nccl/all_reduce.failed.log", failed_log(ROCE, Random(f"{seed}/failed"))
    yield f"{ROCE.name}/nccl/all_reduce.fallback.log", nccl_log(FALLBACK, "all_reduce", Random(f"{seed}/fallback"))


def all_pairs(seed: int) -> Iterator[tuple[str, str]]:
    """Path and text of every file of the second campaign."""
    yield "README.md", PAIRS_README.format(seed=seed)
    yield from pair_logs(seed)


CAMPAIGNS = {"synthetic": everything, "synthetic-pairs": all_pairs}


def write(out: Path, seed: int, campaign: str) -> int:
    """Writes all files of a campaign below *out* and returns how many; its file, kept by hand, is copied along."""
    files = dict(CAMPAIGNS[campaign](seed))
    for name, text in files.items():
        path = out / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(text, encoding="utf-8", newline="\n")
    for kept in (HERE / campaign).glob("*.toml"):
        if out.resolve() != kept.parent:
            shutil.copyfile(kept, out / kept.name)
    return len(files)


def main(arguments: Sequence[str] | None = None) -> None:
    """Reads the command line and writes the folders."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--out", type=Path, default=HERE, help="folder to write to; each campaign has its own in it")
    parser.add_argument("--seed", type=int, default=7, help="another seed gives other noise")
    given = parser.parse_args(arguments)
    for campaign in CAMPAIGNS:
        folder = given.out / campaign
        print(f"{write(folder, given.seed, campaign)} synthetic files in {folder}")


if __name__ == "__main__":
    main()
