"""Small logs as the tools print them, and stores that read them."""

import os
from pathlib import Path

import pytest

from rdmalab.ingest import Receipt, ingest
from rdmalab.lab import Lab
from rdmalab.store import Store

RULE = "-" * 87 + "\n"
HEAD = """\
#
#                                                              out-of-place                       in-place          
#       size         count      type   redop    root     time   algbw   busbw #wrong     time   algbw   busbw #wrong
#        (B)    (elements)                               (us)  (GB/s)  (GB/s)            (us)  (GB/s)  (GB/s)       
"""  # noqa: W291
# 64 MiB in 2000 us are 33.55 GB/s; over 16 ranks all_reduce moves 1.875 times that: 62.91 GB/s of busbw.
ROWS = """\
     1048576        262144     float     sum      -1    61.13   17.15   32.16      0    60.94   17.21   32.26      0
    67108864      16777216     float     sum      -1   2000.0   33.55   62.91      0   1999.6   33.56   62.93      0
"""
FOOTER = """\
# Out of bounds values : 0 OK
# Avg bus bandwidth    : 47.565 
#
"""  # noqa: W291


def nccl_log(
    *, nodes: int = 2, gpus: int = 8, operation: str = "all_reduce", info: str = "", rows: str = ROWS,
    footer: str = FOOTER, pid: int = 41200, gpu: str = "NVIDIA H100 80GB HBM3",
) -> str:  # fmt: skip
    """An nccl-tests log of *nodes* times *gpus* ranks, with NCCL_DEBUG lines *info*; *pid* makes contents differ."""
    devices = "".join(
        f"#  Rank {rank:2d} Group  0 Pid {pid + rank:6d} on node{rank // gpus + 1:02d} device {rank % gpus:2d} "
        f"[0x{16 * (rank % gpus) + 27:02x}] {gpu}\n"
        for rank in range(nodes * gpus)
    )
    return (
        f"# Collective test starting: {operation}_perf\n"
        "# nThread 1 nGpus 1 minBytes 1048576 maxBytes 67108864 step: 64(factor) warmup iters: 5 iters: 20 "
        "agg iters: 1 validation: 1 graph: 0\n"
        f"#\n# Using devices\n{devices}{info}{HEAD}{rows}{footer}"
    )


def channels(net: str, device: str = "") -> str:
    """NCCL_DEBUG lines of two nodes that reach each other through *net*; *device* is the list of verbs devices."""
    lines = []
    for node, (there, here) in (("node01", ("15[7]", "0[0]")), ("node02", ("7[7]", "8[0]"))):
        lines += [f"{node}:4120:4120 [0] NCCL INFO {device}"] if device else []
        lines += [
            f"{node}:4120:4120 [0] NCCL INFO Using network {net.split('/')[0]}",
            f"{node}:4120:4120 [0] NCCL INFO comm 0x55f9b2a1e780 rank {here.split('[')[0]} nRanks 16 nNodes 2 "
            "localRanks 8 localRank 0 MNNVL 0",
            f"{node}:4120:4120 [0] NCCL INFO Channel 00/0 : {there} -> {here} [receive] via NET/{net}",
        ]
    return "\n".join(lines) + "\n"


ROCE = channels("IB/0/GDRDMA", "NET/IB : Using [0]mlx5_0:1/RoCE [RO]; OOB eth0:192.0.2.11<0>")
INFINIBAND = channels("IB/0/GDRDMA", "NET/IB : Using [0]mlx5_0:1/IB [RO]; OOB eth0:192.0.2.11<0>")
FALLBACK = channels("Socket/0", "NET/IB : No device found.")
ONE_NODE = (
    "node01:4120:4120 [0] NCCL INFO comm 0x55f9b2a1e780 rank 0 nRanks 8 nNodes 1 localRanks 8 localRank 0 MNNVL 0\n"
    "node01:4120:4120 [0] NCCL INFO Channel 00/0 : 0[0] -> 1[1] via P2P/CUMEM\n"
)


def perftest_log(side: str, *, qpn: int = 0x129, link: str = "IB", footer: bool = True) -> str:
    """One end of an ib_write_bw run; both ends carry each other's address. The server prints its last row only."""
    own, other = (f"LID 0x1a QPN 0x{qpn:04x} PSN 0xd1365c", f"LID 0x1b QPN 0x{qpn + 64:04x} PSN 0xd685df")
    if side == "server":
        own, other = other, own
    waiting = "\n" + "*" * 36 + "\n* Waiting for client to connect... *\n" + "*" * 36 + "\n" if side == "server" else ""
    depth = " TX depth        : 128\n" if side == "client" else ""
    rows = [
        " 4096       5000             92.53              91.87  \t\t     2.803650\n",
        " 65536      5000             392.48             392.23 \t\t     0.748119\n",
    ]
    return (
        f"{waiting}{RULE}                    RDMA_Write BW Test\n"
        " Dual-port       : OFF\t\tDevice         : mlx5_0\n"
        " Number of qps   : 1\t\tTransport type : IB\n"
        " Connection type : RC\t\tUsing SRQ      : OFF\n"
        f"{depth} CQ Moderation   : 100\n Mtu             : 4096[B]\n Link type       : {link}\n"
        " Max inline data : 0[B]\n rdma_cm QPs\t : OFF\n Data ex. method : Ethernet\n"
        f"{RULE} local address: {own} RKey 0x1812bd VAddr 0x007f0ba9f76000\n"
        f" remote address: {other} RKey 0x1812bd VAddr 0x007f0ba9f76000\n{RULE}"
        " #bytes     #iterations    BW peak[Gb/sec]    BW average[Gb/sec]   MsgRate[Mpps]\n"
        f"{''.join(rows if side == 'client' else rows[-1:])}{RULE if footer else ''}"
    )


def write(path: Path, content: str | bytes) -> Path:
    """Writes a file and the folders above it."""
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_bytes(content.encode() if isinstance(content, str) else content)
    return path


def touch(path: Path) -> None:
    """Makes a file look written a second later."""
    status = path.stat()
    os.utime(path, ns=(status.st_atime_ns, status.st_mtime_ns + 10**9))


class Bench:
    """A folder of logs and the store that reads it."""

    def __init__(self, root: Path) -> None:
        self.logs = root / "logs"
        self.logs.mkdir()
        self.store = Store(root / "data" / "lab.duckdb")

    def log(self, name: str, content: str | bytes) -> Path:
        """Writes a log."""
        return write(self.logs / name, content)

    def campaign(self, text: str, folder: str = ".") -> Path:
        """Writes a campaign file."""
        return write(self.logs / folder / "rdmalab.toml", text)

    def ingest(self, *paths: Path, name: str | None = None) -> Receipt:
        """Reads the folder, or *paths*."""
        return ingest(paths or (self.logs,), self.store, campaign=name)

    def rows(self, sql: str) -> list[tuple[object, ...]]:
        """The rows of a query."""
        with Lab(self.store.path) as lab:
            return lab.sql(sql).rows()

    def one(self, sql: str) -> object:
        """The only value of a query."""
        ((value,),) = self.rows(sql)
        return value


@pytest.fixture
def bench(tmp_path: Path) -> Bench:
    """An empty folder for logs and a store that is not there yet."""
    return Bench(tmp_path)
