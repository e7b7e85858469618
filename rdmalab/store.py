"""The store: one DuckDB file, its schema, its views, its transactions. The only module that speaks DuckDB.

A store is never written in place. A writer takes a lock on a side file, copies the store, changes the copy in one
transaction and renames it over the old one: readers keep the consistent snapshot they opened, are never blocked and
never see half an ingest; a writer killed at any moment leaves the old store as it was.

Tables live in the schema ``raw``; analysts use the views ``logs, runs, samples, readings, notes, fabrics, ingests,
results``.
"""

import contextlib
import fcntl
import glob
import json
import os
import shutil
import socket
import time
import types
import typing
from collections.abc import Iterator, Mapping, Sequence
from datetime import datetime
from pathlib import Path
from typing import TYPE_CHECKING, Any, TextIO

from rdmalab import recomputed
from rdmalab.errors import StoreError, UsageError
from rdmalab.model import Note, Reading, Run, Sample

if TYPE_CHECKING:
    import duckdb
    import polars as pl

SCHEMA_VERSION = 1
APPLICATION = "rdmalab"
LOCK_WAIT_S = 60.0

_SQL_TYPES: dict[object, str] = {
    str: "VARCHAR", int: "BIGINT", float: "DOUBLE", bool: "BOOLEAN", datetime: "TIMESTAMPTZ", tuple: "VARCHAR[]",
}  # fmt: skip


def _sql_type(annotation: Any) -> str:
    """The column type of a record field: ``float | None`` is DOUBLE, ``tuple[str, ...]`` is VARCHAR[]."""
    if typing.get_origin(annotation) in (typing.Union, types.UnionType):
        annotation = next(a for a in typing.get_args(annotation) if a is not types.NoneType)
    return _SQL_TYPES[typing.get_origin(annotation) or annotation]


def _record_columns(record: type, *, without: Sequence[str] = ()) -> dict[str, str]:
    return {n: _sql_type(t) for n, t in typing.get_type_hints(record).items() if n not in without}


# Every table with its columns. Those of runs, samples, readings and notes follow the records of rdmalab.model, so that
# a new field is a new column: a store that lacks it gets it at the next ingest (_migrate).
TABLES: dict[str, dict[str, str]] = {
    "meta": {"name": "VARCHAR", "content": "VARCHAR"},
    "files": {"file": "VARCHAR", "size_bytes": "BIGINT", "modified_ns": "BIGINT", "reader": "VARCHAR"},
    "paths": {"path": "VARCHAR", "file": "VARCHAR", "log_id": "VARCHAR"},
    "ingests": {
        "ingested_at": "TIMESTAMPTZ", "files": "BIGINT", "already_known": "BIGINT", "new_logs": "BIGINT",
        "runs": "BIGINT", "samples": "BIGINT", "readings": "BIGINT", "notes": "BIGINT", "failed": "BIGINT",
        "unrecognised": "BIGINT", "not_read": "BIGINT", "campaigns": "VARCHAR[]",
    },
    "logs": {
        "log_id": "VARCHAR", "sha256": "VARCHAR", "size_bytes": "BIGINT", "formats": "VARCHAR[]", "status": "VARCHAR",
        "reader": "VARCHAR", "transport_verdict": "VARCHAR", "transport_gdr": "VARCHAR",
        "transport_fallback": "BOOLEAN", "transport_fallback_reason": "VARCHAR", "transport_provider": "VARCHAR",
        "transport_evidence": "VARCHAR",
    },
    "runs": {
        "run_id": "VARCHAR", "log_id": "VARCHAR", "ordinal": "BIGINT",
        **_record_columns(Run, without=("samples",)),
        "wrong_rows": "BIGINT", "rows": "BIGINT", "pair_key": "VARCHAR",
    },
    "samples": {"run_id": "VARCHAR", "log_id": "VARCHAR", "ordinal": "BIGINT", **_record_columns(Sample)},
    "readings": {"log_id": "VARCHAR", **_record_columns(Reading)},
    "notes": {"log_id": "VARCHAR", **_record_columns(Note)},
    "campaigns": {
        "campaign": "VARCHAR", "title": "VARCHAR", "customer": "VARCHAR", "synthetic": "BOOLEAN", "root": "VARCHAR",
        "file_sha256": "VARCHAR", "notes": "VARCHAR[]", "first_day": "DATE", "last_day": "DATE", "pairs": "VARCHAR",
    },
    "fabrics": {
        "campaign": "VARCHAR", "fabric": "VARCHAR", "label": "VARCHAR", "fabric_family": "VARCHAR",
        "ordinal": "BIGINT", "link_rate_gbit_s": "DOUBLE", "ports_per_node": "BIGINT", "mtu_bytes": "BIGINT",
        "gpus_per_node": "BIGINT", "gpus_per_domain": "BIGINT", "scale_up_gbyte_s": "DOUBLE", "in_network": "BOOLEAN",
        "nic": "VARCHAR", "gpu": "VARCHAR", "pcie": "VARCHAR",
    },
    "same": {"campaign": "VARCHAR", "measures": "VARCHAR", "tests": "VARCHAR[]", "size_bytes": "BIGINT"},
    "quotes": {
        "campaign": "VARCHAR", "fabric": "VARCHAR", "price": "DOUBLE", "unit": "VARCHAR", "source": "VARCHAR",
        "gpus_per_node": "BIGINT", "lease_months": "BIGINT", "discount_pct": "DOUBLE",
    },
    "workloads": {
        "campaign": "VARCHAR", "name": "VARCHAR", "size_bytes": "BIGINT", "operation": "VARCHAR",
        "collectives_per_step": "BIGINT", "compute_ms": "DOUBLE", "source": "VARCHAR",
    },
    # Logs that hold no run: telemetry and NCCL lines beside the tests; the fabric where one claims them.
    "places": {"campaign": "VARCHAR", "log_id": "VARCHAR", "path": "VARCHAR", "fabric": "VARCHAR"},
    "members": {
        "campaign": "VARCHAR", "run_id": "VARCHAR", "log_id": "VARCHAR", "path": "VARCHAR", "fabric": "VARCHAR",
        "fabric_family": "VARCHAR", "fabric_evidence": "VARCHAR", "declared": "VARCHAR",
        "declared_size_bytes": "BIGINT", "declared_ranks": "BIGINT", "declared_operation": "VARCHAR",
        "declared_program": "VARCHAR", "declared_latency_convention": "VARCHAR",
        "refused_because": "VARCHAR", "limit_gbyte_s": "DOUBLE", "limit_formula": "VARCHAR",
        "limit_source": "VARCHAR", "limit_flag": "VARCHAR",
        "limit_missing": "VARCHAR", "paired_as": "VARCHAR",
    },
}  # fmt: skip

# What a log brings; the rest is written from campaign files.
LOG_TABLES = ("logs", "runs", "samples", "readings", "notes")


# The analyst's world. {run}, {sample} and {run_in_results} are filled in from TABLES, so that a new column of a record
# appears in its view by itself.
_VIEWS = {
    "logs": """
        SELECT l.log_id, l.sha256, p.path, p.paths, l.size_bytes, l.formats, l.status, l.transport_verdict,
               l.transport_gdr, l.transport_fallback, l.transport_fallback_reason, l.transport_provider,
               l.transport_evidence, l.reader, m.campaigns
        FROM raw.logs l
        LEFT JOIN (SELECT log_id, min(path) AS path, count(*) AS paths
                   FROM raw.paths GROUP BY log_id) p USING (log_id)
        LEFT JOIN (SELECT log_id, list_sort(list(DISTINCT campaign)) AS campaigns
                   FROM raw.members GROUP BY log_id) m USING (log_id)""",
    "runs": """
        SELECT *, CASE
            WHEN status <> 'complete' THEN status
            WHEN rows = 0 THEN 'no rows'
            WHEN coalesce(out_of_bounds, 0) > 0 OR wrong_rows > 0 THEN 'wrong data'
            WHEN kind = 'collective' AND ranks IS NULL THEN 'number of ranks not known'
            WHEN kind = 'collective' AND coalesce(communicator_ranks, ranks) < 2
                 THEN 'one rank: no fabric was measured'
            WHEN refused_because IS NOT NULL THEN refused_because
            WHEN pair_run_id <> run_id THEN 'other end of ' || pair_run_id || ', counted there'
        END AS excluded_because
        FROM (
        SELECT m.campaign, m.fabric, m.fabric_family, m.fabric_evidence,
               {run},
               CASE WHEN starts_with(m.declared_program, r.program || ' ') THEN m.declared_program
                    ELSE coalesce(r.program, m.declared_program) END AS program,
               coalesce(r.ranks, m.declared_ranks) AS ranks,
               coalesce(r.operation, m.declared_operation) AS operation,
               coalesce(r.latency_convention, m.declared_latency_convention) AS latency_convention,
               m.declared_size_bytes,
               r.fabric AS fabric_printed, r.transport AS transport_printed,
               l.transport_verdict, l.transport_gdr, l.transport_fallback, m.path, l.sha256, m.declared,
               m.limit_gbyte_s, m.limit_formula, m.limit_source, m.limit_flag, m.limit_missing, m.paired_as,
               CASE WHEN r.pair_key IS NOT NULL THEN
                    first_value(r.run_id) OVER (
                        PARTITION BY m.campaign, coalesce(r.pair_key, r.run_id)
                        ORDER BY r.status = 'complete' DESC, r.rows DESC, r.side = 'client' DESC, r.run_id)
               END AS pair_run_id,
               m.refused_because
        FROM raw.runs r JOIN raw.members m USING (run_id) JOIN raw.logs l ON l.log_id = r.log_id)""",
    "samples": """
        SELECT s.*, m.campaigns FROM ({recomputed}) s
        LEFT JOIN (SELECT run_id, list_sort(list(DISTINCT campaign)) AS campaigns
                   FROM raw.members GROUP BY run_id) m USING (run_id)""",
    "readings": """
        SELECT p.campaign, p.fabric, d.* FROM raw.readings d
        LEFT JOIN (SELECT DISTINCT campaign, log_id, fabric FROM raw.members
                   UNION SELECT campaign, log_id, fabric FROM raw.places) p USING (log_id)""",
    "notes": "SELECT n.* FROM raw.notes n",
    "ingests": "SELECT * FROM raw.ingests ORDER BY ingested_at DESC",
    "fabrics": """
        SELECT f.*, c.title, c.customer, c.synthetic, coalesce(n.runs, 0) AS runs, coalesce(n.used, 0) AS runs_used
        FROM raw.fabrics f
        LEFT JOIN raw.campaigns c USING (campaign)
        LEFT JOIN (SELECT campaign, fabric, count(*) AS runs, count(*) FILTER (excluded_because IS NULL) AS used
                   FROM runs GROUP BY campaign, fabric) n USING (campaign, fabric)
        ORDER BY f.campaign, f.ordinal""",
    "results": """
        SELECT r.campaign, r.fabric, r.fabric_family, s.run_id, s.log_id, s.ordinal,
               r.operation, r.ranks, r.program, r.latency_convention,
               coalesce(s.size_bytes, r.declared_size_bytes) AS size_bytes,
               {sample},
               {run_in_results},
               r.transport_printed, r.transport_verdict, r.transport_gdr, r.transport_fallback, r.path, r.sha256,
               r.limit_gbyte_s, r.limit_formula, r.limit_source, r.limit_flag, r.limit_missing, r.paired_as,
               100 * coalesce(s.busbw_gbyte_s, s.bw_avg_gbit_s / 8) / r.limit_gbyte_s AS utilization_pct,
               {recomputed_columns}
        FROM ({recomputed}) s
        JOIN runs r USING (run_id)
        WHERE r.excluded_because IS NULL""",
}


def _views() -> dict[str, str]:
    filled = ("ranks", "operation", "program", "latency_convention")  # from [[facts]] where the log is silent
    run = [c for c in TABLES["runs"] if c not in ("pair_key", "fabric", "fabric_evidence", "transport", *filled)]
    sample = [c for c in TABLES["samples"] if c not in ("run_id", "log_id", "ordinal", "size_bytes")]
    renamed = {c: f"run_{c}" for c in (*sample, "line", "status")}
    columns = {
        "recomputed": recomputed.sql("raw.samples", "raw.runs"),
        "recomputed_columns": ", ".join(f"s.{name}" for name in recomputed.NAMES),
        "run": ", ".join(f"r.{c}" for c in run),
        "sample": ", ".join(f"s.{c}" for c in sample),
        "run_in_results": ", ".join(
            f"r.{c} AS {renamed.get(c, c)}"
            for c in run
            if c not in ("run_id", "log_id", "ordinal", "rows", "wrong_rows", "command")
        ),
    }
    return {name: sql.format_map(columns) for name, sql in _VIEWS.items()}


class ArrowStream:
    """A polars frame as an Arrow stream, which DuckDB reads without pyarrow."""

    def __init__(self, frame: "pl.DataFrame") -> None:
        self.frame = frame

    def __arrow_c_stream__(self, requested_schema: object = None) -> object:
        return self.frame.__arrow_c_stream__(requested_schema)


def default_path(here: Path | None = None) -> Path:
    """``RDMALAB_DB``, else the nearest ``data/rdmalab.duckdb`` upwards from here, else ``./data/rdmalab.duckdb``."""
    if named := os.environ.get("RDMALAB_DB"):
        return Path(named)
    here = here or Path.cwd()
    near = (folder / "data" / "rdmalab.duckdb" for folder in (here, *here.parents))
    return next((p for p in near if p.is_file()), here / "data" / "rdmalab.duckdb")


class Store:
    """A store on disk, by its path; opening it does nothing yet."""

    def __init__(self, path: str | Path | None = None) -> None:
        self.path = Path(path) if path else default_path()

    def connect(self) -> "duckdb.DuckDBPyConnection":
        """
        A read-only connection to the store as it is now; later ingests do not disturb it.

        Raises:
            StoreError: There is no store here, or it is foreign, newer or damaged.
        """
        if not self.path.exists():
            raise StoreError(f"{self.path}: no store here; make one with 'rdmalab ingest PATH...'")
        con = _read_only(self.path)
        _check(con, self.path)
        return con

    @contextlib.contextmanager
    def write(self) -> Iterator["Writer"]:
        """
        A transaction on a copy of the store, published when the block ends without an error.

        Raises:
            StoreError: Another process keeps the store locked, it is foreign, newer or damaged, or the disk is full.
        """
        import duckdb

        path = self.path.resolve()
        with _locked(path):
            for stale in path.parent.glob(f".{glob.escape(path.name)}.*.new*"):
                stale.unlink(missing_ok=True)
            copy = path.with_name(f".{path.name}.{os.getpid()}.new")
            try:
                if path.exists():
                    self.connect().close()  # refuses foreign and damaged files before they are copied
                    shutil.copyfile(path, copy)
                    copy.chmod(0o644)
                with contextlib.closing(_read_write(copy)) as con:
                    con.execute("BEGIN")
                    _migrate(con)
                    yield Writer(con)
                    con.execute("COMMIT")
                    con.execute("CHECKPOINT")
                _publish(copy, path)
            except (duckdb.IOException, OSError) as error:  # a full disk, a damaged block
                raise StoreError(f"{path}: not written, it is as it was ({_first_sentence(error)})") from None
            finally:
                copy.unlink(missing_ok=True)
                copy.with_name(copy.name + ".wal").unlink(missing_ok=True)


class Writer:
    """What an ingest may do inside the transaction."""

    def __init__(self, con: "duckdb.DuckDBPyConnection") -> None:
        self._con = con

    def run(self, sql: str, params: dict[str, Any] | None = None) -> None:
        """Executes one statement."""
        self._con.execute(sql, params or {}).fetchall()

    def frame(self, sql: str, params: dict[str, Any] | None = None) -> "pl.DataFrame":
        """The result of a query as a frame."""
        return _frame(self._con, sql, params)

    def insert(self, table: str, rows: list[dict[str, Any]]) -> None:
        """Appends rows to a table of the schema ``raw``; columns that a row lacks are null."""
        if rows:
            self.append(table, frame_of(table, rows))

    def insert_rows(self, table: str, names: Sequence[str], rows: Sequence[tuple[Any, ...]]) -> None:
        """The same for rows as tuples of the named columns."""
        if rows:
            self.append(table, frame_of_columns(table, dict(zip(names, zip(*rows, strict=True), strict=True))))

    def append(self, table: str, frame: "pl.DataFrame") -> None:
        """Appends a frame to a table of the schema ``raw`` by column name."""
        self._con.register("incoming", ArrowStream(frame))
        self._con.execute(f"INSERT INTO raw.{table} BY NAME SELECT * FROM incoming").fetchall()
        self._con.unregister("incoming")

    def append_parts(self, table: str, files: Sequence[str]) -> None:
        """Appends all rows of Parquet parts; a column that none of them has is null."""
        if files:
            self._con.execute(
                f"INSERT INTO raw.{table} BY NAME SELECT * FROM read_parquet($files, union_by_name = true)",
                {"files": list(files)},
            ).fetchall()

    def append_logs(self, table: str, files: Sequence[str], log_ids: set[str]) -> None:
        """Appends the rows of Parquet parts that belong to *log_ids*, each log once where several parts hold it."""
        if files:
            self._con.execute(
                f"""INSERT INTO raw.{table} BY NAME
                    SELECT * EXCLUDE (filename, first_part) FROM (
                        SELECT *, min(filename) OVER (PARTITION BY log_id) AS first_part
                        FROM read_parquet($files, union_by_name = true, filename = true)
                        WHERE log_id IN (SELECT unnest($ids)))
                    WHERE filename = first_part""",
                {"files": list(files), "ids": sorted(log_ids)},
            ).fetchall()


def frame_of(table: str, rows: list[dict[str, Any]]) -> "pl.DataFrame":
    """Rows of a table as a frame; see :func:`frame_of_columns`."""
    return frame_of_columns(table, {name: [r.get(name) for r in rows] for name in TABLES[table]})


def frame_of_columns(table: str, columns: Mapping[str, Sequence[Any]]) -> "pl.DataFrame":
    """
    Columns of a table as a frame, each with the table's type.

    Columns without any value are left out, the store fills them with nulls; ids stay, also when there is no row.
    """
    import polars as pl

    kinds: dict[str, Any] = {
        "VARCHAR": pl.String, "BIGINT": pl.Int64, "DOUBLE": pl.Float64, "BOOLEAN": pl.Boolean,
        "VARCHAR[]": pl.List(pl.String), "TIMESTAMPTZ": pl.Datetime("us", "UTC"), "DATE": pl.Date,
    }  # fmt: skip
    return pl.DataFrame(
        {
            name: pl.Series(name, columns.get(name, ()), kinds[kind])
            for name, kind in TABLES[table].items()
            if name == "log_id" or not _is_empty(columns.get(name, ()))
        }
    )


def _is_empty(column: Sequence[Any]) -> bool:
    return not column or (column[0] is None and column.count(None) == len(column))


def query(con: "duckdb.DuckDBPyConnection", sql: str, params: dict[str, Any] | None = None) -> "pl.DataFrame":
    """
    Runs a query of the user.

    Raises:
        UsageError: DuckDB refuses it, or two columns have one name; the message says why in their words.
    """
    import duckdb
    import polars as pl

    try:
        return _frame(con, sql, params)
    except (duckdb.Error, pl.exceptions.PolarsError) as error:
        raise UsageError(f"the query was refused: {str(error).strip()}") from None


def _frame(con: "duckdb.DuckDBPyConnection", sql: str, params: dict[str, Any] | None) -> "pl.DataFrame":
    import polars as pl

    relation = con.sql(sql, params=params) if params else con.sql(sql)
    if relation is None:
        return pl.DataFrame()
    if spans := [name for name, kind in zip(relation.columns, relation.types, strict=True) if kind == "INTERVAL"]:
        raise UsageError(
            f"the column {spans[0]} is a span of time, which has no unit; write epoch(...) for its seconds"
        )
    return pl.DataFrame(relation)


def _read_only(path: Path) -> "duckdb.DuckDBPyConnection":
    """
    The file as it is now, attached to a connection of its own.

    duckdb.connect(path) would share one open file with every other connection of this process, and so would go on
    showing the snapshot of the oldest of them after an ingest.
    """
    import duckdb

    con = duckdb.connect()
    try:
        con.execute("ATTACH $path AS store (READ_ONLY)", {"path": str(path)})
    except duckdb.Error as error:
        con.close()
        raise StoreError(f"{path}: not a store that can be opened ({_first_sentence(error)})") from None
    con.execute("USE store")
    return _set_up(con)


def _read_write(path: Path) -> "duckdb.DuckDBPyConnection":
    import duckdb

    # Files stay readable for DuckDB 1.5. A writer of a 2.x file format would lock colleagues out.
    return _set_up(duckdb.connect(str(path), config={"storage_compatibility_version": "v1.5.0"}))


def _set_up(con: "duckdb.DuckDBPyConnection") -> "duckdb.DuckDBPyConnection":
    import duckdb

    con.execute("SET TimeZone = 'UTC'")
    with contextlib.suppress(duckdb.Error):  # refused in a kernel without ipywidgets, where there is no bar either
        con.execute("SET enable_progress_bar = false")
    return con


def _check(con: "duckdb.DuckDBPyConnection", path: Path) -> None:
    """Refuses, and closes, what is no store of this version or an older one."""
    import duckdb

    complaint = ""
    try:
        meta = dict(con.execute("SELECT name, content FROM raw.meta").fetchall())
        version = int(meta["schema_version"]) if meta["application"] == APPLICATION else 0
        if version > SCHEMA_VERSION:
            complaint = (
                f"written by a newer rdmalab (schema {version}, this one knows {SCHEMA_VERSION}); update rdmalab"
            )
    except (duckdb.CatalogException, duckdb.BinderException, KeyError, ValueError):  # other tables, other rows in them
        version = 0
    except duckdb.Error as error:
        version, complaint = 0, f"the store is damaged ({_first_sentence(error)})"
    if complaint or not version:
        con.close()
        complaint = complaint or "a DuckDB file, but no rdmalab store; name another file with --db"
        raise StoreError(f"{path}: {complaint}")


def _migrate(con: "duckdb.DuckDBPyConnection") -> None:
    """Makes the schema what TABLES says: new tables, new columns, views anew."""
    con.execute("CREATE SCHEMA IF NOT EXISTS raw")
    for table, columns in TABLES.items():
        con.execute(f"CREATE TABLE IF NOT EXISTS raw.{table} ({', '.join(f'{c} {t}' for c, t in columns.items())})")
        for column, kind in columns.items():
            con.execute(f"ALTER TABLE raw.{table} ADD COLUMN IF NOT EXISTS {column} {kind}")
    for name, sql in _views().items():
        con.execute(f"CREATE OR REPLACE VIEW {name} AS {sql}")
    con.execute("DELETE FROM raw.meta")
    con.execute(
        "INSERT INTO raw.meta VALUES ('application', $a), ('schema_version', $v)",
        {"a": APPLICATION, "v": str(SCHEMA_VERSION)},
    )


def _publish(copy: Path, path: Path) -> None:
    with copy.open("rb") as stream:
        os.fsync(stream.fileno())
    copy.chmod(0o444)  # an analyst who writes into it would lose the work at the next ingest
    previous = path.with_name(path.name + ".prev")
    if path.exists():
        previous.unlink(missing_ok=True)
        with contextlib.suppress(
            OSError
        ):  # no hard links here: then without the copy that a mistake could be undone by
            os.link(path, previous)
    copy.replace(path)


@contextlib.contextmanager
def _locked(path: Path) -> Iterator[None]:
    """Waits for other writers of the same store, at most LOCK_WAIT_S seconds."""
    try:
        path.parent.mkdir(parents=True, exist_ok=True)
        stream = path.with_name(f".{path.name}.lock").open("a+")
    except OSError as error:
        raise StoreError(f"{path}: cannot be written here ({(error.strerror or str(error)).lower()})") from None
    with stream:
        deadline = time.monotonic() + LOCK_WAIT_S
        while not _try_lock(stream):
            if time.monotonic() > deadline:
                raise StoreError(f"{path}: another ingest is writing ({_holder(stream)}); try again when it has ended")
            time.sleep(0.1)
        stream.truncate(0)
        stream.write(json.dumps({"pid": os.getpid(), "host": socket.gethostname(), "since": time.ctime()}))
        stream.flush()
        yield


def _try_lock(stream: TextIO) -> bool:
    try:
        fcntl.flock(stream, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except BlockingIOError:
        return False
    return True


def _holder(stream: TextIO) -> str:
    """Who wrote the lock file."""
    stream.seek(0)
    with contextlib.suppress(ValueError, KeyError):  # it is being written at this moment
        return "process {pid} on {host} since {since}".format_map(json.loads(stream.read()))
    return "process not known"


def _first_sentence(error: Exception) -> str:
    return str(error).strip().splitlines()[0]
