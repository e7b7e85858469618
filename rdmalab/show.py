"""One run for people: what is known of it, its rows, its notes, and the lines of its log while it is still there."""

from collections.abc import Iterator
from itertools import islice
from typing import TYPE_CHECKING, Any

from rdmalab.errors import UsageError
from rdmalab.quotes import text_of

if TYPE_CHECKING:
    import polars as pl

    from rdmalab.lab import Lab

_HIDDEN = {"log_id", "ordinal", "wrong_rows", "declared"}


def show_run(lab: "Lab", run: str, around: int) -> list[str]:
    """
    The lines of ``rdmalab show RUN``.

    Raises:
        UsageError: No run, or more than one, has an id that begins with *run*.
    """
    import polars as pl

    found = lab.sql("SELECT * FROM runs WHERE starts_with(run_id, $run) ORDER BY run_id, campaign", run=run)
    ids = found["run_id"].unique().to_list()
    if run in ids:
        ids = [run]
    if len(ids) != 1:
        what = "no run" if not ids else f"{len(ids)} runs"
        raise UsageError(f"{what} with an id that begins with '{run}'; 'rdmalab runs' lists them")
    row = found.filter(pl.col("run_id") == ids[0]).row(0, named=True)
    out = [f"{name}: {_text(value)}" for name, value in row.items() if value not in (None, []) and name not in _HIDDEN]
    samples = lab.sql("SELECT * EXCLUDE (campaigns) FROM samples WHERE run_id = $run ORDER BY ordinal", run=ids[0])
    notes = lab.sql("SELECT line, code, text FROM notes WHERE log_id = $log ORDER BY line", log=row["log_id"])
    out += ["", *_table(samples.drop("run_id", "log_id", "ordinal"))]
    out += [f"note, line {n['line'] or '-'}: {n['code']}: {n['text']}" for n in notes.iter_rows(named=True)]
    files = lab.sql("SELECT file FROM raw.paths WHERE path = $path", path=row["path"])["file"].to_list()
    file = files[0] if files else row["path"]
    return [*out, "", *_log_lines(row["path"], file, row["sha256"], row["line"], around)]


def _text(value: Any) -> str:
    return ", ".join(map(str, value)) if isinstance(value, list) else str(value)


def _table(frame: "pl.DataFrame") -> list[str]:
    import polars as pl

    kept = frame.select(s for s in frame if s.null_count() < len(s))
    with pl.Config(
        tbl_rows=-1, tbl_cols=-1, tbl_width_chars=240, tbl_hide_dataframe_shape=True, tbl_hide_column_data_types=True
    ):
        return str(kept).splitlines() if kept.width else ["no rows"]


def _log_lines(path: str, file: str, sha256: str, line: int | None, around: int) -> Iterator[str]:
    """The lines around the beginning of the run, or why they cannot be shown."""
    text = text_of(path, file, sha256)
    if isinstance(text, str):
        yield text
    else:
        first = max(1, (line or 1) - around)
        yield from (f"{n:>7}  {t}" for n, t in islice(text.lines(), first - 1, (line or 1) + around))
