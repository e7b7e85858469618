"""
What the runs of a store say of a claim (C7): the unit is the run, and only runs of what the claim speaks of count.

A run matches when it agrees with everything that the claim states: operation or test, message sizes, fabric, link rate,
ports, domains, ranks, GPU, and ``evidence.where``. Runs that differ are counted by the first thing in which they do.
Synthetic runs count only for a document that says ``synthetic = true``; public runs never do, they are bands (C5).
"""

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

from rdmalab import limits, stats
from rdmalab.claims._records import GBYTE_S, TIME_US, Call, Claim, Document
from rdmalab.units import parse_size

if TYPE_CHECKING:
    import polars as pl

    from rdmalab.lab import Lab

MIN_RUNS = 6
_COMPARED = ("ratio", "gain", "reduction")
_QUANTILES = {"0.5": "lat_typical_us", "p50": "lat_typical_us", "50": "lat_typical_us", "0.99": "lat_p99_us",
              "p99": "lat_p99_us", "99": "lat_p99_us", "0.999": "lat_p999_us", "p999": "lat_p999_us",
              "mean": "lat_avg_us", "avg": "lat_avg_us"}  # fmt: skip
_VERBS = ("write", "read", "send", "atomic")
_STATISTICS = {"median": "median", "max": "max", "min": "min", "mean": "avg"}
# What of ``results`` a claim may be about, beside what its ``where`` names.
_USED = (
    "campaign", "run_id", "path", "line", "paired_as", "kind", "tool", "program", "operation", "placement",
    "size_bytes", "bidirectional", "latency_convention", "fabric", "fabric_family", "ranks", "nodes", "gpu_model",
    "busbw_gbyte_s", "algbw_gbyte_s", "time_us", "bw_avg_gbit_s", "lat_typical_us", "lat_avg_us", "lat_p99_us",
    "lat_p999_us",
)  # fmt: skip
# Names of run attributes in ``evidence.where`` that ``results`` calls otherwise.
_ATTRIBUTES = {"op": "operation", "size": "size_bytes", "family": "fabric_family", "gpu": "gpu_model"}


@dataclass(frozen=True)
class Measured:
    """What of a run is measured: a column of ``results``, which rows belong to it, and how many rows make a run."""

    column: str
    unit_factor: float  # from the column to GB/s, us or 1
    rows: tuple[str, ...]  # conditions on rows of ``results``
    statistic: str = "median"
    reading: str = ""


@dataclass(frozen=True)
class Side:
    """The runs that match one side of a claim, with the query for their values."""

    runs: "pl.DataFrame"  # campaign, run_id, path, line, pair, value
    values_sql: str
    differ: Mapping[str, int] = field(default_factory=dict)


class Evidence:
    """
    The evidence of a store, to be given to :func:`rdmalab.claims.audit`.

    Args:
        lab: An open store.
        document: The claims, for the baselines that they name.
    """

    def __init__(self, lab: "Lab", document: Document) -> None:
        self.lab = lab
        self.claims = {claim.id: claim for claim in document.claims}
        self.synthetic = document.source.get("synthetic") is True
        self._columns = set(lab.sql("SELECT * FROM results LIMIT 0").columns)
        asked = {_ATTRIBUTES.get(key, key) for c in document.claims for key in c.evidence.get("where", ())}
        kept = ", ".join(dict.fromkeys((*_USED, *sorted(asked & self._columns))))
        # asked once for each of ten thousand claims, where the view would be made anew every time
        lab.sql(f"CREATE OR REPLACE TEMP TABLE claimed AS SELECT {kept} FROM results")

    def __call__(self, claim: Claim) -> dict[str, Any] | None:
        """``verdict``, and where runs match their median with interval, the runs, the query; None where none can."""
        call = claim.metric
        if call is None or claim.low is None or claim.high is None:
            return None
        if call.name in _COMPARED:
            return self._of_two(claim, call)
        found = self._side(claim, call, claim.system, claim.fabric)
        if isinstance(found, str):
            return _none(found)
        values = found.runs["value"].to_list()
        scale = GBYTE_S.get(claim.unit) or TIME_US.get(claim.unit) or 1.0
        return _judged(claim, found, [v / scale for v in values])

    def _of_two(self, claim: Claim, call: Call) -> dict[str, Any]:
        """A ratio of two sides, or what is made of it: a gain or a reduction in per cent."""
        sides = self._two(claim, call)
        if isinstance(sides, str):
            return _none(sides)
        above, below = sides
        least = _least(claim)
        for side, name in ((above, "the claim"), (below, "its baseline")):
            if len(side.runs) < least:
                return _few(side, least, f" of {name}")
        paired = bool(claim.evidence.get("pair_by"))
        one, other = (side.runs.sort("pair") if paired else side.runs for side in sides)
        if paired and one["pair"].to_list() != other["pair"].to_list():
            return _none("the runs of both sides do not pair")
        ours, theirs = one["value"].to_list(), other["value"].to_list()
        if min(*ours, *theirs) <= 0:
            return _none("a value of 0 gives no ratio")
        found = stats.ratio(ours, theirs, claim.evidence.get("confidence", 0.95), paired)
        if found.low is None or found.high is None:
            return _few(above, least, "")
        ends = [_of_ratio(call.name, r, claim.unit) for r in (found.estimate, found.low, found.high)]
        return _verdict(claim, ends[0], min(ends[1:]), max(ends[1:])) | {
            "n": found.n, "baseline_n": found.m, "runs": _ids(above), "baseline_runs": _ids(below),
            "query": None if paired else _ratio_query(sides, found, ours, theirs),
            "not_comparable": dict(above.differ),
        }  # fmt: skip

    def _two(self, claim: Claim, call: Call) -> tuple[Side, Side] | str:
        inner = [a for a in call.args if isinstance(a, Call)]
        if not inner:
            return "the comparison names no metric that a run has"
        system, fabric, other = claim.system, claim.fabric, inner[-1]
        named = self.claims.get(claim.baseline) if isinstance(claim.baseline, str) else None
        if named:
            system, fabric = named.system, named.fabric
            other = named.metric if len(inner) == 1 and named.metric and named.metric.name == inner[0].name else other
        elif isinstance(claim.baseline, Mapping):
            system = {**system, **claim.baseline.get("system", {})}
            fabric = claim.baseline.get("fabric", fabric)
        elif len(inner) < 2:
            return "the comparison has no baseline"
        above = self._side(claim, inner[0], claim.system, claim.fabric)
        below = self._side(claim, other, system, fabric, baseline=True)
        for side in (above, below):
            if isinstance(side, str):
                return side
        assert isinstance(above, Side)
        assert isinstance(below, Side)
        return above, below

    def _side(
        self, claim: Claim, call: Call, system: Mapping[str, Any], fabric: Mapping[str, Any], *, baseline: bool = False
    ) -> Side | str:
        """The runs of one side, or one sentence why there can be none."""
        measured = _measured(call, claim)
        if isinstance(measured, str):
            return measured
        where = {
            k: v for k, v in claim.evidence.get("where", {}).items() if not (baseline and k in ("fabric", "family"))
        }
        if not (system or fabric or where):
            return "the claim states neither system nor fabric, so that any run would match"
        wanted = dict(self._wanted(system, fabric))
        for key, value in where.items():
            column = _ATTRIBUTES.get(key, key)
            if column not in self._columns:
                return f"runs have no attribute '{key}'"
            words = value if isinstance(value, list) else [value]
            wanted[key] = f"coalesce({column} IN ({', '.join(map(_literal, words))}), false)"
        return self._select(measured, wanted, claim)

    def _wanted(self, system: Mapping[str, Any], fabric: Mapping[str, Any]) -> Iterator[tuple[str, str]]:
        """(what is stated, SQL over ``results`` that holds where a run agrees)."""
        if not self.synthetic:
            yield "synthetic", "campaign NOT IN (SELECT campaign FROM raw.campaigns WHERE synthetic)"
        if family := fabric.get("family"):
            yield "fabric family", f"fabric_family = {_literal('roce' if family == 'roce2' else family)}"
        for key, column in (("rate_gbps", "link_rate_gbit_s"), ("mtu", "mtu_bytes")):
            if key in fabric:
                yield key, _of_fabric(column, fabric[key])
        if "nic_ports" in system:
            yield "nic_ports", _of_fabric("ports_per_node", system["nic_ports"])
        domains, gpus = system.get("domains"), system.get("gpus_per_domain")
        if domains and gpus:
            yield "ranks", f"(kind <> 'collective' OR coalesce(ranks = {domains * gpus}, false))"
        if domains:
            yield "nodes", f"(kind <> 'collective' OR coalesce(nodes = {domains}, false))"
        if gpu := system.get("gpu"):
            same = [_literal(model) for model in self._models() if _same_gpu(gpu, model)]
            yield "GPU", f"(kind <> 'collective' OR coalesce(gpu_model IN ({', '.join(same) or 'NULL'}), false))"

    def _models(self) -> list[str]:
        return [str(m) for m in self.lab.sql("SELECT DISTINCT gpu_model AS m FROM runs")["m"].drop_nulls()]

    def _select(self, measured: Measured, wanted: Mapping[str, str], claim: Claim) -> Side:
        value = f"{measured.statistic}({measured.column}) * {measured.unit_factor!r}"
        rows = " AND ".join([*measured.rows, f"{measured.column} IS NOT NULL"])
        flags = "".join(f", bool_and({sql}) AS agrees_{i}" for i, sql in enumerate(wanted.values()))
        found = self.lab.sql(
            f"""SELECT campaign, run_id, any_value(path) AS path, min(line) AS line, any_value(paired_as) AS pair,
                       {value} AS value{flags}
                FROM claimed WHERE {rows} GROUP BY campaign, run_id ORDER BY campaign, run_id"""
        )
        differ: dict[str, int] = {}
        for index, name in enumerate(wanted):
            keep = found[f"agrees_{index}"].fill_null(False)
            if count := len(found) - int(keep.sum()):
                differ[name] = count
            found = found.filter(keep)
        conditions = "\n    AND ".join([*measured.rows, f"{measured.column} IS NOT NULL", *wanted.values()])
        query = f"SELECT {value} AS value FROM results\n  WHERE {conditions}\n  GROUP BY campaign, run_id"
        return Side(found.select("campaign", "run_id", "path", "line", "pair", "value"), query, differ)


def _measured(call: Call, claim: Claim) -> Measured | str:
    """What a metric of the vocabulary is among the columns of a store, or why it is none."""
    options = call.options
    try:
        low, high = (parse_size(options[k]) if k in options else None for k in ("size_min", "size_max"))
        size = parse_size(options["size"]) if "size" in options else None
    except ValueError as error:
        return f"the metric has a size that is none: {error}"
    rows = [f"size_bytes = {size}"] if size is not None else []
    rows += [f"size_bytes >= {low}"] if low is not None else []
    rows += [f"size_bytes <= {high}"] if high is not None else []
    statistic = _STATISTICS.get(options.get("stat", "median"))
    if statistic is None:
        return f"stat={options['stat']} is no statistic of rows; one of {', '.join(_STATISTICS)}"
    op = options.get("op")
    if call.name in ("busbw", "algbw"):
        if not op:
            return "the metric names no operation"
        rows = ["kind = 'collective'", f"operation = {_literal(op)}", "placement = 'out_of_place'", *rows]
        reading = f"{call.name} of a run: {options.get('stat', 'median')} of its sizes, out of place"
        return Measured(f"{call.name}_gbyte_s", 1.0, tuple(rows), statistic, reading)
    if call.name == "latency" and op:
        if size is None:
            return "the latency of a collective needs a size"
        rows = ["kind = 'collective'", f"operation = {_literal(op)}", "placement = 'out_of_place'", *rows]
        return Measured("time_us", 1.0, tuple(rows), statistic, "time of one collective, out of place")
    if call.name == "latency":
        return _message_latency(call, claim, rows, statistic)
    if call.name == "bw":
        both = options.get("directions") == "2" or claim.stated("direction") == "both"
        rows = ["kind = 'bandwidth'", *_test(options), f"coalesce(bidirectional, false) = {str(both).lower()}", *rows]
        way = "both directions added" if both else "one direction"
        return Measured("bw_avg_gbit_s", 0.125, tuple(rows), statistic, f"average of a point-to-point test, {way}")
    return f"no run of a benchmark measures {call.name}"


def _message_latency(call: Call, claim: Claim, rows: list[str], statistic: str) -> Measured | str:
    column = _QUANTILES.get(call.options.get("q", "0.5"))
    if column is None:
        return f"logs print no quantile q={call.options['q']}"
    convention = {"round-trip": "round_trip"}.get(claim.stated("latency") or "", "one_way")
    rows = ["kind = 'latency'", *_test(call.options), f"latency_convention = '{convention}'", *rows]
    return Measured(column, 1.0, tuple(rows), statistic, f"one message, {convention.replace('_', ' ')}")


def _test(options: Mapping[str, str]) -> list[str]:
    """Conditions for ``tool`` and ``verb`` of a point-to-point metric."""
    out = [f"operation = {_literal(options['verb'])}"] if options.get("verb") in _VERBS else []
    if tool := options.get("tool"):
        out.append(f"(tool = {_literal(tool)} OR program = {_literal(tool)})")
    return out


def _judged(claim: Claim, side: Side, values: list[float]) -> dict[str, Any]:
    """The verdict on one number: the interval of the median over runs against what the claim says."""
    least = _least(claim)
    interval = None
    if len(values) >= least:
        interval = stats.median_interval(values, coverage=claim.evidence.get("confidence", 0.95))
    if interval is None:
        return _few(side, least, "")
    rank = stats.median_rank(len(values), claim.evidence.get("confidence", 0.95))
    return _verdict(claim, stats.median(values), interval.low, interval.high) | {
        "n": len(values), "runs": _ids(side), "query": _median_query(side, rank), "not_comparable": dict(side.differ),
    }  # fmt: skip


def _median_query(side: Side, rank: int) -> str:
    """SQL for the median and its interval, in the unit of the store."""
    return (
        f"SELECT median(value) AS median, list_sort(list(value))[{rank}] AS low,\n"
        f"  list_sort(list(value))[-{rank}] AS high, count(*) AS runs\nFROM ({side.values_sql})"
    )


def _ratio_query(sides: tuple[Side, Side], found: stats.Ratio, ours: list[float], theirs: list[float]) -> str:
    """SQL for the ratio of unpaired runs: the middle of all ratios of a run to a run, and two of them as interval."""
    ratios = sorted(a / b for a in ours for b in theirs)
    rank = 1 + ratios.index(found.low or 0.0)
    return (
        f"SELECT exp(median(ln(r))) AS ratio, list_sort(list(r))[{rank}] AS low, list_sort(list(r))[-{rank}] AS high\n"
        f"FROM (SELECT a.value / b.value AS r\n  FROM ({sides[0].values_sql}) a,\n  ({sides[1].values_sql}) b)"
    )


def _verdict(claim: Claim, median: float, low: float, high: float) -> dict[str, Any]:
    """Inside the expectation with its tolerance: confirmed; apart from it: refuted; else inconclusive."""
    least, most = (claim.low or 0.0) - claim.slack, (claim.high or 0.0) + claim.slack
    word = "confirmed" if least <= low and high <= most else "refuted" if high < least or low > most else "inconclusive"
    return {"verdict": word, "median": median, "low": low, "high": high, "unit": claim.unit}


def _of_ratio(name: str, ratio: float, unit: str) -> float:
    """A ratio as ``ratio``, as ``gain`` (a/b - 1) or as ``reduction`` (1 - a/b), in per cent where the unit is that."""
    value = {"gain": ratio - 1, "reduction": 1 - ratio}.get(name, ratio)
    return 100 * value if unit in ("%", "points") else value


def _least(claim: Claim) -> int:
    return max(MIN_RUNS, int(claim.evidence.get("min_runs", MIN_RUNS)))


def _few(side: Side, least: int, of: str) -> dict[str, Any]:
    count = len(side.runs)
    runs = "no run matches" if not count else f"{count} run{'s match' if count > 1 else ' matches'}"
    return _none(f"{runs}{of}, {least} are needed") | {
        "n": count, "runs": _ids(side), "query": side.values_sql, "not_comparable": dict(side.differ),
    }  # fmt: skip


def _none(because: str) -> dict[str, Any]:
    return {"verdict": "no evidence", "because": because}


def _ids(side: Side) -> list[str]:
    return [str(run) for run in side.runs["run_id"]]


def _of_fabric(column: str, value: Any) -> str:
    return f"(campaign, fabric) IN (SELECT (campaign, fabric) FROM raw.fabrics WHERE {column} = {float(value)!r})"


def _same_gpu(stated: str, printed: str) -> bool:
    """Whether a run's GPU is the one that a claim names."""
    mine, theirs = limits.accelerator(stated), limits.accelerator(printed)
    if mine is None or theirs is None:
        return stated.lower() == printed.lower().removeprefix("nvidia ")
    return mine.name == theirs.name


def _literal(value: Any) -> str:
    return str(value).lower() if isinstance(value, bool) else repr(value) if isinstance(value, int | float) else (
        "'" + str(value).replace("'", "''") + "'"
    )  # fmt: skip
