"""
A campaign looked at one measurand at a time: medians, intervals and runs, aggregated by the store.

The workbench draws what this gives. Of ten million samples the store answers with a few hundred rows: first the runs of
a campaign, then the samples of the runs of one test, each into a temporary table of this connection. The numbers are
those of :mod:`rdmalab.compare`, whose tables the ratios are.
"""

from collections.abc import Iterator, Sequence
from dataclasses import asdict, dataclass, replace
from typing import TYPE_CHECKING, Any

from rdmalab import series, stats
from rdmalab.compare import Cell, Comparison, Table, tables
from rdmalab.quotes import lines_of, text_of
from rdmalab.series import Selection, Subject

if TYPE_CHECKING:
    import polars as pl

    from rdmalab.lab import Lab

MOST_VALUES = 20_000  # that ratios are made of: all n x m ratios of the runs of two fabrics are formed
_NO_VARIANT: dict[str, Any] = dict.fromkeys(series.KEYS_OF_SAMPLES)
MOST_ROWS = 1_000  # of a table that a browser is given


def _keys(kind: str) -> tuple[str, ...]:
    """The fields of a run that make its test: those of the key without what its samples add."""
    key = series.COLLECTIVE_KEY if kind == "collective" else series.TEST_KEY
    return tuple(k for k in key if k not in series.KEYS_OF_SAMPLES)


@dataclass(frozen=True, kw_only=True)
class View:
    """
    What is looked at.

    Args:
        subject: The measurand.
        fabrics: Names in the order of the campaign; the ratios are those to *baseline*.
        size_min, size_max: Message sizes in bytes, both included; None for all.
    """

    subject: Subject
    fabrics: tuple[str, ...]
    baseline: str
    size_min: int | None = None
    size_max: int | None = None

    def parameters(self, campaign: str) -> dict[str, Any]:
        """The parameters of a report on this view; of a point-to-point test a report has no filter but the sizes."""
        s = self.subject
        chosen = Selection(
            campaign=campaign, fabrics=list(self.fabrics), baseline=self.baseline, operation=s.operation, dtype=s.dtype,
            ranks=s.ranks, placement=s.placement, size_min=self.size_min, size_max=self.size_max,
        )  # fmt: skip
        if s.kind != "collective":
            chosen = replace(chosen, operation=None, dtype=None, ranks=None, placement=None)
        return {key: value for key, value in asdict(chosen).items() if value is not None}


class Exploration:
    """
    One campaign of a store, as it was when this was made.

    Args:
        lab: An open store; its connection gets two temporary tables, ``explored_runs`` and ``explored``.
        campaign: Name; may be left out where the store has one.

    Attributes:
        tests: The runs of every test by the fields of their key: one subject each, without those fields that its
            samples add, with the most measured first.

    Raises:
        UsageError: There is no such campaign.
    """

    def __init__(self, lab: "Lab", campaign: str | None = None) -> None:
        self.lab = lab
        self.campaign = lab.the_campaign(campaign)
        self._loaded: Subject | None = None
        lab.sql(
            f"""CREATE OR REPLACE TEMP TABLE explored_runs AS
                SELECT run_id, path, run_line, status, campaign, fabric, fabric_family, kind,
                       {series.keys_sql(series.KEYS_OF_SAMPLES)}, {", ".join(series.OF_RUN)},
                       list_sort(hosts) AS hosts, paired_as, limit_gbyte_s, limit_formula, limit_missing, limit_source,
                       declared_size_bytes, excluded_because, transport_verdict,
                       {series.BOTH_DIRECTIONS} AS both_directions
                FROM (SELECT *, line AS run_line, protocol AS run_protocol, iterations AS run_iterations
                      FROM runs WHERE campaign = $c)""",
            c=self.campaign,
        )
        self.fabrics = series.fabrics_of(lab, Selection(campaign=self.campaign), runs="explored_runs")
        self.labels = dict(zip(self.fabrics["fabric"], self.fabrics["label"], strict=True))
        head = lab.sql("SELECT synthetic FROM raw.campaigns WHERE campaign = $c", c=self.campaign)
        self.synthetic = bool(head["synthetic"].any())
        self.tests = [subject for _, subject in sorted(self._tests(), key=lambda found: found[0])]

    def _tests(self, fabric: str | None = None) -> Iterator[tuple[tuple[Any, ...], Subject]]:
        """Every test, of one fabric or of all, with its place: most fabrics, collectives, all_reduce, most runs."""
        for kind in ("collective", "latency", "bandwidth"):
            keys = _keys(kind)
            frame = self.lab.sql(
                f"""SELECT {", ".join(keys)}, count(*) AS n, count(DISTINCT fabric) AS fabrics FROM explored_runs
                    WHERE kind = $k AND coalesce(fabric = $f, true) AND excluded_because IS NULL GROUP BY ALL""",
                k=kind, f=fabric,
            )  # fmt: skip
            for row in frame.iter_rows(named=True):
                subject = Subject(kind=kind, **{k: row[k] for k in keys})
                if not subject.unknown:
                    rank = -row["fabrics"], kind != "collective", subject.operation != "all_reduce", -row["n"]
                    yield (*rank, *(str(row[k]) for k in keys)), subject

    def subjects(self, test: Subject) -> list[Subject]:
        """The measurands of one of :attr:`tests`: what its samples add to it, out of place before in place."""
        self._load(test)
        keys = ", ".join(series.KEYS_OF_SAMPLES)
        frame = self.lab.sql(
            f"""SELECT {keys}, count(*) AS n FROM explored
                WHERE {test.metric} IS NOT NULL GROUP BY ALL ORDER BY placement DESC, n DESC, {keys}"""
        )
        return [replace(test, **{k: row[k] for k in series.KEYS_OF_SAMPLES}) for row in frame.iter_rows(named=True)]

    def measured(self, subject: Subject) -> dict[str, int]:
        """Fabric → how many runs measured this; every fabric of the campaign, in its order."""
        self._load(subject)
        frame = self.lab.sql(
            f"""SELECT fabric, count(DISTINCT run) AS n FROM explored
                WHERE {self._is(subject)} GROUP BY fabric"""
        )
        found = dict(zip(frame["fabric"], frame["n"], strict=True))
        return {fabric: found.get(fabric, 0) for fabric in self.fabrics["fabric"]}

    def instead(self, subject: Subject, fabric: str) -> series.Difference | None:
        """In what the nearest test of a fabric differs that did not measure *subject*; None where none is near."""
        here = replace(subject, **_NO_VARIANT)
        return next(iter(series.differing(here, [other for _, other in self._tests(fabric)])), None)

    def sizes(self, subject: Subject) -> list[int]:
        """The message sizes in bytes that were measured, ascending."""
        self._load(subject)
        frame = self.lab.sql(
            f"SELECT DISTINCT size_bytes AS s FROM explored WHERE {self._is(subject)} AND size_bytes > 0 ORDER BY s"
        )
        return frame["s"].to_list()

    def table(self, view: View, *more: str) -> Table:
        """
        The cells of a view without ratios, by fabric and size: medians with intervals of what is compared (a time, or
        the bandwidth of a point-to-point test), and of *more*: ``busbw_gbyte_s``, ``utilization_pct``.
        """
        self._load(view.subject)
        by_column = {column: self._cells(view, column) for column in (view.subject.metric, *more)}
        limits = self._limits(view)
        cells = [
            replace(
                cell, busbw=by_column.get("busbw_gbyte_s", {}).get(key),
                utilization=by_column.get("utilization_pct", {}).get(key), **limits.get(cell.fabric, {}),
            )
            for key, cell in by_column[view.subject.metric].items()
        ]  # fmt: skip
        here = tuple(f for f in view.fabrics if any(x.fabric == f for x in cells))
        return Table(
            subject=view.subject, baseline=view.baseline, fabrics=here, cells=tuple(cells), residue=self._residue(view),
            points=self._points(view, limit=0),
        )  # fmt: skip

    def compared(self, view: View) -> Table | None:
        """
        The table of ratios to the baseline, as a report has it; None where the baseline shares no size with another
        fabric, or where there are more than 20,000 values.
        """
        if self.count(view) > MOST_VALUES:
            return None
        order = [view.baseline, *(f for f in view.fabrics if f != view.baseline)]
        found = tables(view.subject, self._points(view), order)
        return next((t for t in found if t.baseline == view.baseline), None)

    def count(self, view: View) -> int:
        """How many values a view holds: one a run and size."""
        self._load(view.subject)
        return int(self.lab.sql(f"SELECT count(*) AS n FROM explored WHERE {self._shown(view)}")["n"][0])

    def values(self, view: View, size_bytes: int | None) -> "pl.DataFrame":
        """
        The runs behind the medians of one size: path, fabric, line, size_bytes, the metrics, utilization_pct, status;
        at most 1,000, in the order of fabrics, then paths.
        """
        self._load(view.subject)
        metric = view.subject.metric
        own = [metric, "busbw_gbyte_s"] if view.subject.kind == "collective" else [metric]
        frame = self.lab.sql(
            f"""SELECT path, r.fabric, e.line, size_bytes, {", ".join(own)},
                       {_UTILIZATION.replace("limit_gbyte_s", "e.limit_gbyte_s")} AS utilization_pct, status, run_id
                FROM explored e JOIN explored_runs r ON r.rowid = e.run
                WHERE {self._shown(view, "e.")} AND size_bytes IS NOT DISTINCT FROM $s
                ORDER BY list_position($f, r.fabric), path, e.line LIMIT {MOST_ROWS}""",
            s=size_bytes, f=list(view.fabrics),
        )  # fmt: skip
        return frame.drop("utilization_pct") if frame["utilization_pct"].is_null().all() else frame

    def runs(self, view: View) -> "pl.DataFrame":
        """
        All runs of the operation or test of a view, those that are left out too, with the reason; at most 1,000: path,
        line, fabric, test, ranks, nodes, rows, average_busbw_gbyte_s, status, left_out_because, transport.
        """
        what = "operation" if view.subject.kind == "collective" else "test"
        return self.lab.sql(
            f"""SELECT path, run_line AS line, e.fabric, e.test, e.ranks, e.nodes, r.rows, r.average_busbw_gbyte_s,
                       e.status, excluded_because AS left_out_because, transport_verdict AS transport, e.run_id
                FROM explored_runs e JOIN raw.runs r USING (run_id)
                WHERE e. kind = $k AND e.{what} IS NOT DISTINCT FROM $v AND list_contains($f, e.fabric)
                ORDER BY list_position($f, e.fabric), path, run_line LIMIT {MOST_ROWS}""",
            k=view.subject.kind, v=getattr(view.subject, what), f=list(view.fabrics),
        )  # fmt: skip

    def left_out(self, view: View) -> dict[str, int]:
        """Reason → how many runs of the operation or test of a view are left out for it; most frequent first."""
        what = "operation" if view.subject.kind == "collective" else "test"
        frame = self.lab.sql(
            f"""SELECT regexp_replace(excluded_because, '^(other end|other direction) of .*', '\\1') AS reason,
                       count(*) AS n
                FROM explored_runs WHERE excluded_because IS NOT NULL AND kind = $k
                     AND {what} IS NOT DISTINCT FROM $v AND list_contains($f, fabric)
                GROUP BY ALL ORDER BY n DESC, reason""",
            k=view.subject.kind, v=getattr(view.subject, what), f=list(view.fabrics),
        )  # fmt: skip
        return dict(zip(frame["reason"], frame["n"], strict=True))

    def unproved(self, view: View) -> int:
        """How many runs of a view are of collectives whose logs prove no transport."""
        if view.subject.kind != "collective":
            return 0
        self._load(view.subject)
        return int(
            self.lab.sql(
                f"""SELECT count(*) AS n FROM explored_runs
                    WHERE coalesce(transport_verdict, 'unknown') = 'unknown'
                          AND rowid IN (SELECT run FROM explored WHERE {self._shown(view)})"""
            )["n"][0]
        )

    def each(self, view: View, column: str, most: int) -> list[tuple[str, int, float]] | None:
        """(fabric, size in bytes, value) of every run of a view; None where there are more than *most*."""
        if self.count(view) > most:
            return None
        value = _UTILIZATION if column == "utilization_pct" else column
        frame = self.lab.sql(
            f"SELECT fabric, size_bytes, {value} AS v FROM explored WHERE {self._shown(view)} AND size_bytes > 0 "
            "AND v IS NOT NULL ORDER BY ALL"
        )
        return frame.rows()

    def _residue(self, view: View) -> dict[str, dict[str, list[Any]]]:
        """Field → fabric → values, as :func:`rdmalab.series.residue` has it: in what the runs of a view differ."""
        shown = self._shown(view)
        of_run = self._values_of(
            (*series.OF_RUN, "hosts"), f"explored_runs WHERE rowid IN (SELECT run FROM explored WHERE {shown})"
        )
        of_sample = self._values_of(("iterations", "algorithm", "nccl_protocol"), f"explored WHERE {shown}")
        found = of_run | of_sample
        return {name: by_fabric for name, by_fabric in found.items() if series.is_residue(name, by_fabric)}

    def _values_of(self, names: Sequence[str], source: str) -> dict[str, dict[str, list[Any]]]:
        lists = ", ".join(
            f"list_sort(list(DISTINCT {n}) FILTER ({n} IS NOT NULL)) AS {n}, bool_or({n} IS NULL) AS {n}_null"
            for n in names
        )
        frame = self.lab.sql(f"SELECT fabric, {lists} FROM {source} GROUP BY fabric")
        rows = {row["fabric"]: row for row in frame.iter_rows(named=True)}
        return {
            name: {
                f: [tuple(v) if isinstance(v, list) else v for v in rows[f][name] or []]
                + [None] * rows[f][f"{name}_null"]
                for f in self.fabrics["fabric"] if f in rows
            }
            for name in names
        }  # fmt: skip

    def lines(self, run_id: str, size_bytes: int | None, around: int = 2) -> list[str]:
        """The lines of a log from which the values of one run at one size come, or one sentence why there are none."""
        row = self.lab.sql(
            """SELECT r.path, p.file, l.sha256, coalesce(e.line, r.run_line) AS line FROM explored_runs r
               LEFT JOIN explored e ON e.run = r.rowid AND e.size_bytes IS NOT DISTINCT FROM $s
               JOIN raw.paths p ON p.path = r.path JOIN raw.logs l ON l.log_id = p.log_id
               WHERE r.run_id = $r ORDER BY line LIMIT 1""",
            r=run_id, s=size_bytes,
        ).row(0, named=True)  # fmt: skip
        if row["line"] is None:
            return [f"{row['path']}: a document without lines"]
        text = text_of(row["path"], row["file"], row["sha256"])
        if isinstance(text, str):
            return [text]
        found = lines_of(text, range(max(1, row["line"] - around), row["line"] + around + 1))
        return [f"{row['path']}:", *(f"{n:>6}  {found[n]}" for n in sorted(found))]

    def sql(self, view: View, column: str | None = None) -> str:
        """The query over ``results`` that gives the medians of a view: one row a fabric and size."""
        s = view.subject
        column = column or s.metric
        keys = series.COLLECTIVE_KEY if s.kind == "collective" else series.TEST_KEY
        conditions = [f"campaign = {_literal(self.campaign)}", f"kind = {_literal(s.kind)}"]
        conditions += [_is(series.in_results(k), getattr(s, k)) for k in keys if k != "reverse" or s.test == "iperf3"]
        conditions += [
            f"fabric IN ({', '.join(map(_literal, view.fabrics))})",
            "size_bytes IS DISTINCT FROM 0", *_between(view),
        ]  # fmt: skip
        value, source = f"median({column})", "results"
        if s.test == "iperf3":  # two directions of one invocation are one run
            value = series.total_sql(column)
            source = f"(SELECT * REPLACE ({series.unit('run_line')} AS run_id) FROM results)"
        return (
            f"SELECT fabric, size_bytes, count(*) AS runs, median(of_run) AS {column}\n"
            f"FROM (SELECT fabric, size_bytes, {value} AS of_run\n"
            f"      FROM {source}\n"
            "      WHERE " + "\n        AND ".join(conditions) + f"\n        AND {column} IS NOT NULL\n"
            "      GROUP BY fabric, run_id, size_bytes)\n"
            "GROUP BY fabric, size_bytes ORDER BY fabric, size_bytes"
        )

    def drawing(self, table: Table | None = None) -> Comparison:
        """What charts and sentences need beside a table: the fabrics with their labels, families and link rates."""
        import polars as pl

        return Comparison(
            campaign={"campaign": self.campaign}, selection=Selection(campaign=self.campaign), fabrics=self.fabrics,
            baseline=table.baseline if table else self.fabrics["fabric"][0], tables=(table,) if table else (),
            refusals=(), runs=pl.DataFrame(), snapshot="",
        )  # fmt: skip

    def _load(self, subject: Subject) -> None:
        """Takes the samples of the runs of a test into ``explored``: one row a run, size and placement."""
        test = replace(subject, **_NO_VARIANT)
        if test == self._loaded:
            return
        keys = ", ".join(series.KEYS_OF_SAMPLES)
        conditions = _same({k: getattr(test, k) for k in ("kind", *_keys(test.kind))})
        self.lab.sql(
            f"""CREATE OR REPLACE TEMP TABLE explored AS
                SELECT run, fabric, coalesce(s.size_bytes, declared_size_bytes) AS size_bytes, {keys}, limit_gbyte_s,
                       s.line, s.iterations, algorithm, s.protocol AS nccl_protocol, time_us, busbw_gbyte_s,
                       lat_typical_us, bw_avg_gbit_s
                FROM raw.samples s JOIN (
                    SELECT run_id, fabric, declared_size_bytes, limit_gbyte_s,
                           CASE WHEN both_directions THEN min(rowid) OVER (PARTITION BY path, run_line) ELSE rowid END
                               AS run
                    FROM explored_runs WHERE excluded_because IS NULL AND {conditions}
                ) USING (run_id)
                WHERE coalesce(s.size_bytes, declared_size_bytes) IS DISTINCT FROM 0"""
        )
        row = f"hash(run, size_bytes, {keys})"  # two rows of one hash only make this look closer
        if not self.lab.sql(f"SELECT count(*) = count(DISTINCT {row}) AS single FROM explored")["single"][0]:
            both = f"{_literal(test.test or test.tool)} AS tool, {bool(test.bidirectional)} AS bidirectional"
            self.lab.sql(
                f"""CREATE OR REPLACE TEMP TABLE explored AS
                    SELECT run, fabric, size_bytes, {keys}, limit_gbyte_s, {series.OF_SAMPLES}
                    FROM (SELECT *, nccl_protocol AS protocol, {both} FROM explored)
                    GROUP BY run, fabric, size_bytes, {keys}, limit_gbyte_s"""
            )
        self._loaded = test

    def _is(self, subject: Subject) -> str:
        """The condition on ``explored`` for a measurand."""
        keys = {k: getattr(subject, k) for k in series.KEYS_OF_SAMPLES}
        return f"{_same(keys)} AND {subject.metric} IS NOT NULL"

    def _shown(self, view: View, of: str = "") -> str:
        """The condition on ``explored`` for the values of a view."""
        fabrics = ", ".join(map(_literal, view.fabrics)) or "NULL"
        return " AND ".join([self._is(view.subject), f"{of}fabric IN ({fabrics})", *_between(view)])

    def _cells(self, view: View, column: str) -> dict[tuple[str, int | None], Cell]:
        """(fabric, size) → median and interval of a column; as in a comparison only where every run has a value."""
        expression = _UTILIZATION if column == "utilization_pct" else column
        frame = self.lab.sql(
            f"""SELECT fabric, size_bytes, count(*) AS n, median(v) AS median, list_sort(list(v)) AS v
                FROM (SELECT fabric, size_bytes, {expression} AS v FROM explored WHERE {self._shown(view)})
                GROUP BY fabric, size_bytes HAVING count(*) = count(v)
                ORDER BY list_position($f, fabric), size_bytes NULLS FIRST""",
            f=list(view.fabrics),
        )
        ranks = {n: stats.median_rank(n) for n in set(frame["n"])}
        return {(x.fabric, x.size_bytes): x for x in _with_intervals(frame, ranks)}

    def _limits(self, view: View) -> dict[str, dict[str, Any]]:
        """Fabric → the fields of a cell that tell its limit, where all runs of the view have the same."""
        names = ("limit_gbyte_s", "limit_formula", "limit_missing", "limit_source")
        frame = self.lab.sql(
            f"""SELECT DISTINCT fabric, {", ".join(names)} FROM explored_runs
                WHERE rowid IN (SELECT run FROM explored WHERE {self._shown(view)})"""
        )
        rows = frame.to_dicts()
        alone = [row for row in rows if sum(r["fabric"] == row["fabric"] for r in rows) == 1]
        return {row["fabric"]: {name: row[name] for name in names} for row in alone}

    def _points(self, view: View, limit: int = MOST_VALUES) -> "pl.DataFrame":
        """The rows that :func:`rdmalab.compare.tables` compares, as :func:`rdmalab.series.points` gives them."""
        frame = self.lab.sql(
            f"""SELECT r.* EXCLUDE (run_line, limit_gbyte_s), e.* EXCLUDE (run, fabric),
                       {_UTILIZATION.replace("limit_gbyte_s", "e.limit_gbyte_s")} AS utilization_pct,
                       false AS size_declared
                FROM explored e JOIN explored_runs r ON r.rowid = e.run
                WHERE {self._shown(view, "e.")}
                ORDER BY r.run_id, size_bytes LIMIT {limit}"""
        )
        return frame.with_row_index("row")


_UTILIZATION = "100 * coalesce(busbw_gbyte_s, bw_avg_gbit_s / 8) / limit_gbyte_s"


def _with_intervals(frame: "pl.DataFrame", ranks: dict[int, int]) -> Iterator[Cell]:
    for row in frame.iter_rows(named=True):
        rank, v = ranks[row["n"]], row["v"]
        yield Cell(
            fabric=row["fabric"], size_bytes=row["size_bytes"], n=row["n"], median=row["median"],
            low=v[rank - 1] if rank else None, high=v[-rank] if rank else None, verdict="",
        )  # fmt: skip


def _between(view: View) -> list[str]:
    bounds = ((">=", view.size_min), ("<=", view.size_max))
    return [f"size_bytes {sign} {value:d}" for sign, value in bounds if value is not None]


def _same(values: dict[str, Any]) -> str:
    return " AND ".join(_is(name, value) for name, value in values.items())


def _is(expression: str, value: Any) -> str:
    return f"{expression} IS NULL" if value is None else f"{expression} = {_literal(value)}"


def _literal(value: Any) -> str:
    """A value as SQL; texts come from logs, so quotes in them are doubled."""
    return str(value) if isinstance(value, bool | int | float) else "'" + str(value).replace("'", "''") + "'"
