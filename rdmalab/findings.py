"""What stands out in a comparison beside its ratios: who wins from which size on, dips, odd runs, changes, gaps."""

from dataclasses import dataclass
from itertools import takewhile
from typing import TYPE_CHECKING, NamedTuple

from rdmalab import curves, stability, stats
from rdmalab.compare import FASTER, NO_DIFFERENCE, TOO_FEW, Cell, Comparison, Table
from rdmalab.stability import LARGEST_P_VALUE

if TYPE_CHECKING:
    import polars as pl

    from rdmalab.lab import Lab

ODD_SHARE = 0.25  # of the sizes of a run must stand out before the run is named: one in twenty does by chance


class Win(NamedTuple):
    """A fabric is faster than the baseline at *size_bytes* and at every larger compared size."""

    table: Table
    fabric: str
    size_bytes: int
    everywhere: bool  # also at every smaller one


class Undecided(NamedTuple):
    """A cell without a verdict, and the runs a side that would give one half of the time."""

    table: Table
    fabric: str
    size_bytes: int | None
    runs: int


@dataclass(frozen=True, kw_only=True, eq=False)
class Findings:
    """
    Attributes:
        wins: One a table and fabric at most.
        notches: Of :func:`rdmalab.curves.dips`.
        odd_runs: One row a run and measurand: the fields of the measurand, fabric, path, line, sizes (that stand out),
            of (all its sizes with six runs or more).
        changes: Of :func:`rdmalab.stability.drift`, where a level changed.
        undecided: At the smallest and the largest common size of every table.
    """

    wins: tuple[Win, ...]
    notches: "pl.DataFrame"
    odd_runs: "pl.DataFrame"
    changes: "pl.DataFrame"
    undecided: tuple[Undecided, ...]


def findings(lab: "Lab", c: Comparison) -> Findings:
    """What stands out among the runs behind a comparison."""
    import polars as pl

    own = [t.points for t in c.tables if not t.subject.tests] or [c.headline.points.clear()]
    points = pl.concat(own, how="diagonal_relaxed")
    points = points.unique("row", maintain_order=True)
    drift = stability.drift(points, stability.starts(lab, str(c.campaign["campaign"])))
    return Findings(
        wins=tuple(w for t in c.tables for w in _wins(t)), notches=curves.dips(points), odd_runs=odd_runs(points),
        changes=drift.filter(drift["verdict"] == stability.CHANGED),
        undecided=tuple(u for t in c.tables for u in _undecided(t)),
    )  # fmt: skip


def _wins(table: Table) -> "list[Win]":
    """Two sizes or more, each of which shows a difference also with all sizes of the table taken together (Holm)."""
    out = []
    for fabric in table.others:
        compared = sorted((x for x in table.of(fabric) if x.ratio and x.size_bytes), key=lambda x: x.size_bytes or 0)
        won = list(takewhile(_shown, reversed(compared)))
        if len(won) > 1:
            out.append(Win(table, fabric, won[-1].size_bytes or 0, len(won) == len(compared)))
    return out


def _shown(cell: Cell) -> bool:
    return cell.verdict == FASTER and (cell.p_holm is None or cell.p_holm <= LARGEST_P_VALUE)


def odd_runs(points: "pl.DataFrame") -> "pl.DataFrame":
    """The runs of which at least a quarter of the sizes stand out, see :func:`rdmalab.stability.unusual_runs`."""
    import polars as pl

    key = ["kind", "operation", "test", "dtype", "ranks", "nodes", "placement", "fabric"]
    unusual = stability.unusual_runs(points)
    enough = points.filter(pl.len().over([*key, "size_bytes"]) >= stats.LEAST_RUNS)
    # only the fields that a measurand of this kind has: a collective has no test, a test no ranks
    collective = pl.col("kind") == "collective"
    enough = enough.with_columns(pl.when(~collective).then("test").alias("test"))
    enough = enough.with_columns(
        pl.when(collective).then(name).alias(name) for name in ("operation", "dtype", "ranks", "nodes", "placement")
    )
    sizes = enough.group_by([*key, "run_id"]).agg(pl.col("size_bytes").n_unique().alias("of"))
    odd = unusual.group_by([*key, "run_id"], maintain_order=True).agg(
        pl.col("path").first(), pl.col("line").min(), pl.col("size_bytes").n_unique().alias("sizes")
    )
    found = odd.join(sizes, on=[*key, "run_id"], nulls_equal=True, maintain_order="left")
    return found.filter(pl.col("sizes") >= ODD_SHARE * pl.col("of"))


def _undecided(table: Table) -> "list[Undecided]":
    out = []
    for size in dict.fromkeys((table.common_sizes[0], table.common_sizes[-1])):
        base = _values(table, table.baseline, size)
        for fabric in table.others:
            cell = table.cell(fabric, size)
            if (
                cell is None
                or cell.ratio is None
                or cell.pairs is not None
                or cell.verdict not in (NO_DIFFERENCE, TOO_FEW)
            ):
                continue
            sides = (_values(table, fabric, size), base)
            runs = stats.runs_to_decide(*(reversed(sides) if table.subject.lower_is_better else sides))
            if runs is not None:
                out.append(Undecided(table, fabric, size, runs))
    return out


def _values(table: Table, fabric: str, size: int | None) -> list[float]:
    rows = table.points.filter((table.points["fabric"] == fabric) & table.points["size_bytes"].eq_missing(size))
    return [float(v) for v in rows[table.subject.metric]]
