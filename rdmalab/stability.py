"""Is a cell of repeated runs one population: single runs that stand out, and a level that changed while time passed."""

from typing import TYPE_CHECKING, Any

from rdmalab import series, stats
from rdmalab.series import Subject

if TYPE_CHECKING:
    import polars as pl

    from rdmalab.lab import Lab

LARGEST_P_VALUE = 0.05  # of a change that is shown, after Holm over the sizes of one measurand and fabric

CHANGED, NO_CHANGE, NO_ORDER, TOO_FEW = "level changed", "no change shown", "order not known", "too few runs"
_SHOWN = ("kind", "operation", "test", "dtype", "ranks", "nodes", "placement")


def unusual_runs(points: "pl.DataFrame") -> "pl.DataFrame":
    """
    The runs that lie further than 3.5 robust deviations and 2 % from the median of their cell; none is left out for it.

    Args:
        points: Of :func:`rdmalab.series.points`. A cell is one measurand, fabric and size with at least 6 runs.

    Returns:
        One row a run and size: the fields of the measurand, fabric, size_bytes, run_id, path, line, metric, value,
        median, ratio (value over median), n.
    """
    import polars as pl

    rows = [
        _said(subject, fabric)
        | {"size_bytes": size, "run_id": run, "path": path, "line": line, "value": value, "median": middle}
        | {"ratio": value / middle, "n": len(cell)}
        for subject, fabric, size, cell in _cells(points)
        if len(cell) >= stats.LEAST_RUNS
        for middle in [stats.median(cell[subject.metric])]
        for far, (run, path, line, value) in zip(
            stats.outliers(cell[subject.metric]),
            cell.select("run_id", "path", "line", subject.metric).iter_rows(),
            strict=True,
        )
        if far and abs(value / middle - 1) > 0.02
    ]
    schema = _schema({"run_id": pl.String, "path": pl.String, "line": pl.Int64, "value": pl.Float64})
    return pl.DataFrame(rows, schema=schema | {"median": pl.Float64, "ratio": pl.Float64, "n": pl.Int64})


def starts(lab: "Lab", campaign: str) -> "pl.DataFrame":
    """
    When runs took place, as their own rows say: run_id, started (as printed), for the runs whose log has stamps.

    A file's time of modification is no evidence: copying a folder changes it.
    """
    return lab.sql(
        """SELECT run_id, min(printed_at) AS started FROM results
           WHERE campaign = $c AND printed_at IS NOT NULL GROUP BY run_id ORDER BY started""",
        c=campaign,
    )


def drift(points: "pl.DataFrame", started: "pl.DataFrame") -> "pl.DataFrame":
    """
    Whether the level of a cell changed between two runs: Pettitt's test on its runs in the order of time.

    Args:
        points: Of :func:`rdmalab.series.points`.
        started: run_id, started: texts or times in whose order the runs were made, see :func:`starts`.

    Returns:
        One row a cell: the fields of the measurand, fabric, size_bytes, n, verdict (``level changed``,
        ``no change shown``, ``order not known``: a run has no stamp or two share one, ``too few runs``: below 8),
        run_before and run_after (the last run at the old level and the first at the new one), median_before,
        median_after, p_value (adjusted over the sizes of one measurand and fabric). Null where no change is shown.
    """
    import polars as pl

    rows: list[dict[str, Any]] = []
    families = []
    for subject, fabric, size, cell in _cells(points):
        row = _said(subject, fabric) | {"size_bytes": size, "n": len(cell), "verdict": TOO_FEW}
        timed = cell.join(started, on="run_id").sort("started")
        change = None
        if len(timed) < len(cell) or timed["started"].n_unique() < len(cell):
            row["verdict"] = NO_ORDER
        elif change := stats.change_point(timed[subject.metric]):
            runs = timed["run_id"]
            row |= {
                "verdict": NO_CHANGE, "run_before": runs[change.after - 1], "run_after": runs[change.after],
                "median_before": change.median_before, "median_after": change.median_after, "p_value": change.p_value,
            }  # fmt: skip
        rows.append(row)
        families.append((subject, fabric))
    for family in dict.fromkeys(families):
        tested = [r for r, f in zip(rows, families, strict=True) if f == family and "p_value" in r]
        for row, p_value in zip(tested, stats.holm(r["p_value"] for r in tested), strict=True):
            row["p_value"] = p_value
            if p_value <= LARGEST_P_VALUE:
                row["verdict"] = CHANGED
            else:
                row |= dict.fromkeys(("run_before", "run_after", "median_before", "median_after"))
    schema = _schema({"n": pl.Int64, "verdict": pl.String, "run_before": pl.String, "run_after": pl.String})
    return pl.DataFrame(
        rows, schema=schema | {"median_before": pl.Float64, "median_after": pl.Float64, "p_value": pl.Float64}
    )


def _cells(points: "pl.DataFrame") -> "list[tuple[Subject, str, int | None, pl.DataFrame]]":
    """(measurand, fabric, size, its rows), in that order."""
    return [
        (subject, str(fabric), size, cell)
        for subject, rows in series.subjects(points)
        for (fabric, size), cell in sorted(
            rows.group_by("fabric", "size_bytes"), key=lambda c: (str(c[0][0]), -1 if c[0][1] is None else c[0][1])
        )
    ]


def _said(subject: Subject, fabric: str) -> dict[str, Any]:
    return {k: getattr(subject, k) for k in _SHOWN} | {"metric": subject.metric, "fabric": fabric}


def _schema(more: "dict[str, pl.DataType | type[pl.DataType]]") -> "dict[str, pl.DataType | type[pl.DataType]]":
    import polars as pl

    texts, numbers = dict.fromkeys(_SHOWN, pl.String), {"ranks": pl.Int64, "nodes": pl.Int64}
    return texts | numbers | {"metric": pl.String, "fabric": pl.String, "size_bytes": pl.Int64} | more
