"""Fabrics side by side: medians with intervals, ratios to a baseline with intervals, and what could not be compared.

The unit of the statistics is the run. A ratio is a speed-up: above 1 the fabric is faster than the baseline, for times
as for bandwidths. "Faster" and "slower" need an interval that excludes 1, and an interval needs 6 runs a side.
"""

from collections import defaultdict
from collections.abc import Iterator
from dataclasses import dataclass, field, replace
from functools import cached_property
from typing import TYPE_CHECKING, Any, NamedTuple

from rdmalab import series, stats
from rdmalab.errors import NothingToCompare
from rdmalab.pairs import Pairs, node_pairs
from rdmalab.series import Selection, Subject
from rdmalab.telemetry import Telemetry, telemetry

if TYPE_CHECKING:
    import polars as pl

    from rdmalab.lab import Lab

MIN_RUNS = 6  # below, no interval with 95 % coverage of a median exists

FASTER, SLOWER, NO_DIFFERENCE, TOO_FEW, BASELINE, NOT_MEASURED = (
    "faster", "slower", "no difference shown", "too few runs", "baseline", "not measured",
)  # fmt: skip


@dataclass(frozen=True, kw_only=True)
class Cell:
    """One fabric at one message size of one subject: n runs, median and interval, ratio to the baseline."""

    fabric: str
    size_bytes: int | None
    n: int
    median: float
    low: float | None
    high: float | None
    verdict: str
    ratio: float | None = None
    ratio_low: float | None = None
    ratio_high: float | None = None
    pairs: int | None = None  # pairs of runs behind the ratio, where the campaign file pairs them
    p_value: float | None = None
    p_holm: float | None = None  # adjusted for all sizes of the table at which this fabric has a p-value
    busbw: "Cell | None" = None
    utilization: "Cell | None" = None
    limit_gbyte_s: float | None = None
    limit_formula: str | None = None
    limit_missing: str | None = None
    limit_source: str | None = None
    run_ids: tuple[str, ...] = ()


@dataclass(frozen=True, kw_only=True, eq=False)
class Table:
    """A subject that at least two fabrics measured: cells by fabric and size, and what differs besides the fabric."""

    subject: Subject
    baseline: str
    fabrics: tuple[str, ...]
    cells: tuple[Cell, ...]
    residue: dict[str, dict[str, list[Any]]]
    points: "pl.DataFrame"

    @cached_property
    def _by_key(self) -> dict[tuple[str, int | None], Cell]:
        return {(c.fabric, c.size_bytes): c for c in self.cells}

    def cell(self, fabric: str, size_bytes: int | None) -> Cell | None:
        """The cell, or None where this fabric did not measure this size."""
        return self._by_key.get((fabric, size_bytes))

    def of(self, fabric: str) -> list[Cell]:
        """The cells of one fabric by size."""
        return [c for c in self.cells if c.fabric == fabric]

    @cached_property
    def sizes(self) -> list[int | None]:
        """All sizes, ascending."""
        return sorted({c.size_bytes for c in self.cells}, key=lambda s: -1 if s is None else s)

    @cached_property
    def compared_sizes(self) -> list[int | None]:
        """The sizes at which a fabric has a ratio to the baseline, ascending; there is at least one."""
        return [s for s in self.sizes if any(c.ratio is not None for c in self.cells if c.size_bytes == s)]

    @cached_property
    def common_sizes(self) -> list[int | None]:
        """The compared sizes that every fabric of this table measured, or all compared sizes where there is none."""
        common = [s for s in self.compared_sizes if all(self.cell(f, s) for f in self.fabrics)]
        return common or self.compared_sizes

    @cached_property
    def compared(self) -> "pl.DataFrame":
        """The points behind the ratios: those of the baseline and of the fabrics set against it, at every size."""
        import polars as pl

        pairs = [(c.fabric, c.size_bytes) for c in self.cells if c.ratio is not None]
        pairs += [(self.baseline, s) for s in self.compared_sizes]
        wanted = pl.DataFrame(pairs, schema={"fabric": pl.String, "size_bytes": pl.Int64}, orient="row")
        return self.points.join(wanted, on=["fabric", "size_bytes"], how="semi", nulls_equal=True)

    @property
    def streams(self) -> list[str]:
        """The fabrics whose test states no message size; the campaign file says beside which size it stands."""
        return [f for f in self.fabrics if self.points.filter(self.points["fabric"] == f)["size_declared"].all()]

    @property
    def others(self) -> list[str]:
        """The fabrics beside the baseline, in order."""
        return [f for f in self.fabrics if f != self.baseline]


@dataclass(frozen=True, kw_only=True)
class Refusal:
    """
    What could not be compared: the subjects that only *fabrics* measured, and what *missing* lacks.

    *reason*: ``one_fabric``; ``no_baseline`` (others share it); ``no_common_size``; ``sizes`` (other sizes of the same
    subject are compared); ``unpaired`` (no pair of the campaign file is whole);
    ``zero`` (a value of 0 gives no ratio); ``no_value`` (the metric is not printed);
    ``operation``, ``test``, ``convention`` (the logs leave it open); ``clash`` (declared the same, but of different
    conventions). ``one_fabric`` says in ``differs`` what the others measured instead, where that is near.
    """

    subjects: tuple[Subject, ...]
    fabrics: tuple[str, ...]
    missing: tuple[str, ...]
    reason: str
    sizes: tuple[int | None, ...] = ()
    differs: tuple[series.Difference, ...] = ()  # in what the nearest measurand of *missing* is another one

    def __str__(self) -> str:
        """``one_fabric (ranks 16 against 8)``."""
        return self.reason + (f" ({', '.join(map(str, self.differs))})" if self.differs else "")


class Proof(NamedTuple):
    """The line of a log that shows the transport of a fabric's runs, the first of so many that show the same one."""

    fabric: str
    transport: str
    runs: int
    path: str
    line: int
    text: str


class Doubt(NamedTuple):
    """Numbers of logs that contradict each other: the code of the note, in how many logs, and where first."""

    code: str
    logs: int
    path: str
    line: int | None


@dataclass(frozen=True, kw_only=True, eq=False)
class Comparison:
    """Everything a report needs to know; figures, tables and sentences are made from it."""

    campaign: dict[str, Any]
    selection: Selection
    fabrics: "pl.DataFrame"
    baseline: str
    tables: tuple[Table, ...]
    refusals: tuple[Refusal, ...]
    runs: "pl.DataFrame"
    snapshot: str
    elsewhere: dict[str, int] = field(default_factory=dict)  # label -> runs, of the fabrics that were not selected
    pairs: Pairs | None = None
    telemetry: Telemetry | None = None
    doubts: tuple[Doubt, ...] = ()
    proofs: tuple[Proof, ...] = ()

    @cached_property
    def labels(self) -> dict[str, str]:
        """Fabric → the words that reports show."""
        return dict(zip(self.fabrics["fabric"], self.fabrics["label"], strict=True))

    @cached_property
    def families(self) -> dict[str, str]:
        """Fabric → family."""
        return dict(zip(self.fabrics["fabric"], self.fabrics["fabric_family"], strict=True))

    @property
    def headline(self) -> Table:
        """The table that the cover and the summary speak of."""
        return self.tables[0]

    def first(self, kind: str) -> Table | None:
        """The first table of a kind, other than the headline."""
        return next((t for t in self.tables[1:] if t.subject.kind == kind), None)

    def frame(self) -> "pl.DataFrame":
        """One row a measurand, fabric and message size: n, median, ratio to the baseline, and their intervals."""
        import polars as pl

        keys = ("kind", "operation", "test", "dtype", "ranks", "nodes", "placement")
        own = (
            "fabric",
            "size_bytes",
            "n",
            "median",
            "low",
            "high",
            "verdict",
            "ratio",
            "ratio_low",
            "ratio_high",
            "pairs",
            "p_value",
            "p_holm",
            "limit_gbyte_s",
            "limit_source",
        )
        rows = [
            {k: getattr(t.subject, k) for k in keys}
            | {"metric": t.subject.metric, "baseline": t.baseline}
            | {k: getattr(x, k) for k in own}
            | {"test": dict(t.subject.tests).get(x.fabric, t.subject.test)}
            for t in self.tables
            for x in t.cells
        ]
        return pl.DataFrame(rows, infer_schema_length=None)

    @cached_property
    def used_runs(self) -> set[str]:
        """Ids of the runs behind the ratios."""
        return {r for t in self.tables for r in t.compared["run_id"]}

    @cached_property
    def unmatched(self) -> "pl.DataFrame":
        """The runs that can be quoted and stand behind no ratio: the refusals say why."""
        return self.runs.filter(
            self.runs["excluded_because"].is_null() & ~self.runs["run_id"].is_in(list(self.used_runs))
        )


def compare(lab: "Lab", selection: Selection) -> Comparison:
    """
    Compares the fabrics that *selection* names.

    Raises:
        UsageError: A parameter names something that the store does not have.
        NothingToCompare: Fewer than two fabrics, or no measurand that two of them share.
    """
    campaign = lab.the_campaign(selection.campaign)
    fabrics = series.fabrics_of(lab, selection)
    names = fabrics["fabric"].to_list()
    elsewhere = series.elsewhere(lab, campaign, names)
    if len(names) < 2:
        raise NothingToCompare(_why_one(campaign, names[0], elsewhere, named=bool(selection.fabrics)))
    series.check_filters(lab, selection)
    points = series.points(lab, selection, names)
    same = lab.sql("SELECT measures, tests, size_bytes FROM raw.same WHERE campaign = $c", c=campaign)
    groups = series.declared_same(points, same, names) + series.subjects(points) + series.across_nodes(points, names)
    found = [t for subject, rows in groups for t in tables(subject, rows, names)]
    runs = _runs(lab, campaign, names)
    if not found:
        raise NothingToCompare(_why_nothing(campaign, names, points, runs, selection))
    order = sorted(range(len(found)), key=lambda i: _rank(found[i], selection, i))
    head = lab.sql("SELECT * FROM raw.campaigns WHERE campaign = $c", c=campaign).to_dicts()
    return Comparison(
        campaign=head[0] if head else {"campaign": campaign} | _NO_FILE,
        selection=selection, fabrics=fabrics, baseline=names[0], tables=tuple(found[i] for i in order),
        refusals=tuple(_refusals(points, found, names, series.clashing(points, same, names))), runs=runs,
        snapshot=_snapshot(lab, campaign), elsewhere=elsewhere, pairs=node_pairs(lab, campaign, names),
        telemetry=telemetry(lab, campaign, names), doubts=_doubts(lab, runs),
        proofs=_proofs(lab, campaign, names),
    )  # fmt: skip


_NO_FILE: dict[str, Any] = {
    "title": "",
    "customer": None,
    "synthetic": False,
    "notes": [],
}  # logs without a campaign file


def _runs(lab: "Lab", campaign: str, names: list[str]) -> "pl.DataFrame":
    """The runs of the fabrics, with what excludes them; the second direction of one invocation stands in the first."""
    return lab.sql(
        f"""SELECT run_id, fabric, tool, program, operation, kind, status, path, sha256, line, hosts,
                  coalesce(excluded_because, CASE WHEN run_id <> counted_as
                      THEN 'other direction of ' || counted_as || ', counted there' END) AS excluded_because,
                  transport_verdict, transport_gdr, transport_fallback, fabric_family, fabric_evidence, fabric_printed,
                  rows, log_id
           FROM (SELECT *, {series.unit("line")} AS counted_as FROM runs WHERE campaign = $c)
           WHERE list_contains($f, fabric) ORDER BY path, line""",
        c=campaign, f=names,
    )  # fmt: skip


# Codes of notes (formats/_collectives.py, formats/_perftest.py) on numbers that do not agree with each other.
_DOUBTS = ("size_time_mismatch", "average_mismatch", "implied_ranks", "unit_conflict")


def _doubts(lab: "Lab", runs: "pl.DataFrame") -> tuple[Doubt, ...]:
    """What the logs of the runs say against their own numbers, by code."""
    import polars as pl

    counted = runs.filter(pl.col("excluded_because").is_null()).select("log_id", "path").unique("log_id")
    notes = lab.sql("SELECT log_id, line AS at, code FROM notes WHERE list_contains($codes, code)", codes=list(_DOUBTS))
    found = counted.join(notes, on="log_id").sort("path", "at")
    groups = {code: found.filter(pl.col("code") == code) for code in _DOUBTS}
    return tuple(
        Doubt(code, group["log_id"].n_unique(), group["path"][0], group["at"][0])
        for code, group in groups.items()
        if len(group)
    )


def _proofs(lab: "Lab", campaign: str, names: list[str]) -> tuple[Proof, ...]:
    """Per fabric and transport the first log with its line; runs that were left out for it are among them."""
    frame = lab.sql(
        """SELECT fabric, transport_verdict, count(*) AS runs, min(path) AS path,
                  arg_min(transport_evidence, path) AS evidence
           FROM runs JOIN (SELECT log_id, transport_evidence FROM raw.logs) USING (log_id)
           WHERE campaign = $c AND list_contains($f, fabric) AND kind = 'collective' AND transport_evidence IS NOT NULL
           GROUP BY fabric, transport_verdict ORDER BY list_position($f, fabric), runs DESC, transport_verdict""",
        c=campaign, f=names,
    )  # fmt: skip
    out = []
    for fabric, verdict, runs, path, evidence in frame.rows():
        line, _, text = evidence.partition("\n")[0].partition(": ")
        if line.isdigit():
            out.append(Proof(fabric, str(verdict), runs, path, int(line), text))
    return tuple(out)


def _rank(table: Table, selection: Selection, position: int) -> tuple[Any, ...]:
    """
    Order of the tables: collectives before point-to-point tests, most fabrics first, all_reduce and out-of-place before
    the others. A baseline that was asked for goes before all of it.
    """
    s = table.subject
    return (
        selection.baseline not in (None, table.baseline), s.kind != "collective", -len(table.fabrics),
        -min(MIN_RUNS, min(c.n for c in table.cells)), s.operation != (selection.operation or "all_reduce"),
        s.placement != "out_of_place", s.kind != "latency", -(s.ranks or 0), position,
    )  # fmt: skip


def tables(subject: Subject, rows: "pl.DataFrame", order: list[str]) -> Iterator[Table]:
    """The tables of one subject: each has a baseline and the fabrics that share a size with it; mostly there is one."""
    values: dict[tuple[str, int | None], list[dict[str, Any]]] = defaultdict(list)
    for row in rows.iter_rows(named=True):
        values[row["fabric"], row["size_bytes"]].append(row)
    sizes: dict[str, set[int | None]] = {f: {s for g, s in values if g == f} for f in order}
    left = [f for f in order if sizes[f] and not subject.unknown]
    while len(left) > 1:
        base, *rest = left
        kin = [f for f in rest if sizes[base] & sizes[f]]
        table = _table(subject, rows, (base, *kin), values)
        if any(c.ratio is not None for c in table.cells):
            yield table
        left = [f for f in rest if f not in kin]


def _table(
    subject: Subject,
    rows: "pl.DataFrame",
    fabrics: tuple[str, ...],
    values: dict[tuple[str, int | None], list[dict[str, Any]]],
) -> Table:
    """The cells of one subject for a baseline and the other *fabrics*."""
    base = fabrics[0]
    keys = sorted(
        (k for k in values if k[0] in fabrics), key=lambda k: (fabrics.index(k[0]), -1 if k[1] is None else k[1])
    )
    cells = [_cell(subject, f, s, values[f, s], values.get((base, s), []), is_baseline=f == base) for f, s in keys]
    cells = [x for f in fabrics for x in _corrected([x for x in cells if x.fabric == f])]
    here = rows.filter(rows["fabric"].is_in(list(fabrics)))
    return Table(
        subject=subject, baseline=base, fabrics=fabrics, cells=tuple(cells), residue=series.residue(here), points=here
    )


def _corrected(cells: list[Cell]) -> list[Cell]:
    """The cells of one fabric with p-values adjusted for all its sizes: one in twenty sizes differs by chance."""
    tested = [x.p_value for x in cells if x.p_value is not None]
    adjusted = iter(stats.holm(tested))
    return [x if x.p_value is None else replace(x, p_holm=next(adjusted)) for x in cells]


def _cell(
    subject: Subject,
    fabric: str,
    size: int | None,
    rows: list[dict[str, Any]],
    base: list[dict[str, Any]],
    *,
    is_baseline: bool,
) -> Cell:
    values = [r[subject.metric] for r in rows]
    low, high = _interval(values)
    ratio: dict[str, Any] = {}
    if is_baseline:
        verdict = BASELINE
    else:
        verdict, ratio = _ratio(subject, rows, base)
    limits = {(r["limit_gbyte_s"], r["limit_formula"], r["limit_missing"], r["limit_source"]) for r in rows}
    limit = limits.pop() if len(limits) == 1 else (None, None, "the runs have different limits", None)
    return Cell(
        fabric=fabric, size_bytes=size, n=len(values), median=stats.median(values), low=low, high=high, verdict=verdict,
        busbw=_plain(rows, "busbw_gbyte_s"), utilization=_plain(rows, "utilization_pct"),
        limit_gbyte_s=limit[0], limit_formula=limit[1], limit_missing=limit[2], limit_source=limit[3],
        run_ids=tuple(r["run_id"] for r in rows), **ratio,
    )  # fmt: skip


def _ratio(subject: Subject, rows: list[dict[str, Any]], base: list[dict[str, Any]]) -> tuple[str, dict[str, Any]]:
    """(verdict, fields of the cell) of a fabric against the baseline; paired where the campaign file pairs the runs."""
    paired = any(r["paired_as"] for r in (*rows, *base))
    sides = _partners(subject, rows, base) if paired else [[r[subject.metric] for r in side] for side in (rows, base)]
    if not sides[1] or not sides[0] or min(*sides[0], *sides[1]) <= 0:
        return NOT_MEASURED, {}
    above, below = reversed(sides) if subject.lower_is_better else sides
    found = stats.ratio(above, below, paired=paired)
    verdict = TOO_FEW if found.low is None else {"higher": FASTER, "lower": SLOWER}.get(found.verdict, NO_DIFFERENCE)
    return verdict, {
        "ratio": found.estimate, "ratio_low": found.low, "ratio_high": found.high, "p_value": found.p_value,
        "pairs": found.n if paired else None,
    }  # fmt: skip


def _partners(subject: Subject, rows: list[dict[str, Any]], base: list[dict[str, Any]]) -> list[list[float]]:
    """The values of both sides in the order of their pairs; a run without one partner of its own is in no pair."""
    sides: list[dict[str | None, list[float]]] = [defaultdict(list), defaultdict(list)]
    for side, of in zip(sides, (rows, base), strict=True):
        for r in of:
            side[r["paired_as"]].append(r[subject.metric])
    keys = sorted(k for k in sides[0].keys() & sides[1].keys() if k and all(len(side[k]) == 1 for side in sides))
    return [[side[k][0] for k in keys] for side in sides]


def _plain(rows: list[dict[str, Any]], column: str) -> Cell | None:
    """Median and interval of another column of the same rows."""
    values = [r[column] for r in rows if r[column] is not None]
    if len(values) < len(rows):
        return None
    low, high = _interval(values)
    return Cell(
        fabric=rows[0]["fabric"],
        size_bytes=rows[0]["size_bytes"],
        n=len(values),
        median=stats.median(values),
        low=low,
        high=high,
        verdict="",
    )


def _interval(values: list[float]) -> tuple[float | None, float | None]:
    found = stats.median_interval(values)
    return (found.low, found.high) if found else (None, None)


def _refusals(points: "pl.DataFrame", tables: list[Table], names: list[str], clashing: set[str]) -> list[Refusal]:
    """Every point that stands behind no ratio, put together by the reason and the fabrics that measured it."""
    covered = {row for t in tables for row in t.compared["row"]}
    rest = points.filter(~points["row"].is_in(list(covered)))
    told = {s for s, _ in series.subjects(points.filter(points["row"].is_in(list(covered))))}
    found: dict[tuple[str, tuple[str, ...]], dict[Subject, set[int | None]]] = defaultdict(lambda: defaultdict(set))
    for subject, rows in series.subjects(rest):
        for reason, fabrics, sizes in _alone(
            subject, rows, names, told=subject in told, clash=subject.test in clashing
        ):
            found[reason, fabrics][subject] |= sizes
    for subject, rows in series.without_value(points):
        found["no_value", _in_order(rows, names)][subject] |= set(rows["size_bytes"])
    out = [
        Refusal(
            subjects=tuple(alone), fabrics=here, missing=tuple(n for n in names if n not in here), reason=reason,
            differs=differs,
            sizes=tuple(sorted({s for sizes in alone.values() for s in sizes}, key=lambda s: -1 if s is None else s)),
        )
        for (reason, here), every in found.items()
        for differs, alone in _by_difference(reason, here, every, points).items()
    ]  # fmt: skip
    return sorted([*out, *_without_baseline(tables, names[0])], key=lambda r: r.reason in ("sizes", "no_baseline"))


def _by_difference(
    reason: str, here: tuple[str, ...], alone: dict[Subject, set[int | None]], points: "pl.DataFrame"
) -> dict[tuple[series.Difference, ...], dict[Subject, set[int | None]]]:
    """The subjects of one refusal, put together by what the other fabrics measured instead."""
    others = [
        s for s, _ in series.subjects(points.filter(~points["fabric"].is_in(list(here))))
    ] if reason == "one_fabric" else []  # fmt: skip
    found: dict[tuple[series.Difference, ...], dict[Subject, set[int | None]]] = defaultdict(dict)
    for subject, sizes in alone.items():
        found[series.differing(subject, others)][subject] = sizes
    return found


def _nearly(points: "pl.DataFrame", names: list[str]) -> str:
    """What keeps the nearest measurands of two fabrics apart, in words; empty where none is near."""
    found: dict[tuple[str | None, frozenset[str]], str] = {}
    alone = series.subjects(points)
    for subject, rows in sorted(alone, key=lambda item: names.index(_in_order(item[1], names)[0])):
        others = [s for s, _ in series.subjects(points.filter(~points["fabric"].is_in(rows["fabric"].to_list())))]
        if unlike := series.differing(subject, others):
            name = subject.operation if subject.kind == "collective" else subject.test
            both = frozenset(f"{d.field} {v}" for d in unlike for v in (d.here, d.there))  # the same from both sides
            found.setdefault((name, both), f"{name}: {', '.join(map(str, unlike))}")
    return "; ".join(list(found.values())[:3])


def _without_baseline(tables: list[Table], baseline: str) -> list[Refusal]:
    """Measurands that others share and the baseline of the comparison lacks."""
    found: dict[tuple[str, ...], list[Subject]] = defaultdict(list)
    for table in tables:
        if baseline not in table.fabrics:
            found[table.fabrics].append(table.subject)
    return [
        Refusal(subjects=tuple(subjects), fabrics=fabrics, missing=(baseline,), reason="no_baseline")
        for fabrics, subjects in found.items()
    ]


def _alone(
    subject: Subject, rows: "pl.DataFrame", names: list[str], *, told: bool, clash: bool
) -> Iterator[tuple[str, tuple[str, ...], set[int | None]]]:
    """(reason, fabrics, sizes) of the points of one subject that were not compared."""
    here, sizes = _in_order(rows, names), set(rows["size_bytes"])
    by_size = {s: _in_order(rows.filter(rows["size_bytes"].eq_missing(s)), names) for s in sizes}
    if subject.unknown or clash:
        yield subject.unknown or "clash", here, sizes
    elif not told and len(here) == 1:
        yield "one_fabric", here, sizes
    elif not told and all(len(f) == 1 for f in by_size.values()):
        yield "no_common_size", here, sizes
    else:
        for size, fabrics in by_size.items():
            yield _at_one_size(subject, rows.filter(rows["size_bytes"].eq_missing(size))), fabrics, {size}


def _at_one_size(subject: Subject, rows: "pl.DataFrame") -> str:
    """Why the rows of one size stand behind no ratio, where other sizes do."""
    if not (rows[subject.metric] > 0).all():
        return "zero"
    return "unpaired" if rows["fabric"].n_unique() > 1 and rows["paired_as"].is_not_null().any() else "sizes"


def _in_order(rows: "pl.DataFrame", names: list[str]) -> tuple[str, ...]:
    present = set(rows["fabric"])
    return tuple(f for f in names if f in present)


def _why_one(campaign: str, fabric: str, elsewhere: dict[str, int], *, named: bool) -> str:
    """One sentence on a comparison of a single fabric."""
    others = [label for label, runs in elsewhere.items() if runs]
    if others and named:
        return (
            f"a comparison needs two fabrics, and only {fabric} was named; campaign '{campaign}' also has: "
            f"{', '.join(others)}"
        )
    return (
        f"campaign '{campaign}' has runs of one fabric only ({fabric}); a comparison needs two: ingest logs of "
        "another one, or say in rdmalab.toml which logs belong to which"
    )


def _why_nothing(
    campaign: str, names: list[str], points: "pl.DataFrame", runs: "pl.DataFrame", selection: Selection
) -> str:
    """One sentence on why no measurand is shared."""
    if runs["excluded_because"].is_not_null().all():
        reasons = ", ".join(sorted({r.split(" of ")[0] for r in runs["excluded_because"]}))
        return f"campaign '{campaign}': no run can be quoted, of {len(runs)} ({reasons})"
    if points.is_empty() and selection.filters:
        asked = ", ".join(f"{k}={v}" for k, v in selection.filters.items())
        known = ", ".join(sorted(set(runs["operation"].drop_nulls()))) or "none"
        return f"campaign '{campaign}': no measurement matches {asked}; operations of its runs: {known}"
    what: dict[str, set[str]] = {f: set() for f in names}
    for fabric, kind, operation, test in points.select("fabric", "kind", "operation", "test").unique().iter_rows():
        what[fabric].add(operation or test if kind == "collective" else test)
    has = "; ".join(f"{f}: {', '.join(sorted(t)) or 'nothing that can be quoted'}" for f, t in what.items())
    has += f"; what differs: {near}" if (near := _nearly(points, names)) else ""
    return (
        f"campaign '{campaign}': no measurand is shared by two fabrics ({has}); run the same test on both, or declare "
        "tests that measure the same in [[same]] of rdmalab.toml"
    )


def _snapshot(lab: "Lab", campaign: str) -> str:
    """A hash of what the comparison rests on: the contents of the logs and the campaign file."""
    frame = lab.sql(
        """SELECT md5(string_agg(part, ' ' ORDER BY part)) AS digest FROM (
               SELECT DISTINCT sha256 || fabric AS part FROM runs WHERE campaign = $c
               UNION ALL SELECT file_sha256 FROM raw.campaigns WHERE campaign = $c)""",
        c=campaign,
    )
    return str(frame["digest"][0])
