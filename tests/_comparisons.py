"""Builders for the tests of the comparison: logs as the tools print them, stores that read them, and bare records."""

import json
from collections.abc import Iterable, Mapping, Sequence
from html.parser import HTMLParser
from pathlib import Path
from typing import Any

import polars as pl

from rdmalab import compare, series
from rdmalab.compare import Comparison
from rdmalab.display import Block
from rdmalab.ingest import ingest
from rdmalab.lab import Lab
from rdmalab.pages.fabric_comparison import FabricComparison
from rdmalab.series import Selection, Subject
from rdmalab.store import Store

RULE = "-" * 87
SEVEN = [1.0, 1.002, 0.998, 1.004, 0.996, 1.006, 0.994]  # runs that scatter by 1 %


# -- logs ---------------------------------------------------------------------------------------------------------


def nccl(
    times: Mapping[int, float] | Iterable[tuple[int, float]], *, pid: int, operation: str = "all_reduce",
    ranks: int = 16, nodes: int = 2, dtype: str = "float", redop: str = "sum", in_place: float = 1.0,
    busbw: float | None = None, iters: int = 20, agg: int = 1, root: int = -1,
) -> str:  # fmt: skip
    """An nccl-tests log: size in bytes → time in µs, in place *in_place* times that; *pid* makes contents differ."""
    gpus = ranks // nodes
    devices = [
        f"#  Rank {r:2d} Group  0 Pid {pid + r:6d} on node{r // gpus + 1:02d} device {r % gpus:2d} "
        f"[0x{16 * (r % gpus) + 27:02x}] NVIDIA H100 80GB HBM3"
        for r in range(ranks)
    ]
    rows = []
    for size, time in times.items() if isinstance(times, Mapping) else times:
        line = f"{size:12d}  {size // 4:12d}  {dtype:>8s}  {redop:>6s}  {root:6d}"
        for t in (time, time * in_place):
            algbw = size / t / 1e3
            factor = 2 * (ranks - 1) / ranks if operation == "all_reduce" else (ranks - 1) / ranks
            line += f"  {t:.2f}  {algbw:.2f}  {busbw if busbw is not None else algbw * factor:.2f}      0"
        rows.append(line)
    head = [
        f"# Collective test starting: {operation}_perf",
        f"# nThread 1 nGpus 1 minBytes 8 maxBytes 1073741824 step: 2(factor) warmup iters: 5 iters: {iters} "
        f"agg iters: {agg} validation: 1 graph: 0",
        "#", "# Using devices", *devices, "#",
        "#                                                              out-of-place                       in-place",
        "#       size         count      type   redop    root     time   algbw   busbw #wrong"
        "     time   algbw   busbw #wrong",
        "#        (B)    (elements)                               (us)  (GB/s)  (GB/s)            (us)  (GB/s)  (GB/s)",
    ]  # fmt: skip
    return "\n".join([*head, *rows, "# Out of bounds values : 0 OK", "# Avg bus bandwidth    : 47.565", "#", ""])


def hccl(times: Mapping[int, float], *, serial: int, ranks: int = 8, command: str = "") -> str:
    """An hccl_test log: times and algorithm bandwidths, no bus bandwidth."""
    rows = [f"{size:<24d}| {t:<18.2f}| {size / t / 1e3:<20.5f}| success" for size, t in times.items()]
    head = f"the minbytes is 8192, maxbytes is {max(times)}, iters is 20, warmup_iters is {5 + serial}"
    names = "data_size(Bytes):       | aveg_time(us):    | alg_bandwidth(GB/s): | check_result:"
    return "\n".join([command or f"mpirun -n {ranks} ./bin/all_reduce_test -b 8K -e 1G -p 8", head, names, *rows, ""])


def _banner(
    title: str, *, qpn: int, queue_pairs: int = 1, mtu: int = 4096, connection: str = "RC", link: str = "Ethernet"
) -> list[str]:
    roce, lid = link == "Ethernet", "0000" if link == "Ethernet" else "0x1a"
    head = [
        RULE, f"                    {title}",
        " Dual-port       : OFF\t\tDevice         : mlx5_0",
        f" Number of qps   : {queue_pairs}\t\tTransport type : IB",
        f" Connection type : {connection}\t\tUsing SRQ      : OFF",
        " TX depth        : 128", f" Mtu             : {mtu}[B]", f" Link type       : {link}",
        *([" GID index       : 3"] if roce else []),
        " rdma_cm QPs\t : OFF", " Data ex. method : Ethernet", RULE,
    ]  # fmt: skip
    for end, at, number in (("local", 11, qpn), ("remote", 12, qpn + 4096)):
        head.append(f" {end} address: LID {lid} QPN 0x{number:04x} PSN 0x38e040 RKey 0x181232 VAddr 0x007f0ab7a38000")
        head += [f" GID: 00:00:00:00:00:00:00:00:00:00:255:255:192:00:02:{at}"] if roce else []
    return [*head, RULE]


def write_bw(
    rates: Mapping[int, float], *, qpn: int, verb: str = "Write", both: bool = False, queue_pairs: int = 1,
    mtu: int = 4096, connection: str = "RC", iterations: int = 5000,
) -> str:  # fmt: skip
    """A perftest bandwidth log: size in bytes → average Gb/s."""
    title = f"RDMA_{verb} {'Bidirectional ' if both else ''}BW Test"
    rows = [
        f" {s:<10d} {iterations}             {r:.2f}              {r:.2f}  \t\t     {r * 1e3 / 8 / s:.6f}"
        for s, r in rates.items()
    ]
    head = " #bytes     #iterations    BW peak[Gb/sec]    BW average[Gb/sec]   MsgRate[Mpps]"
    return "\n".join(
        [*_banner(title, queue_pairs=queue_pairs, mtu=mtu, qpn=qpn, connection=connection), head, *rows, RULE, ""]
    )


def latency(times: Mapping[int, float], *, qpn: int, verb: str = "Write", link: str = "Ethernet") -> str:
    """A perftest latency log: size in bytes → typical µs; Write prints half the round trip, Read all of it."""
    rows = [
        f" {s:<7d} 10000          {t:.2f}           {t:.2f}         {t:.2f}     \t       {t:.2f}        \t0.06   "
        f"\t\t{t:.2f}    \t\t{t:.2f}   "
        for s, t in times.items()
    ]
    head = (
        " #bytes #iterations    t_min[usec]    t_max[usec]  t_typical[usec]    t_avg[usec]    t_stdev[usec]   "
        "99% percentile[usec]   99.9% percentile[usec] "
    )
    banner = _banner(f"RDMA_{verb} Latency Test", qpn=qpn, link=link)
    return "\n".join([*banner, head, *rows, RULE, ""])


def iperf3(
    gbit_s: float, *, cookie: str, protocol: str = "TCP", streams: int = 1, back: float | None = None,
    reverse: bool = False, server: bool = False,
) -> str:  # fmt: skip
    """An iperf3 JSON document: what the receiver got, and with *back* what came in the other direction."""
    end: dict[str, Any] = {"sum_received": {"bits_per_second": gbit_s * 1e9, "bytes": int(gbit_s * 1e9)}}
    if back is not None:
        end["sum_received_bidir_reverse"] = {"bits_per_second": back * 1e9, "bytes": int(back * 1e9)}
    start: dict[str, Any] = {
        "version": "iperf 3.12", "cookie": cookie,
        "test_start": {"protocol": protocol, "num_streams": streams, "duration": 5, "reverse": int(reverse)},
    }  # fmt: skip
    start["accepted_connection" if server else "connecting_to"] = {"host": "192.0.2.11", "port": 5201}
    return json.dumps({"start": start, "intervals": [], "end": end}, indent=1)


def ucx(times_us: float, *, iterations: int = 1000) -> str:
    """The client of ucx_perftest with a latency: its table names neither test nor size."""
    rule = (
        "+--------------+--------------+------------------------------+---------------------+-----------------------+"
    )
    return "\n".join([
        rule,
        "|              |              |        latency (usec)        |   bandwidth (MB/s)  |  message rate (msg/s) |",
        "+--------------+--------------+----------+---------+---------+----------+----------+-----------+-----------+",
        "|    Stage     | # iterations | 50.0%ile | average | overall |  average |  overall |  average  |  overall  |",
        "+--------------+--------------+----------+---------+---------+----------+----------+-----------+-----------+",
        f"Final:{iterations:22d}{times_us:11.3f}{times_us:10.3f}{times_us:10.3f}"
        "        0.19       0.19        3080        3080",
        "",
    ])  # fmt: skip


# -- stores -------------------------------------------------------------------------------------------------------


FACTS = """\
link_rate_gbit_s = 100
ports_per_node = 1
mtu_bytes = 4096
gpus_per_node = 8
gpus_per_domain = 8
scale_up_gbyte_s = 450
in_network = false
"""


def campaign(*fabrics: str, more: str = "") -> str:
    """A campaign file: fabrics as ``name:family``, each with the logs of the folder of its name."""
    out = '[campaign]\nname = "test"\ntitle = "A test"\n'
    for text in fabrics:
        name, _, family = text.partition(":")
        out += f'[[fabric]]\nname = "{name}"\nlabel = "{name.upper()}"\nfamily = "{family or name}"\n'
        out += f'logs = ["{name}/**"]\n{FACTS}'
    return out + more


def lab_of(root: Path, logs: Mapping[str, str], toml: str | None = None) -> Lab:
    """A store that has read *logs* (path → text), beside a campaign file or without one."""
    folder = root / "logs"
    for name, text in logs.items():
        path = folder / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(text, encoding="utf-8")
    if toml is not None:
        (folder / "rdmalab.toml").write_text(toml, encoding="utf-8")
    store = Store(root / "store.duckdb")
    ingest([folder], store)
    return Lab(store.path)


def runs_of(
    fabric: str, factor: float, sizes: Sequence[int] = (8, 1024, 1 << 20), *, runs: int = 7, **how: Any
) -> dict[str, str]:
    """*runs* nccl-tests logs of one fabric whose times are *factor* times 20 µs and up, with a scatter of 1 %."""
    serial = sum(map(ord, fabric)) * 1000
    name = f"{fabric}/{how.get('operation', 'all_reduce')}.{how.get('dtype', 'float')}.{how.get('ranks', 16)}"
    return {
        f"{name}.{i}.log": nccl(
            {s: factor * (20 + s / 1e4) * SEVEN[i % 7] for s in sizes}, pid=serial + 100 * i + 1, **how
        )
        for i in range(runs)
    }


# -- records ------------------------------------------------------------------------------------------------------

COLLECTIVE = Subject(
    kind="collective", tool="nccl-tests", operation="all_reduce", dtype="float", redop="sum", ranks=16, nodes=2,
    placement="out_of_place",
)  # fmt: skip
LATENCY = Subject(
    kind="latency", test="ib_write_lat", bidirectional=False, memory="host", latency_convention="one_way",
    connection="RC", queue_pairs=1, reverse=False,
)  # fmt: skip
BANDWIDTH = Subject(
    kind="bandwidth", test="ib_write_bw", bidirectional=False, memory="host", connection="RC", queue_pairs=1,
    reverse=False,
)  # fmt: skip

Values = Mapping[tuple[str, int | None], Sequence[float | None]]


def points_of(
    subject: Subject, values: Values, *, limit: float | None = None, share: float | None = None, paired: bool = False
) -> pl.DataFrame:
    """
    The points of one subject: (fabric, size) → one value a run; *share* is the use of the limit in per cent.

    Where *paired*, the runs of two fabrics belong together in the order given; a value of None is no run.
    """
    rows = []
    for (fabric, size), runs in values.items():
        for i, value in enumerate(runs):
            if value is None:
                continue
            row: dict[str, Any] = dict.fromkeys((*series.COLLECTIVE_KEY, *series.TEST_KEY, *series.RESIDUE))
            row |= {k: getattr(subject, k) for k in row if hasattr(subject, k)}
            row |= {"time_us": None, "lat_typical_us": None, "bw_avg_gbit_s": None, "busbw_gbyte_s": None}
            row |= {
                "row": len(rows), "fabric": fabric, "kind": subject.kind, "run_id": f"{subject.kind[0]}-{fabric}-{i}",
                "path": f"/home/alice/logs/{fabric}/{i}.log", "sha256": "ab" * 32, "line": 7, "size_bytes": size,
                "size_declared": False, "hosts": ["node-a", "node-b"], "limit_gbyte_s": limit,
                "limit_formula": "12.5 x 4096 / 4178" if limit else None,
                "limit_missing": None if limit else "link_rate_gbit_s", "utilization_pct": share,
                "limit_source": "a table of limits" if limit else None, "paired_as": f"{i:02}" if paired else None,
                subject.metric: value,
            }  # fmt: skip
            if subject.kind == "collective" and size and value:
                row["busbw_gbyte_s"] = round(1.875 * size / value / 1e3, 2)
            rows.append(row)
    texts = dict.fromkeys(
        ("tool", "operation", "dtype", "redop", "placement", "test", "memory", "connection", "paired_as"), pl.String
    )
    metrics = ("time_us", "lat_typical_us", "bw_avg_gbit_s", "busbw_gbyte_s", "utilization_pct", "limit_gbyte_s")
    floats = dict.fromkeys(metrics, pl.Float64)
    return pl.DataFrame(
        rows,
        schema_overrides={**texts, **floats, "size_bytes": pl.Int64},
        infer_schema_length=None,
    )


def comparison(
    *parts: tuple[Subject, Values], labels: Mapping[str, str] | None = None, families: Mapping[str, str] | None = None,
    order: Sequence[str] = (), excluded: Mapping[str, str] | None = None, **how: Any,
) -> Comparison:  # fmt: skip
    """A comparison of bare values, judged by the very code that judges a store."""
    names = list(order) or list(dict.fromkeys(f for _, values in parts for f, _ in values))
    points = (
        pl.concat([points_of(s, v, **how) for s, v in parts], how="vertical_relaxed").drop("row").with_row_index("row")
    )
    tables = [t for s, frame in series.subjects(points) for t in compare.tables(s, frame, names)]
    tables.sort(key=lambda t: [t.subject == s for s, _ in parts], reverse=True)
    refusals = compare._refusals(points, tables, names, set())
    ids = dict.fromkeys(points.select("fabric", "run_id").iter_rows())
    excluded = excluded or {}
    runs = [
        {
            "run_id": r, "fabric": f, "tool": "nccl-tests", "program": None, "operation": "all_reduce",
            "kind": "collective", "status": "complete", "path": f"/home/alice/logs/{f}/{r}.log", "sha256": "ab" * 32,
            "line": 7, "hosts": ["node-a"], "excluded_because": excluded.get(r), "transport_verdict": None,
            "transport_gdr": None, "transport_fallback": None, "fabric_family": "tcp", "fabric_evidence": None,
            "fabric_printed": None, "rows": 3, "log_id": r,
        }
        for f, r in [*ids, *((names[0], r) for r in excluded if r not in {i for _, i in ids})]
    ]  # fmt: skip
    shown = [(labels or {}).get(n, n.upper()) for n in names]
    kinds = [(families or {}).get(n, "unknown") for n in names]
    return Comparison(
        campaign={
            "campaign": "test", "title": "A test", "customer": None, "synthetic": False, "notes": [],
            "root": "/home/alice/logs",
        },
        selection=Selection(), fabrics=pl.DataFrame({"fabric": names, "label": shown, "fabric_family": kinds}),
        baseline=names[0], tables=tuple(tables), refusals=tuple(refusals),
        runs=pl.DataFrame(
            runs, schema_overrides=dict.fromkeys(
                ("excluded_because", "transport_verdict", "fabric_printed", "program"), pl.String
            ),
        ),
        snapshot="0123456789abcdef",
    )  # fmt: skip


def around(median: float, n: int = 7, spread: float = 0.01) -> list[float]:
    """*n* values around a median, to the printed hundredth."""
    return [round(median * (1 + spread * (i - (n - 1) / 2) / max(1, n)), 2) for i in range(n)]


# -- pages --------------------------------------------------------------------------------------------------------


def blocks(page: FabricComparison) -> list[Block]:
    """All pages of a report, in order."""
    found = [page.cover(), page.summary(), page.latency(), page.throughput(), page.utilization_and_ratio()]
    return [*found, *page.point_to_point(), page.others(), page.evidence(), page.method()]


class Reader(HTMLParser):
    """Reads a fragment: its text, and what is wrong with its tags."""

    def __init__(self, html: str) -> None:
        super().__init__(convert_charrefs=True)
        self.open: list[str] = []
        self.errors: list[str] = []
        self.tags: list[str] = []
        self.texts: list[str] = []
        self.feed(html)
        self.close()
        self.errors += [f"<{t}> is not closed" for t in self.open]

    @property
    def text(self) -> str:
        """All text, one line an element."""
        return "\n".join(self.texts)

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        self.open.append(tag)
        self.tags.append(tag)

    def handle_endtag(self, tag: str) -> None:
        if not self.open or self.open[-1] != tag:
            self.errors.append(f"</{tag}> closes {self.open[-1:] or 'nothing'}")
        elif self.open:
            self.open.pop()

    def handle_data(self, data: str) -> None:
        if data.strip():
            self.texts.append(data)


def figure_texts(block: Block) -> str:
    """The words inside the charts of a page."""
    figures = [json.loads(f.to_json() or "{}") for f in block.figures]
    return "\n".join(a["text"] for f in figures for a in f["layout"].get("annotations", ()))
