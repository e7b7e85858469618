"""Like with like: which samples may stand beside each other, and what differs between them all the same.

A *subject* is one measurand: a collective with its operation, type, reduction, root, ranks, nodes and placement; or a
point-to-point test in one configuration; or a group of tests that the campaign file declares to measure the same.
"""

from dataclasses import dataclass, fields
from typing import TYPE_CHECKING, Any

from rdmalab.errors import UsageError, did_you_mean
from rdmalab.units import parse_size

if TYPE_CHECKING:
    import polars as pl

    from rdmalab.lab import Lab

# What must agree before two runs are put side by side; the rest is residue and is said beside the numbers.
COLLECTIVE_KEY = ("operation", "dtype", "redop", "root", "ranks", "nodes", "placement")
TEST_KEY = ("test", "bidirectional", "memory", "latency_convention", "connection", "queue_pairs", "streams")
RESIDUE = (
    "gpu_model", "library_version", "tool_version", "device", "mtu_bytes", "run_iterations", "warmup_iterations",
    "iterations", "connection", "queue_pairs", "streams", "hosts",
)  # fmt: skip


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


@dataclass(frozen=True, kw_only=True)
class Subject:
    """One measurand. ``tests`` holds the test of every fabric where they are not the same one."""

    kind: str
    operation: str | None = None
    dtype: str | None = None
    redop: str | None = None
    root: int | None = None
    ranks: int | None = None
    nodes: int | None = None
    placement: str | None = None
    test: str | None = None
    bidirectional: bool | None = None
    memory: str | None = None
    latency_convention: str | None = None
    connection: str | None = None
    queue_pairs: int | None = None
    streams: int | None = None
    tests: tuple[tuple[str, str], ...] = ()

    @property
    def metric(self) -> str:
        """The column that is compared: a time for collectives and latency tests, else a bandwidth."""
        return {"collective": "time_us", "latency": "lat_typical_us"}.get(self.kind, "bw_avg_gbit_s")

    @property
    def lower_is_better(self) -> bool:
        """Whether a smaller value is the faster one."""
        return self.metric != "bw_avg_gbit_s"


def fabrics_of(lab: "Lab", selection: Selection) -> "pl.DataFrame":
    """
    The fabrics to compare, baseline first: fabric, label, fabric_family, link_rate_gbit_s, ports_per_node.

    Raises:
        UsageError: A fabric or the baseline is unknown.
    """
    import polars as pl

    campaign = lab.the_campaign(selection.campaign)
    known = lab.sql(
        """SELECT r.fabric, any_value(coalesce(f.label, r.fabric)) AS label,
                  any_value(r.fabric_family) AS fabric_family,
                  any_value(f.link_rate_gbit_s) AS link_rate_gbit_s, any_value(f.ports_per_node) AS ports_per_node,
                  any_value(f.mtu_bytes) AS mtu_bytes, any_value(f.nic) AS nic,
                  count(*) AS runs, count(*) FILTER (r.excluded_because IS NULL) AS runs_used
           FROM runs r LEFT JOIN fabrics f USING (campaign, fabric)
           WHERE r.campaign = $c GROUP BY r.fabric ORDER BY any_value(f.ordinal) NULLS LAST, r.fabric""",
        c=campaign,
    )
    names = known["fabric"].to_list()
    wanted = list(selection.fabrics or [n for n in names if n != "unknown"] or names)
    for name in [*wanted, *([selection.baseline] if selection.baseline else [])]:
        if name not in names:
            raise UsageError(f"no fabric '{name}' in campaign '{campaign}'; it has: {', '.join(names)}.{did_you_mean(name, names)}")
    if selection.baseline:
        wanted = [selection.baseline, *(n for n in wanted if n != selection.baseline)]
    order = pl.DataFrame({"fabric": wanted})
    return order.join(known, on="fabric", how="left", maintain_order="left")


def points(lab: "Lab", selection: Selection, fabrics: list[str]) -> "pl.DataFrame":
    """
    One row a run, measurand and message size, with the fields of the keys and of the residue.

    A run that measured the same size several times (cycles) counts once, with its median.
    """
    return lab.sql(
        """SELECT fabric, kind, coalesce(program, tool) AS test, operation, dtype, redop, root, ranks, nodes, placement, bidirectional,
                  memory, latency_convention, connection, queue_pairs, streams, gpu_model, library_version,
                  tool_version, device, mtu_bytes, run_iterations, warmup_iterations, list_sort(hosts) AS hosts,
                  run_id, path, sha256, size_bytes, any_value(limit_gbyte_s) AS limit_gbyte_s,
                  any_value(limit_formula) AS limit_formula, any_value(limit_missing) AS limit_missing, min(line) AS line,
                  any_value(iterations) AS iterations, median(time_us) AS time_us, median(busbw_gbyte_s) AS busbw_gbyte_s,
                  median(bw_avg_gbit_s) AS bw_avg_gbit_s, median(lat_typical_us) AS lat_typical_us,
                  median(utilization_pct) AS utilization_pct
           FROM results
           WHERE campaign = $campaign AND list_contains($fabrics, fabric)
             AND coalesce(size_bytes > 0, true)  -- a row of size 0 moves nothing
             AND coalesce(size_bytes >= $low, true) AND coalesce(size_bytes <= $high, true)
             AND (kind <> 'collective' OR (coalesce(operation = $operation, $operation IS NULL)
                  AND coalesce(dtype = $dtype, $dtype IS NULL) AND coalesce(ranks = $ranks, $ranks IS NULL)
                  AND coalesce(placement = $placement, $placement IS NULL)))
           GROUP BY ALL ORDER BY run_id, size_bytes""",
        campaign=lab.the_campaign(selection.campaign), fabrics=fabrics, low=_size(selection.size_min),
        high=_size(selection.size_max), operation=selection.operation, dtype=selection.dtype,
        ranks=selection.ranks, placement=selection.placement,
    )  # fmt: skip


def _size(value: int | str | None) -> int | None:
    try:
        return None if value in (None, "") else parse_size(value)  # type: ignore[arg-type]
    except ValueError as error:
        raise UsageError(f"size_min and size_max want a size like 8, 64KiB or 1G: {error}") from None


def subjects(frame: "pl.DataFrame") -> "list[tuple[Subject, pl.DataFrame]]":
    """Splits points into measurands, each with its rows; those with most fabrics and most rows come first."""
    import polars as pl

    found: list[tuple[Subject, pl.DataFrame]] = []
    for kind, key in (("collective", COLLECTIVE_KEY), ("latency", TEST_KEY), ("bandwidth", TEST_KEY)):
        part = frame.filter(pl.col("kind") == kind)
        part = part.filter(pl.col(Subject(kind=kind).metric).is_not_null()).with_columns(size_declared=False)
        for values, rows in part.group_by(key, maintain_order=True):
            found.append((Subject(kind=kind, **dict(zip(key, values, strict=True))), rows))
    return sorted(found, key=lambda item: (-item[1]["fabric"].n_unique(), -item[1].height))


def declared_same(frame: "pl.DataFrame", same: "pl.DataFrame", fabrics: list[str]) -> "list[tuple[Subject, pl.DataFrame]]":
    """
    Measurands that the campaign file puts together across tools: per fabric the first listed test that has runs, in
    its most frequent configuration. Tests that all fabrics share are compared by :func:`subjects` already.

    Args:
        same: Rows of the campaign's ``[[same]]`` tables: measures, tests, size_bytes.
    """
    import polars as pl

    found = []
    for entry in same.iter_rows(named=True):
        part = frame.filter((pl.col("kind") == entry["measures"]) & ~pl.col("bidirectional").fill_null(False))
        part = part.with_columns(size_declared=pl.col("size_bytes").is_null())
        chosen = [rows for f in fabrics if (rows := _side(part.filter(pl.col("fabric") == f), entry)) is not None]
        tests = tuple((rows["fabric"][0], rows["test"][0]) for rows in chosen)
        conventions = {rows["latency_convention"][0] for rows in chosen}
        if len({t for _, t in tests}) > 1 and len(conventions) == 1:
            rows = pl.concat(chosen)
            if entry["size_bytes"]:
                rows = rows.with_columns(pl.col("size_bytes").fill_null(entry["size_bytes"]))
            found.append((Subject(kind=entry["measures"], tests=tests, latency_convention=conventions.pop()), rows))
    return found


def _side(rows: "pl.DataFrame", entry: dict[str, Any]) -> "pl.DataFrame | None":
    """The rows of one fabric for a declared group: first listed test, commonest configuration."""
    import polars as pl

    metric = Subject(kind=entry["measures"]).metric
    for test in entry["tests"]:
        part = rows.filter((pl.col("test") == test) & pl.col(metric).is_not_null())
        if not part.is_empty():
            configurations = sorted(
                (group for _, group in part.group_by(TEST_KEY, maintain_order=True)), key=lambda g: -g["run_id"].n_unique()
            )
            return configurations[0]
    return None


def residue(rows: "pl.DataFrame") -> dict[str, dict[str, list[Any]]]:
    """Field → fabric → values, for every field of RESIDUE in which runs of one measurand differ."""
    out: dict[str, dict[str, list[Any]]] = {}
    rows = _common_sizes(rows)
    for name in RESIDUE:
        by_fabric: dict[str, list[Any]] = {}
        for (fabric,), part in rows.group_by(["fabric"], maintain_order=True):
            values = {tuple(v) if isinstance(v, list) else v for v in part[name].to_list()}
            by_fabric[str(fabric)] = sorted(values, key=str)
        if len({tuple(v) for v in by_fabric.values()}) > 1 or any(len(v) > 1 for v in by_fabric.values()):
            out[name] = by_fabric
    return out


def _common_sizes(rows: "pl.DataFrame") -> "pl.DataFrame":
    """The rows at sizes that all fabrics here measured: only those are compared."""
    import polars as pl

    shared = rows.group_by("size_bytes").agg(pl.col("fabric").n_unique()).filter(pl.col("fabric") == rows["fabric"].n_unique())
    return rows.filter(pl.col("size_bytes").is_in(shared["size_bytes"].to_list(), nulls_equal=True))


PARAMETERS = tuple(f.name for f in fields(Selection))
