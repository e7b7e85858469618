"""The vocabulary: what a log becomes once it is read. Frozen records without any I/O.

Log      one file's content
Run      one invocation of one test
Sample   one row of a result table at one placement
Reading  one value of a time series (utilization, counter)
Note     anything a reader of the numbers must know

Missing is ``None``, never 0. Every unit is in the name (see :mod:`rdmalab.units`).
"""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from datetime import datetime
from typing import Any, NamedTuple, overload

# From worst to best: a log takes the worst status of its runs.
STATUSES = ("failed", "truncated", "no_data", "complete")
KINDS = ("collective", "bandwidth", "latency", "message_rate")
COLLECTIVES = (
    "all_reduce", "all_gather", "reduce_scatter", "broadcast", "reduce", "gather", "scatter", "alltoall", "alltoallv",
    "sendrecv", "hypercube",
)  # fmt: skip
FAMILIES = (
    "tcp", "iwarp", "roce", "softroce", "infiniband", "nvlink", "xgmi", "hccs", "pcie", "efa", "slingshot", "ethernet",
    "unknown",
)  # fmt: skip


class Sample(NamedTuple):
    """One row of a result table at one placement; what a tool does not measure is None.

    A tuple rather than a dataclass because a log makes dozens of them and they are made a hundred thousand a second.
    """

    line: int | None = None
    size_bytes: int | None = None
    # collectives (nccl-tests and its relatives)
    count: int | None = None  # type: ignore[assignment]  # hides tuple.count, which nobody calls
    dtype: str | None = None
    redop: str | None = None
    root: int | None = None
    placement: str | None = None  # out_of_place, in_place
    cycle: int | None = None
    time_us: float | None = None
    cpu_time_us: float | None = None
    algbw_gbyte_s: float | None = None
    busbw_gbyte_s: float | None = None
    wrong: int | None = None
    max_delta: float | None = None
    # point to point (perftest, iperf3, UCX, ...)
    iterations: int | None = None
    bw_peak_gbit_s: float | None = None
    bw_avg_gbit_s: float | None = None
    msg_rate_mpps: float | None = None
    cpu_util_pct: float | None = None
    lat_min_us: float | None = None
    lat_max_us: float | None = None
    lat_typical_us: float | None = None  # the median
    lat_avg_us: float | None = None
    lat_stdev_us: float | None = None
    lat_p99_us: float | None = None
    lat_p999_us: float | None = None
    tps: float | None = None
    # extras of some versions
    iter_min_us: float | None = None
    iter_max_us: float | None = None
    iter_p99_us: float | None = None
    iter_cv_pct: float | None = None
    algorithm: str | None = None
    protocol: str | None = None
    channels: int | None = None
    printed_at: str | None = None  # as printed, local time of the machine
    service_level: int | None = None  # of raw_ethernet_bw --raw_qos
    bw_port1_gbit_s: float | None = None  # perftest --report-per-port: the averages of each port
    msg_rate_port1_mpps: float | None = None
    bw_port2_gbit_s: float | None = None
    msg_rate_port2_mpps: float | None = None


class Samples(Sequence[Sample]):
    """
    The samples of a run, held column by column; equal to the tuple of them. Missing columns are null.

    Most samples go from a log into a store and are never looked at one by one, so each is made when it is asked for.
    """

    __slots__ = ("columns", "length")

    def __init__(self, columns: dict[str, Any]) -> None:
        self.columns: dict[str, Sequence[Any]] = columns
        self.length = len(next(iter(columns.values()), ()))

    @classmethod
    def of(cls, samples: "Sequence[Sample]") -> "Samples":
        """Samples one by one as columns."""
        if isinstance(samples, cls):
            return samples
        columns = zip(Sample._fields, zip(*samples, strict=True), strict=False)
        found = {n: column for n, column in columns if column[0] is not None or any(c is not None for c in column)}
        return cls(found or {"line": (None,) * len(samples)})  # rows of which nothing is known are rows

    def column(self, name: str) -> Sequence[Any]:
        """One field of all samples."""
        return self.columns.get(name) or [None] * self.length

    def __len__(self) -> int:
        return self.length

    def __iter__(self) -> Iterator[Sample]:
        return map(Sample._make, zip(*map(self.column, Sample._fields), strict=True))

    @overload
    def __getitem__(self, index: int) -> Sample: ...
    @overload
    def __getitem__(self, index: slice) -> tuple[Sample, ...]: ...
    def __getitem__(self, index: int | slice) -> Sample | tuple[Sample, ...]:
        if isinstance(index, slice):
            return tuple(self)[index]
        return Sample(**{name: column[index] for name, column in self.columns.items()})

    def __eq__(self, other: object) -> bool:
        return tuple(self) == tuple(other) if isinstance(other, Samples | tuple) else NotImplemented

    def __hash__(self) -> int:
        return hash(tuple(self))

    def __repr__(self) -> str:
        return repr(tuple(self))


# What is always written for a kind, null or not; the rest only where it has a value.
_COLLECTIVE = (
    "line", "size_bytes", "count", "dtype", "redop", "root", "placement", "time_us", "algbw_gbyte_s", "busbw_gbyte_s",
    "wrong",
)  # fmt: skip
_BANDWIDTH = ("line", "size_bytes", "iterations", "bw_peak_gbit_s", "bw_avg_gbit_s", "msg_rate_mpps", "cpu_util_pct")
_LATENCY = (
    "line", "size_bytes", "iterations", "lat_min_us", "lat_max_us", "lat_typical_us", "lat_avg_us", "lat_stdev_us",
    "lat_p99_us", "lat_p999_us", "tps",
)  # fmt: skip
SAMPLE_FIELDS = {
    "collective": _COLLECTIVE, "bandwidth": _BANDWIDTH, "latency": _LATENCY, "message_rate": _BANDWIDTH,
}  # fmt: skip


@dataclass(frozen=True, slots=True, kw_only=True)
class Run:
    """One invocation of one test.

    ``operation`` is None with ``operation_candidates`` where the text does not decide it; what was inferred says from
    what (``*_evidence``). ``latency_convention`` is ``one_way`` (half a round trip) or ``round_trip``.
    """

    tool: str
    kind: str
    status: str
    line: int | None
    samples: Sequence[Sample] = ()
    operation: str | None = None
    operation_candidates: tuple[str, ...] = ()
    operation_evidence: str | None = None
    program: str | None = None
    tool_version: str | None = None
    command: str | None = None
    # collectives
    ranks: int | None = None
    ranks_evidence: str | None = None
    nodes: int | None = None
    hosts: tuple[str, ...] = ()
    gpu_model: str | None = None
    communicator_ranks: int | None = None  # of one communicator, where NCCL_TESTS_SPLIT makes several
    average_busbw_gbyte_s: float | None = None  # printed by the tool; stored, never ranked by
    out_of_bounds: int | None = None
    iterations: int | None = None
    warmup_iterations: int | None = None
    aggregated_iterations: int | None = None
    validation: int | None = None
    library_version: str | None = None  # NCCL, RCCL, ...
    # point to point
    device: str | None = None
    link_layer: str | None = None  # InfiniBand, Ethernet: as printed
    transport: str | None = None  # IB, iWARP, unknown: as printed by perftest
    connection: str | None = None
    mtu_bytes: int | None = None
    queue_pairs: int | None = None
    bidirectional: bool | None = None
    side: str | None = None  # client, server
    memory: str | None = None  # host, cuda, rocm, ...
    fabric: str | None = None  # family that the text itself shows, see FAMILIES
    fabric_evidence: str | None = None
    unit_printed: str | None = None
    latency_convention: str | None = None
    gid_index: int | None = None
    local_address: str | None = None  # LID, QPN, PSN, GID: the two ends of one test carry each other's
    remote_address: str | None = None
    peer: str | None = None  # the host that the command of a client names, as typed
    streams: int | None = None  # parallel connections of iperf3
    duration_s: float | None = None
    protocol: str | None = None  # TCP, UDP


@dataclass(frozen=True, slots=True, kw_only=True)
class Reading:
    """One value of a time series. ``read_at`` is UTC; a stamp without a zone leaves it None and stays in ``stamp``."""

    metric: str
    value: float | None
    unit: str | None = None
    read_at: datetime | None = None
    host: str | None = None
    device: str | None = None
    line: int | None = None
    stamp: str | None = None  # as printed, local time of the machine


class Note(NamedTuple):
    """Something a reader of the numbers must know: ``code`` for machines, ``text`` for people."""

    line: int | None
    code: str
    text: str


class Evidence(NamedTuple):
    """A line of a log that proves something, quoted."""

    line: int
    text: str


@dataclass(frozen=True, slots=True, kw_only=True)
class Transport:
    """What really carried the traffic, judged from the lines of an NCCL or RCCL log (see ``formats/nccl_info.py``).

    verdict: ib, roce, ofi, socket, intra_node, rdma_unspecified, unknown. gdr: all, none, mixed or None.
    """

    verdict: str
    gdr: str | None = None
    fallback: bool = False
    fallback_reason: str | None = None
    provider: str | None = None
    evidence: tuple[Evidence, ...] = ()
    communicators: tuple[dict[str, Any], ...] = ()


@dataclass(frozen=True, slots=True, kw_only=True)
class Parsed:
    """What one format read in one log. Runs stand in order of appearance."""

    runs: tuple[Run, ...] = ()
    readings: tuple[Reading, ...] = ()
    notes: tuple[Note, ...] = ()
    transport: Transport | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class Log:
    """One file's content, read. ``sha256`` is of the decompressed bytes."""

    path: str
    sha256: str
    size_bytes: int
    formats: tuple[str, ...] = ()
    runs: tuple[Run, ...] = ()
    readings: tuple[Reading, ...] = ()
    notes: tuple[Note, ...] = ()
    transport: Transport | None = None
    modified_ns: int | None = field(default=None, compare=False)

    @property
    def status(self) -> str:
        """The worst status of the runs; ``unrecognised`` when no format claims the text."""
        if not self.formats:
            return "unrecognised"
        found = {r.status for r in self.runs}
        if not found:
            return "complete" if self.readings or self.transport else "no_data"
        return next(s for s in STATUSES if s in found)
