"""Like with like: which samples may stand beside each other, and what differs between them all the same.

A *subject* is one measurand: a collective of one tool with its operation, type, reduction, root, ranks, nodes and
placement; or a point-to-point test in one configuration; or a group of tests that the campaign file declares to
measure the same.
"""

from collections.abc import Collection, Iterable
from dataclasses import dataclass, fields
from typing import TYPE_CHECKING, Any, NamedTuple

from rdmalab.errors import UsageError, did_you_mean
from rdmalab.units import parse_size

if TYPE_CHECKING:
    import polars as pl

    from rdmalab.lab import Lab

# What must agree before two runs are put side by side; the rest is residue and is said beside the numbers.
COLLECTIVE_KEY = (
    "tool", "operation", "dtype", "redop", "root", "ranks", "communicator_ranks", "nodes", "placement",
    "aggregated_iterations",
)  # fmt: skip
TEST_KEY = (
    "test", "bidirectional", "memory", "latency_convention", "connection", "queue_pairs", "streams", "protocol", "side",
    "reverse",
)  # fmt: skip
RESIDUE = (
    "nodes", "gpu_model", "library_version", "tool_version", "device", "mtu_bytes", "gid_index", "transport_gdr",
    "run_iterations", "warmup_iterations", "iterations", "duration_s", "algorithm", "nccl_protocol", "connection",
    "queue_pairs", "streams", "hosts",
)  # fmt: skip

FABRIC_BOUND = ("gid_index",)  # part of the fabric: counts only where it varies inside one

# What a fabric is called that has no campaign file to name it: its family.
FAMILY_LABELS = {
    "tcp": "TCP", "iwarp": "iWARP", "roce": "RoCE", "softroce": "Soft-RoCE", "infiniband": "InfiniBand", "efa": "EFA",
    "slingshot": "Slingshot", "nvlink": "NVLink", "xgmi": "xGMI", "hccs": "HCCS", "pcie": "PCIe",
    "ethernet": "Ethernet",
    "unknown": "Unknown fabric",
}  # fmt: skip

# What a field of the keys is in the view ``results``, where it is not the column of its name.
_IN_RESULTS = {
    "test": "coalesce(program, tool)",
    "communicator_ranks": "nullif(communicator_ranks, ranks)",
    "aggregated_iterations": "nullif(aggregated_iterations, 1)",
    "protocol": "run_protocol",
    "side": "CASE WHEN kind <> 'collective' AND (tool <> 'perftest' OR local_address IS NULL) THEN side END",
    "reverse": "coalesce((log_id, run_line) IN (SELECT (log_id, line) FROM notes WHERE code = 'reverse'), false)",
}
KEYS_OF_SAMPLES = ("dtype", "redop", "root", "placement")  # the other fields of the keys are those of the run

# The fields of the residue that are columns of a run in ``results``.
OF_RUN = (
    "gpu_model", "library_version", "tool_version", "device", "mtu_bytes", "gid_index", "transport_gdr",
    "run_iterations", "warmup_iterations", "duration_s",
)  # fmt: skip

# iperf3 --bidir prints one run a direction: both are one invocation, and one run of the statistics.
BOTH_DIRECTIONS = "(tool = 'iperf3' AND coalesce(bidirectional, false))"


@dataclass(frozen=True, kw_only=True)
class Selection:
    """
    What to compare; the names are those of every report's parameters.

    Args:
        campaign: Name; may be left out where the store has one.
        fabrics: Names of fabrics in the order wanted; default all, in the order of the campaign file.
        baseline: The fabric that the others are divided by; default the first.
        operation, dtype, ranks, placement: Filters on collectives.
        size_min, size_max: Message sizes in bytes, or texts like ``64KiB``; both included.
    """

    campaign: str | None = None
    fabrics: tuple[str, ...] | list[str] | None = None
    baseline: str | None = None
    operation: str | None = None
    dtype: str | None = None
    ranks: int | None = None
    placement: str | None = None
    size_min: int | str | None = None
    size_max: int | str | None = None

    def __post_init__(self) -> None:
        """Parameters of notebooks that were not given are empty: they count as not given."""
        for f in fields(self):
            if not getattr(self, f.name):
                object.__setattr__(self, f.name, None)
        if isinstance(self.fabrics, str):
            object.__setattr__(self, "fabrics", [name.strip() for name in self.fabrics.split(",")])

    @property
    def filters(self) -> dict[str, str]:
        """The parameters that leave measurements out, as texts."""
        names = ("operation", "dtype", "ranks", "placement", "size_min", "size_max")
        return {name: str(value) for name in names if (value := getattr(self, name)) is not None}


@dataclass(frozen=True, kw_only=True)
class Subject:
    """One measurand. ``tests`` holds the test of every fabric where they are not the same one."""

    kind: str
    tool: str | None = None
    operation: str | None = None
    dtype: str | None = None
    redop: str | None = None
    root: int | None = None
    ranks: int | None = None
    communicator_ranks: int | None = None  # where the ranks form several communicators
    nodes: int | None = None
    placement: str | None = None
    aggregated_iterations: int | None = None  # where an iteration launches several operations
    test: str | None = None
    bidirectional: bool | None = None
    memory: str | None = None
    latency_convention: str | None = None
    connection: str | None = None
    queue_pairs: int | None = None
    streams: int | None = None
    protocol: str | None = None  # TCP, UDP
    side: str | None = None  # the end that printed, where nothing tells which client belongs to which server
    reverse: bool | None = None  # the server sent
    tests: tuple[tuple[str, str], ...] = ()
    across_nodes: bool = False

    @property
    def metric(self) -> str:
        """The column that is compared: a time for collectives and latency tests, else a bandwidth."""
        return {"collective": "time_us", "latency": "lat_typical_us"}.get(self.kind, "bw_avg_gbit_s")

    @property
    def lower_is_better(self) -> bool:
        """Whether a smaller value is the faster one."""
        return self.metric != "bw_avg_gbit_s"

    @property
    def unknown(self) -> str | None:
        """What the logs leave open, so that nothing may stand beside it: ``operation``, ``test`` or ``convention``."""
        if self.kind == "collective":
            return None if self.operation else "operation"
        if self.test == "ucx_perftest":  # a client that does not name its test
            return "test"
        return "convention" if self.kind == "latency" and not self.latency_convention else None


class Difference(NamedTuple):
    """A field that must agree and does not: ``ranks``, 16, 8."""

    field: str
    here: Any
    there: Any

    def __str__(self) -> str:
        return f"{self.field} {self._word(self.here)} against {self._word(self.there)}"

    @staticmethod
    def _word(value: Any) -> str:
        return "not stated" if value is None else str(value)


_MOST_DIFFERENCES = 2  # tests that differ in more are unlike tests, and naming a field would explain nothing


def differing(subject: Subject, others: "Iterable[Subject]") -> tuple[Difference, ...]:
    """
    What keeps a measurand from the nearest of *others*: the fields of the key in which the two differ.

    Only the same operation or test is near, or a latency of the other convention. Empty where none is near.
    """
    found = []
    for other in others:
        convention = subject.kind == "latency" and other.latency_convention != subject.latency_convention
        same = (subject.kind, subject.operation) == (other.kind, other.operation)
        if other.unknown or not same or (subject.test != other.test and not convention):
            continue
        key = COLLECTIVE_KEY if subject.kind == "collective" else TEST_KEY
        unlike = [Difference(k, getattr(subject, k), getattr(other, k)) for k in key]
        unlike = [d for d in unlike if d.here != d.there]
        if 0 < len(unlike) <= _MOST_DIFFERENCES:
            found.append(tuple(unlike))
    return min(found, key=lambda d: (len(d), str(d)), default=())


def fabrics_of(lab: "Lab", selection: Selection, *, runs: str = "runs") -> "pl.DataFrame":
    """
    The fabrics to compare, baseline first: fabric, label, fabric_family, link_rate_gbit_s, ports_per_node.

    Args:
        runs: A table to take in place of the view, where one holds the runs of the campaign already.

    Raises:
        UsageError: A fabric or the baseline is unknown.
    """
    import polars as pl

    campaign = lab.the_campaign(selection.campaign)
    known = lab.sql(
        f"""SELECT r.fabric, any_value(f.label) AS label,
                  any_value(r.fabric_family) AS fabric_family,
                  any_value(f.link_rate_gbit_s) AS link_rate_gbit_s, any_value(f.ports_per_node) AS ports_per_node,
                  any_value(f.mtu_bytes) AS mtu_bytes, any_value(f.nic) AS nic,
                  count(*) AS runs, count(*) FILTER (r.excluded_because IS NULL) AS runs_used
           FROM {runs} r LEFT JOIN (SELECT * FROM raw.fabrics WHERE campaign = $c) f USING (fabric)
           WHERE r.campaign = $c GROUP BY r.fabric ORDER BY any_value(f.ordinal) NULLS LAST, r.fabric""",
        c=campaign,
    )
    names = known["fabric"].to_list()
    known = known.with_columns(label=pl.Series(_labels(names, known["label"].to_list()), dtype=pl.String))
    wanted = list(selection.fabrics or [n for n in names if n != "unknown"] or names)
    for name in [*wanted, *([selection.baseline] if selection.baseline else [])]:
        if name not in names:
            raise UsageError(
                f"no run of a fabric '{name}' in campaign '{campaign}'; it has: "
                f"{', '.join(names)}.{did_you_mean(name, names)}"
            )
    wanted = list(dict.fromkeys([selection.baseline, *wanted] if selection.baseline else wanted))
    order = pl.DataFrame({"fabric": wanted})
    return order.join(known, on="fabric", how="left", maintain_order="left")


def _labels(names: list[str], stated: list[str | None]) -> list[str]:
    """The words for every fabric: never empty, on one line, and no two alike."""
    labels = [" ".join((s or "").split()) or FAMILY_LABELS.get(n, n) for n, s in zip(names, stated, strict=True)]
    return [f"{x} ({n})" if labels.count(x) > 1 else x for n, x in zip(names, labels, strict=True)]


def elsewhere(lab: "Lab", campaign: str, fabrics: list[str]) -> dict[str, int]:
    """Label → number of runs of every fabric of the campaign that is not among *fabrics*; 0 where it has none."""
    frame = lab.sql(
        """SELECT fabric, any_value(label) AS label, sum(n)::BIGINT AS runs FROM (
               SELECT fabric, NULL AS label, 1 AS n FROM runs WHERE campaign = $c
               UNION ALL SELECT fabric, label, 0 FROM fabrics WHERE campaign = $c)
           WHERE NOT list_contains($f, fabric) GROUP BY fabric ORDER BY fabric""",
        c=campaign, f=fabrics,
    )  # fmt: skip
    return dict(zip(_labels(frame["fabric"].to_list(), frame["label"].to_list()), frame["runs"], strict=True))


def points(lab: "Lab", selection: Selection, fabrics: list[str]) -> "pl.DataFrame":
    """
    One row a run, measurand and message size, with the fields of the keys and of the residue, numbered in ``row``.
    Messages of 0 bytes move nothing and are none.

    A run that measured the same size several times (cycles) counts once, with its median; the two directions of one
    iperf3 invocation count once, added up.
    """
    frame = lab.sql(
        f"""SELECT fabric, kind, {keys_sql()}, {", ".join(OF_RUN)}, list_sort(hosts) AS hosts,
                  run_id, path, sha256, paired_as, size_bytes, any_value(limit_gbyte_s) AS limit_gbyte_s,
                  any_value(limit_formula) AS limit_formula, any_value(limit_missing) AS limit_missing,
                  any_value(limit_source) AS limit_source, {OF_SAMPLES},
                  {total_sql("utilization_pct")} AS utilization_pct
           FROM (SELECT * REPLACE ({unit("run_line")} AS run_id) FROM results WHERE campaign = $campaign)
           WHERE list_contains($fabrics, fabric)
             AND size_bytes IS DISTINCT FROM 0
             AND coalesce(size_bytes >= $low, true) AND coalesce(size_bytes <= $high, true)
             AND (kind <> 'collective' OR (coalesce(operation = $operation, $operation IS NULL)
                  AND coalesce(dtype = $dtype, $dtype IS NULL) AND coalesce(ranks = $ranks, $ranks IS NULL)
                  AND coalesce(placement = $placement, $placement IS NULL)))
           GROUP BY ALL ORDER BY run_id, size_bytes, placement DESC, dtype, redop, root""",
        campaign=lab.the_campaign(selection.campaign), fabrics=fabrics, low=_size(selection.size_min),
        high=_size(selection.size_max), operation=selection.operation, dtype=selection.dtype,
        ranks=selection.ranks, placement=selection.placement,
    )  # fmt: skip
    return frame.with_row_index("row")


def keys_sql(without: Collection[str] = ()) -> str:
    """SQL for the fields of both keys, from the columns of the view ``results``."""
    return ", ".join(f"{in_results(k)} AS {k}" for k in dict.fromkeys((*COLLECTIVE_KEY, *TEST_KEY)) if k not in without)


def in_results(key: str) -> str:
    """SQL for a field of the keys, from the columns of the view ``results``."""
    return _IN_RESULTS.get(key, key)


def unit(line: str) -> str:
    """SQL for the run of the statistics: the run itself, or the first of the two directions of one invocation."""
    return f"CASE WHEN {BOTH_DIRECTIONS} THEN min(run_id) OVER (PARTITION BY log_id, {line}) ELSE run_id END"


def total_sql(column: str) -> str:
    """SQL for a bandwidth of one run: the median of its cycles, or both directions added up."""
    added = f"CASE WHEN count({column}) = 2 THEN sum({column}) END"
    return f"CASE WHEN bool_or({BOTH_DIRECTIONS}) THEN {added} ELSE median({column}) END"


# SQL for what the samples of one run and size add to it.
OF_SAMPLES = f"""min(line) AS line, any_value(iterations) AS iterations, any_value(algorithm) AS algorithm,
    any_value(protocol) AS nccl_protocol, median(time_us) AS time_us, median(busbw_gbyte_s) AS busbw_gbyte_s,
    median(lat_typical_us) AS lat_typical_us, {total_sql("bw_avg_gbit_s")} AS bw_avg_gbit_s"""


def _size(value: int | str | None) -> int | None:
    try:
        return None if value is None else parse_size(value)
    except ValueError as error:
        raise UsageError(f"size_min and size_max want a size like 8, 64KiB or 1G: {error}") from None


def check_filters(lab: "Lab", selection: Selection) -> None:
    """
    A filter that no collective of the campaign has would silently empty the report.

    Raises:
        UsageError: No run that can be quoted has this operation, dtype, number of ranks or placement.
    """
    campaign = lab.the_campaign(selection.campaign)
    for name in ("operation", "dtype", "ranks", "placement"):
        wanted = getattr(selection, name)
        if wanted is None:
            continue
        frame = lab.sql(
            f"""SELECT DISTINCT {name} AS v FROM results
                WHERE campaign = $c AND kind = 'collective' AND {name} IS NOT NULL""",
            c=campaign,
        )
        known = sorted(frame["v"].to_list())
        if wanted not in known:
            words = [str(v) for v in known]
            raise UsageError(
                f"no collective with {name}={wanted} in campaign '{campaign}'; it has: {', '.join(words) or 'none'}."
                f"{did_you_mean(str(wanted), words)}"
            )
    low, high = _size(selection.size_min), _size(selection.size_max)
    if low is not None and high is not None and low > high:
        raise UsageError(f"size_min={selection.size_min} is above size_max={selection.size_max}")


def subjects(frame: "pl.DataFrame") -> "list[tuple[Subject, pl.DataFrame]]":
    """
    Splits points into measurands, each with its rows; those with most fabrics and most rows come first.

    Rows without a value of the metric are none, see :func:`without_value`.
    """
    import polars as pl

    found: list[tuple[Subject, pl.DataFrame]] = []
    for kind in ("collective", "latency", "bandwidth"):
        found += _split(kind, frame.filter((pl.col("kind") == kind) & pl.col(Subject(kind=kind).metric).is_not_null()))
    return sorted(found, key=lambda item: (-item[1]["fabric"].n_unique(), -item[1].height))


def across_nodes(frame: "pl.DataFrame", fabrics: list[str]) -> "list[tuple[Subject, pl.DataFrame]]":
    """
    The same collective among as many ranks on unlike numbers of nodes, one a fabric: NVLink inside a node against the
    network between nodes. Only where no number of nodes is shared; the nodes are residue then, and are said.
    """
    import polars as pl

    key = tuple(k for k in COLLECTIVE_KEY if k != "nodes")
    part = frame.filter(
        (pl.col("kind") == "collective") & pl.col("time_us").is_not_null() & pl.col("nodes").is_not_null()
    )
    found: list[tuple[Subject, pl.DataFrame]] = []
    for values, rows in part.with_columns(size_declared=pl.lit(False)).group_by(key, maintain_order=True):
        shared = rows.group_by("nodes").agg(pl.col("fabric").n_unique())["fabric"].max()
        here = [f for f in fabrics if f in set(rows["fabric"])]
        if len(here) > 1 and shared == 1:
            chosen = [_commonest_nodes(rows.filter(pl.col("fabric") == f)) for f in here]
            if all(side["nodes"][0] > 1 for side in chosen):  # two networks between unlike nodes are unlike tests
                continue
            subject = Subject(kind="collective", across_nodes=True, **dict(zip(key, values, strict=True)))
            found.append((subject, pl.concat(chosen)))
    return found


def _commonest_nodes(rows: "pl.DataFrame") -> "pl.DataFrame":
    """The rows at the number of nodes that most runs have; the smaller number where two have as many."""
    groups = [group for _, group in rows.group_by("nodes", maintain_order=True)]
    return max(groups, key=lambda g: (g["run_id"].n_unique(), -g["nodes"][0]))


def without_value(frame: "pl.DataFrame") -> "list[tuple[Subject, pl.DataFrame]]":
    """The measurands whose rows lack what would be compared; message rates are compared nowhere."""
    import polars as pl

    found: list[tuple[Subject, pl.DataFrame]] = []
    for kind in sorted(set(frame["kind"])):
        part = frame.filter(pl.col("kind") == kind)
        found += _split(
            kind, part if kind == "message_rate" else part.filter(pl.col(Subject(kind=kind).metric).is_null())
        )
    return found


def _split(kind: str, part: "pl.DataFrame") -> "list[tuple[Subject, pl.DataFrame]]":
    import polars as pl

    key = COLLECTIVE_KEY if kind == "collective" else TEST_KEY
    part = part.with_columns(size_declared=pl.lit(False))
    groups = part.group_by(key, maintain_order=True)
    return [(Subject(kind=kind, **dict(zip(key, values, strict=True))), rows) for values, rows in groups]


def declared_same(
    frame: "pl.DataFrame", same: "pl.DataFrame", fabrics: list[str]
) -> "list[tuple[Subject, pl.DataFrame]]":
    """
    Measurands that the campaign file puts together across tools: per fabric the first listed test that has runs, in
    one configuration a test. Tests that all fabrics share are compared by :func:`subjects` already.

    Args:
        same: Rows of the campaign's ``[[same]]`` tables: measures, tests, size_bytes.
    """
    import polars as pl

    found = []
    for entry in same.iter_rows(named=True):
        rows = _declared(frame, entry, fabrics)
        here = [f for f in fabrics if f in set(rows["fabric"])]
        tests = tuple((f, str(rows.filter(pl.col("fabric") == f)["test"][0])) for f in here)
        conventions = set(rows["latency_convention"])
        if len({t for _, t in tests}) > 1 and len(conventions) == 1:
            if entry["size_bytes"]:
                rows = rows.with_columns(pl.col("size_bytes").fill_null(entry["size_bytes"]))
            found.append((Subject(kind=entry["measures"], tests=tests, latency_convention=conventions.pop()), rows))
    return found


def clashing(frame: "pl.DataFrame", same: "pl.DataFrame", fabrics: list[str]) -> set[str]:
    """Tests that the campaign file puts together although they print latencies of different conventions."""
    chosen = [_declared(frame, entry, fabrics) for entry in same.iter_rows(named=True)]
    return {t for rows in chosen if len(set(rows["latency_convention"])) > 1 for t in rows["test"]}


def _declared(frame: "pl.DataFrame", entry: dict[str, Any], fabrics: list[str]) -> "pl.DataFrame":
    """The rows of a declared group: per fabric the first listed test, per test the commonest configuration."""
    import polars as pl

    measured = pl.col(Subject(kind=entry["measures"]).metric).is_not_null()
    part = frame.filter((pl.col("kind") == entry["measures"]) & measured & ~pl.col("bidirectional").fill_null(False))
    part = part.with_columns(size_declared=pl.col("size_bytes").is_null())
    has = {f: set(part.filter(pl.col("fabric") == f)["test"]) for f in fabrics}
    first = {f: next((t for t in entry["tests"] if t in has[f]), None) for f in fabrics}
    chosen = [part.clear()]
    for test in dict.fromkeys(t for t in first.values() if t):
        rows = part.filter((pl.col("test") == test) & pl.col("fabric").is_in([f for f in fabrics if first[f] == test]))
        configurations = [group for _, group in rows.group_by(TEST_KEY, maintain_order=True)]
        chosen.append(max(configurations, key=lambda g: (g["fabric"].n_unique(), g["run_id"].n_unique())))
    return pl.concat(chosen)


def residue(rows: "pl.DataFrame") -> dict[str, dict[str, list[Any]]]:
    """Field → fabric → values, for every field of RESIDUE in which runs of one measurand differ."""
    out: dict[str, dict[str, list[Any]]] = {}
    parts = _shared_sizes(rows).select("fabric", *RESIDUE).partition_by("fabric", maintain_order=True, as_dict=True)
    for name in RESIDUE:
        by_fabric: dict[str, list[Any]] = {}
        for (fabric,), part in parts.items():
            values = {tuple(v) if isinstance(v, list) else v for v in part[name].unique().to_list()}
            by_fabric[str(fabric)] = sorted(values, key=str)
        if is_residue(name, by_fabric):
            out[name] = by_fabric
    return out


def is_residue(name: str, by_fabric: dict[str, list[Any]]) -> bool:
    """Whether a field of RESIDUE differs: inside a fabric, or between fabrics where it is not a part of the fabric."""
    unlike = name not in FABRIC_BOUND and len({tuple(v) for v in by_fabric.values()}) > 1
    return unlike or any(len(v) > 1 for v in by_fabric.values())


def _shared_sizes(rows: "pl.DataFrame") -> "pl.DataFrame":
    """The rows at sizes that two fabrics measured: only those are compared."""
    import polars as pl

    shared = rows.group_by("size_bytes").agg(pl.col("fabric").n_unique()).filter(pl.col("fabric") > 1)
    return rows.filter(pl.col("size_bytes").is_in(shared["size_bytes"].to_list(), nulls_equal=True))


PARAMETERS = tuple(f.name for f in fields(Selection))
