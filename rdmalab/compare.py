"""Fabrics side by side: medians with intervals, ratios to a baseline with intervals, and what could not be compared.

The unit of the statistics is the run. A ratio is a speed-up: above 1 the fabric is faster than the baseline, for times
as for bandwidths. "Faster" and "slower" need an interval that excludes 1, and an interval needs 6 runs a side.
"""

from collections import defaultdict
from dataclasses import dataclass
from functools import cached_property
from typing import TYPE_CHECKING, Any

from rdmalab import series, stats
from rdmalab.errors import NothingToCompare
from rdmalab.series import Selection, Subject

if TYPE_CHECKING:
    import polars as pl

    from rdmalab.lab import Lab

MIN_RUNS = 6  # below, no interval with 95 % coverage of a median exists

FASTER, SLOWER, NO_DIFFERENCE, TOO_FEW, BASELINE, NOT_MEASURED = (
    "faster", "slower", "no difference shown", "too few runs", "baseline", "not measured",
)  # fmt: skip


@dataclass(frozen=True, kw_only=True)
class Cell:
    """One fabric at one message size of one subject: n runs, their median and its interval, the ratio to the baseline."""

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
    busbw: "Cell | None" = None
    utilization: "Cell | None" = None
    limit_gbyte_s: float | None = None
    limit_formula: str | None = None
    limit_missing: str | None = None
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
    def common_sizes(self) -> list[int | None]:
        """The sizes that every fabric of this table measured, ascending."""
        return [s for s in self.sizes if all(self.cell(f, s) for f in self.fabrics)]

    @property
    def streams(self) -> list[str]:
        """The fabrics whose test has no message size of its own; the campaign file says beside which size it stands."""
        return [f for f in self.fabrics if self.points.filter(self.points["fabric"] == f)["size_declared"].all()]

    @property
    def others(self) -> list[str]:
        """The fabrics beside the baseline, in order."""
        return [f for f in self.fabrics if f != self.baseline]


@dataclass(frozen=True, kw_only=True)
class Refusal:
    """What could not be compared: the subjects that only *fabrics* measured, and what *missing* lacks."""

    subjects: tuple[Subject, ...]
    fabrics: tuple[str, ...]
    missing: tuple[str, ...]
    reason: str  # one_fabric, no_common_size, convention


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
        """The first table of a kind, other than the headline's subject."""
        return next((t for t in self.tables if t.subject.kind == kind), None)

    @cached_property
    def used_runs(self) -> set[str]:
        """Ids of the runs behind the tables."""
        return {r for t in self.tables for r in t.points["run_id"]}


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
    if len(names) < 2:
        raise NothingToCompare(
            f"campaign '{campaign}' has runs of one fabric only ({names[0]}); a comparison needs two: ingest logs of "
            "another one, or say in rdmalab.toml which logs belong to which"
        )
    points = series.points(lab, selection, names)
    same = lab.sql("SELECT measures, tests, size_bytes FROM raw.same WHERE campaign = $c", c=campaign)
    groups = series.declared_same(points, same, names) + series.subjects(points)
    tables = [t for subject, rows in groups if (t := _table(subject, rows, names))]
    runs = lab.sql(
        """SELECT run_id, fabric, tool, program, operation, kind, status, path, sha256, line, hosts, excluded_because,
                  transport_verdict, transport_gdr, transport_fallback, fabric_family, fabric_evidence, rows, log_id
           FROM runs WHERE campaign = $c AND list_contains($f, fabric) ORDER BY path, line""",
        c=campaign, f=names,
    )  # fmt: skip
    if not tables:
        raise NothingToCompare(_why_nothing(campaign, names, groups, runs))
    order = sorted(range(len(tables)), key=lambda i: _rank(tables[i], selection, i))
    head = lab.sql("SELECT * FROM raw.campaigns WHERE campaign = $c", c=campaign).to_dicts()
    return Comparison(
        campaign=head[0] if head else {"campaign": campaign, "title": "", "customer": None, "synthetic": False, "notes": []},
        selection=selection, fabrics=fabrics, baseline=names[0], tables=tuple(tables[i] for i in order),
        refusals=tuple(_refusals(groups, names, tables)), runs=runs, snapshot=_snapshot(lab, campaign),
    )  # fmt: skip


def _rank(table: Table, selection: Selection, position: int) -> tuple[Any, ...]:
    """Collectives before point-to-point tests, most fabrics first, all_reduce and out-of-place before the others."""
    s = table.subject
    return (
        s.kind != "collective", -len(table.fabrics), -min(MIN_RUNS, min(c.n for c in table.cells)),
        s.operation != (selection.operation or "all_reduce"), s.placement != "out_of_place", s.kind != "latency",
        -(s.ranks or 0), position,
    )  # fmt: skip


def _table(subject: Subject, rows: "pl.DataFrame", order: list[str]) -> Table | None:
    """The cells of one subject, or None when fewer than two fabrics share a size."""
    here = [f for f in order if f in set(rows["fabric"])]
    if len(here) < 2:
        return None
    base = here[0]
    values: dict[tuple[str, int | None], list[dict[str, Any]]] = defaultdict(list)
    for row in rows.iter_rows(named=True):
        values[row["fabric"], row["size_bytes"]].append(row)
    cells = [
        _cell(subject, fabric, size, found, values.get((base, size), []), is_baseline=fabric == base)
        for (fabric, size), found in sorted(values.items(), key=lambda i: (here.index(i[0][0]), i[0][1] or -1))
    ]
    table = Table(
        subject=subject, baseline=base, fabrics=tuple(here), cells=tuple(cells), residue=series.residue(rows), points=rows
    )
    return table if any(c.ratio is not None for c in cells) else None


def _cell(
    subject: Subject, fabric: str, size: int | None, rows: list[dict[str, Any]], base: list[dict[str, Any]], *, is_baseline: bool
) -> Cell:
    values = [r[subject.metric] for r in rows]
    reference = [r[subject.metric] for r in base]
    low, high = _interval(values)
    ratio: dict[str, Any] = {}
    if is_baseline:
        verdict = BASELINE
    elif not reference or min(values) <= 0 or min(reference) <= 0:
        verdict = NOT_MEASURED
    else:
        found = stats.ratio(reference, values) if subject.lower_is_better else stats.ratio(values, reference)
        ratio = {"ratio": found.estimate, "ratio_low": found.low, "ratio_high": found.high}
        verdict = TOO_FEW if found.low is None else {"higher": FASTER, "lower": SLOWER}.get(found.verdict, NO_DIFFERENCE)
    limits = {(r["limit_gbyte_s"], r["limit_formula"], r["limit_missing"]) for r in rows}
    limit = limits.pop() if len(limits) == 1 else (None, None, "the runs have different limits")
    return Cell(
        fabric=fabric, size_bytes=size, n=len(values), median=stats.median(values), low=low, high=high, verdict=verdict,
        busbw=_plain(rows, "busbw_gbyte_s"), utilization=_plain(rows, "utilization_pct"),
        limit_gbyte_s=limit[0], limit_formula=limit[1], limit_missing=limit[2],
        run_ids=tuple(r["run_id"] for r in rows), **ratio,
    )  # fmt: skip


def _plain(rows: list[dict[str, Any]], column: str) -> Cell | None:
    """Median and interval of another column of the same rows."""
    values = [r[column] for r in rows if r[column] is not None]
    if len(values) < len(rows):
        return None
    low, high = _interval(values)
    return Cell(
        fabric=rows[0]["fabric"], size_bytes=rows[0]["size_bytes"], n=len(values), median=stats.median(values), low=low, high=high, verdict=""
    )


def _interval(values: list[float]) -> tuple[float | None, float | None]:
    found = stats.median_interval(values)
    return (found.low, found.high) if found else (None, None)


def _refusals(groups: "list[tuple[Subject, pl.DataFrame]]", names: list[str], tables: list[Table]) -> list[Refusal]:
    """Subjects that stand alone, put together by the fabrics that measured them."""
    declared = {pair for t in tables for pair in t.subject.tests}
    alone: dict[tuple[tuple[str, ...], str], list[Subject]] = defaultdict(list)
    for subject, rows in groups:
        here = tuple(f for f in names if f in set(rows["fabric"]))
        if {(f, subject.test) for f in here} <= declared:
            continue
        if len(here) < 2:
            alone[here, "one_fabric"].append(subject)
        elif not _table(subject, rows, names):
            alone[here, "no_common_size"].append(subject)
    return [
        Refusal(subjects=tuple(s), fabrics=here, missing=tuple(n for n in names if n not in here), reason=reason)
        for (here, reason), s in alone.items()
    ]


def _why_nothing(campaign: str, names: list[str], groups: "list[tuple[Subject, pl.DataFrame]]", runs: "pl.DataFrame") -> str:
    """One sentence on why no measurand is shared."""
    if runs.filter(runs["excluded_because"].is_null()).is_empty():
        reasons = ", ".join(sorted(set(runs["excluded_because"].drop_nulls())))
        return f"campaign '{campaign}': none of the {len(runs)} runs can be quoted ({reasons})" if len(runs) else f"campaign '{campaign}' has no run"
    what = {f: sorted({s.test or s.operation or "" for s, rows in groups if f in set(rows["fabric"])}) for f in names}
    has = "; ".join(f"{f}: {', '.join(t) or 'nothing that can be quoted'}" for f, t in what.items())
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
