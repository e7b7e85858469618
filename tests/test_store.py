"""The store: refuses what it must not touch, never shows half an ingest, outlives a killed writer."""

import errno
import fcntl
import json
import os
import shutil
import signal
import subprocess
import sys
import time
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import duckdb
import pytest

from rdmalab import store as stores
from rdmalab.errors import StoreError, UsageError
from rdmalab.lab import Lab
from rdmalab.store import TABLES, Store, default_path
from tests.conftest import Bench, nccl_log, write

VIEWS = ("logs", "runs", "samples", "readings", "notes", "fabrics", "results")


@pytest.fixture
def filled(bench: Bench) -> Bench:
    """A store with one log of one run of four rows."""
    bench.log("1.log", nccl_log(pid=1))
    bench.ingest()
    return bench


# Where it is


def test_the_default_is_the_nearest_upwards(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """``RDMALAB_DB``, else the nearest data/rdmalab.duckdb upwards, else one here."""
    monkeypatch.delenv("RDMALAB_DB", raising=False)
    here = tmp_path / "a" / "b"
    here.mkdir(parents=True)
    monkeypatch.chdir(here)
    assert default_path() == here / "data" / "rdmalab.duckdb"
    far = tmp_path / "data" / "rdmalab.duckdb"
    far.parent.mkdir()
    far.touch()
    assert default_path() == far
    near = tmp_path / "a" / "data" / "rdmalab.duckdb"
    near.mkdir(parents=True)  # a folder of that name is no store
    assert default_path() == far
    near.rmdir()
    near.touch()
    assert default_path() == near == Store().path
    monkeypatch.setenv("RDMALAB_DB", "elsewhere.duckdb")
    assert default_path() == Path("elsewhere.duckdb")
    assert Store("named.duckdb").path == Path("named.duckdb")


# What it refuses


def foreign(path: Path) -> None:
    with duckdb.connect(str(path)) as con:
        con.execute("CREATE TABLE accounts AS SELECT 1 AS balance")


def foreign_with_meta(path: Path) -> None:
    with duckdb.connect(str(path)) as con:
        con.execute("CREATE SCHEMA raw; CREATE TABLE raw.meta AS SELECT 'application' AS name, 'other' AS content")


def newer(path: Path) -> None:
    with Store(path).write() as writer:
        writer.run("UPDATE raw.meta SET content = '999' WHERE name = 'schema_version'")


def without_version(path: Path) -> None:
    with Store(path).write() as writer:
        writer.run("DELETE FROM raw.meta WHERE name = 'schema_version'")


REFUSED = {
    "foreign": (foreign, "a DuckDB file, but no rdmalab store; name another file with --db"),
    "foreign-with-meta": (foreign_with_meta, "a DuckDB file, but no rdmalab store; name another file with --db"),
    "without-version": (without_version, "a DuckDB file, but no rdmalab store; name another file with --db"),
    "newer": (newer, "written by a newer rdmalab (schema 999, this one knows 1); update rdmalab"),
    "damaged": (lambda path: path.write_bytes(bytes(range(256)) * 64), "not a store that can be opened ("),
    "empty": (lambda path: path.touch(), "not a store that can be opened ("),
    "text": (lambda path: path.write_text("a,b\n1,2\n"), "not a store that can be opened ("),
}


@pytest.mark.parametrize("case", list(REFUSED))
def test_a_file_that_is_no_store_is_refused_and_left_alone(bench: Bench, case: str) -> None:
    """One sentence names the file and the reason; neither reading nor an ingest changes a byte of it."""
    make, reason = REFUSED[case]
    path = bench.store.path
    path.parent.mkdir()
    make(path)
    before = path.read_bytes()
    bench.log("1.log", nccl_log())
    for attempt in (bench.store.connect, bench.ingest, lambda: Lab(path)):
        with pytest.raises(StoreError) as caught:
            attempt()
        assert str(caught.value).startswith(f"{path}: {reason}")
        assert "\n" not in str(caught.value)
    assert path.read_bytes() == before
    assert [p.name for p in path.parent.iterdir() if p.suffix == ".new"] == []


def test_a_damaged_block_is_said(filled: Bench) -> None:
    """A store whose content was overwritten is damaged, not foreign."""
    path = filled.store.path
    path.chmod(0o644)
    with path.open("r+b") as stream:
        stream.seek(3 * 4096)  # behind the headers
        stream.write(b"\xa5" * (path.stat().st_size - 3 * 4096))
    with pytest.raises(StoreError, match=r"not a store that can be opened|the store is damaged"):
        filled.store.connect()


def test_a_missing_store_names_the_way_out(tmp_path: Path) -> None:
    """Without a store the sentence says how to make one, and nothing is created."""
    path = tmp_path / "none.duckdb"
    with pytest.raises(StoreError) as caught:
        Lab(path)
    assert str(caught.value) == f"{path}: no store here; make one with 'rdmalab ingest PATH...'"
    assert list(tmp_path.iterdir()) == []


def test_a_place_that_cannot_be_written_is_said(tmp_path: Path) -> None:
    """A store below a plain file is refused in one sentence."""
    (tmp_path / "file").touch()
    path = tmp_path / "file" / "lab.duckdb"
    with pytest.raises(StoreError) as caught, Store(path).write():
        pass
    assert str(caught.value) == f"{path}: cannot be written here (file exists)"


# Snapshots


def test_a_reader_keeps_its_snapshot_until_it_asks_for_a_new_one(filled: Bench) -> None:
    """An ingest neither disturbs an open connection nor is it seen there; refresh shows it, as does a second lab."""
    count = "SELECT count(*) AS n FROM logs"
    with Lab(filled.store.path) as first:
        assert first.sql(count).item() == 1
        filled.log("2.log", nccl_log(pid=2))
        filled.ingest()
        assert first.sql(count).item() == 1
        with Lab(filled.store.path) as second:
            assert second.sql(count).item() == 2
            filled.log("3.log", nccl_log(pid=3))
            filled.ingest()
            assert (first.sql(count).item(), second.sql(count).item()) == (1, 2)
            assert first.refresh().sql(count).item() == 3
            assert second.sql(count).item() == 2


def test_an_error_inside_a_write_leaves_the_store_as_it_was(filled: Bench) -> None:
    """A transaction that raises changes nothing and leaves no copy behind."""
    before = filled.store.path.read_bytes()

    def fail() -> None:
        with filled.store.write() as writer:
            writer.run("DELETE FROM raw.logs")
            raise ZeroDivisionError

    with pytest.raises(ZeroDivisionError):
        fail()
    assert filled.store.path.read_bytes() == before
    assert sorted(p.name for p in filled.store.path.parent.iterdir()) == [".lab.duckdb.lock", "lab.duckdb"]


def test_a_full_disk_is_one_sentence(filled: Bench, monkeypatch: pytest.MonkeyPatch) -> None:
    """Where the copy does not fit, the old store stays and the sentence says why."""
    before = filled.store.path.read_bytes()

    def full(*_: object) -> None:
        raise OSError(errno.ENOSPC, "No space left on device")

    monkeypatch.setattr(shutil, "copyfile", full)
    with pytest.raises(StoreError) as caught:
        filled.ingest()
    assert str(caught.value) == (
        f"{filled.store.path}: not written, it is as it was ([Errno 28] No space left on device)"
    )
    assert filled.store.path.read_bytes() == before


def test_the_previous_store_is_kept_beside(filled: Bench) -> None:
    """After a second ingest the store before it still lies under .prev."""
    before = filled.store.path.read_bytes()
    filled.log("2.log", nccl_log(pid=2))
    filled.ingest()
    previous = filled.store.path.with_name("lab.duckdb.prev")
    assert previous.read_bytes() == before != filled.store.path.read_bytes()


def test_the_store_is_read_only_on_disk(filled: Bench) -> None:
    """Mode 0444: nobody writes into a file that the next ingest replaces; the ingest itself still can."""
    assert filled.store.path.stat().st_mode & 0o777 == 0o444
    filled.log("2.log", nccl_log(pid=2))
    filled.ingest()
    assert filled.store.path.stat().st_mode & 0o777 == 0o444


def test_a_link_to_a_store_stays_a_link(filled: Bench, tmp_path: Path) -> None:
    """A store behind a symbolic link is replaced where it lies."""
    link = tmp_path / "link.duckdb"
    link.symlink_to(filled.store.path)
    with Store(link).write() as writer:
        writer.run("DELETE FROM raw.logs")
    assert link.is_symlink()
    assert filled.one("SELECT count(*) FROM logs") == 0


KILLED = """
import sys, time
from rdmalab.store import Store
with Store(sys.argv[1]).write() as writer:
    writer.run("DELETE FROM raw.logs")
    print("writing", flush=True)
    time.sleep(60)
"""


def test_a_killed_writer_leaves_the_old_store(filled: Bench) -> None:
    """After SIGKILL in the middle the old store is whole; the next ingest needs no help and removes the stale copy."""
    path = filled.store.path
    before = path.read_bytes()
    with subprocess.Popen([sys.executable, "-c", KILLED, str(path)], stdout=subprocess.PIPE, text=True) as writer:
        assert writer.stdout is not None
        assert writer.stdout.readline() == "writing\n"
        writer.send_signal(signal.SIGKILL)
    assert path.read_bytes() == before
    stale = [p.name for p in path.parent.iterdir() if f".{writer.pid}.new" in p.name]
    assert f".lab.duckdb.{writer.pid}.new" in stale
    filled.log("2.log", nccl_log(pid=2))
    filled.ingest()
    assert filled.one("SELECT count(*) FROM logs") == 2
    assert sorted(p.name for p in path.parent.iterdir()) == [".lab.duckdb.lock", "lab.duckdb", "lab.duckdb.prev"]


# The lock


def test_a_second_writer_waits_and_then_says_who_writes(filled: Bench, monkeypatch: pytest.MonkeyPatch) -> None:
    """The sentence names process, host and time of the writer; readers are not kept waiting."""
    monkeypatch.setattr(stores, "LOCK_WAIT_S", 0.3)
    lock = filled.store.path.with_name(".lab.duckdb.lock")
    with lock.open("a+") as holder:
        fcntl.flock(holder, fcntl.LOCK_EX)
        holder.truncate(0)
        holder.write(json.dumps({"pid": 4711, "host": "login01", "since": "Mon Nov 30 21:38:00 2026"}))
        holder.flush()
        begun = time.monotonic()
        with pytest.raises(StoreError) as caught:
            filled.ingest()
        assert time.monotonic() - begun >= 0.3
        assert str(caught.value) == (
            f"{filled.store.path}: another ingest is writing (process 4711 on login01 since Mon Nov 30 21:38:00 2026); "
            "try again when it has ended"
        )
        assert filled.one("SELECT count(*) FROM logs") == 1
        holder.truncate(0)  # a writer that has not signed yet
        with pytest.raises(StoreError, match="another ingest is writing"):
            filled.ingest()
    filled.ingest()


def test_two_ingests_at_once_are_both_stored(filled: Bench, tmp_path: Path) -> None:
    """Writers queue: eight ingests that start together leave the logs of all eight."""
    for i in range(8):
        write(tmp_path / "more" / str(i) / "1.log", nccl_log(pid=100 + i))
    with ThreadPoolExecutor(8) as pool:
        receipts = list(pool.map(filled.ingest, (tmp_path / "more").iterdir()))
    assert [r.new_logs for r in receipts] == [1] * 8
    assert filled.rows("SELECT count(*), count(DISTINCT path) FROM runs") == [(9, 9)]


def test_the_lock_file_names_its_writer(filled: Bench) -> None:
    """While it writes, a writer has signed the lock file."""
    with filled.store.write():
        signed = json.loads(filled.store.path.with_name(".lab.duckdb.lock").read_text())
    assert signed["pid"] == os.getpid()
    assert set(signed) == {"pid", "host", "since"}


# Schema


@pytest.mark.parametrize("view", VIEWS)
def test_every_column_of_every_view_needs_no_quotes(filled: Bench, view: str) -> None:
    """No column is a keyword of DuckDB, and none appears twice."""
    with Lab(filled.store.path) as lab:
        columns = lab.sql(f"SELECT * FROM {view} LIMIT 0").columns
        assert lab.sql(f"SELECT {', '.join(columns)} FROM {view}").columns == columns
        for column in columns:
            lab.sql(f"SELECT v.{column}, max({column}) AS most FROM {view} v GROUP BY v.{column}")


def test_the_views_are_the_contract(filled: Bench) -> None:
    """The names that an analyst relies on are there."""
    with Lab(filled.store.path) as lab:
        views = {v: set(lab.sql(f"SELECT * FROM {v} LIMIT 0").columns) for v in VIEWS}
    assert {"log_id", "sha256", "status", "formats"} <= views["logs"]
    assert {"campaign", "fabric", "fabric_family", "run_id", "excluded_because", "line", "status"} <= views["runs"]
    assert {"transport_printed", "transport_verdict", "transport_gdr", "transport_fallback"} <= views["runs"]
    assert {"read_at", "host", "device", "metric", "value", "unit"} <= views["readings"]
    assert {"utilization_pct", "limit_gbyte_s", "limit_missing", "run_line", "run_status"} <= views["results"]


def test_an_older_store_gets_its_columns_at_the_next_write(filled: Bench) -> None:
    """A column and a table that an older version did not know are added; what was stored stays."""
    with filled.store.write() as writer:
        for view in ("results", "fabrics", "runs", "samples"):
            writer.run(f"DROP VIEW {view}")
        writer.run("ALTER TABLE raw.samples DROP COLUMN lat_p999_us")
        writer.run("DROP TABLE raw.same")
        writer.run("UPDATE raw.meta SET content = '1' WHERE name = 'schema_version'")
    with Lab(filled.store.path) as lab, pytest.raises(UsageError):
        lab.sql("SELECT lat_p999_us FROM raw.samples")
    filled.log("2.log", nccl_log(pid=2))
    filled.ingest()
    assert filled.rows("SELECT count(*), count(lat_p999_us) FROM results") == [(8, 0)]
    assert filled.one("SELECT count(*) FROM raw.same") == 0
    with Lab(filled.store.path) as lab:
        assert set(lab.sql("FROM raw.samples LIMIT 0").columns) == set(TABLES["samples"])


def test_duckdb_1_5_can_read_the_store(filled: Bench) -> None:
    """The storage version is v1.5.0, also after a newer DuckDB has written."""
    for _ in range(2):
        with duckdb.connect() as con:
            con.execute("ATTACH $path AS store (READ_ONLY)", {"path": str(filled.store.path)})
            tags = con.execute("SELECT tags FROM duckdb_databases() WHERE database_name = 'store'").fetchall()
        assert tags[0][0]["storage_version"].startswith("v1.5.0")
        filled.log("2.log", nccl_log(pid=2))
        filled.ingest()


# Questions


@pytest.mark.parametrize(
    "sql",
    [
        "SELECT nothing FROM nowhere",
        "SELECT path::INT FROM logs",
        "SELECT 1 AS a, 2 AS a",
        "SELECT INTERVAL 1 DAY AS age",
        "DELETE FROM raw.logs",
        "CREATE TABLE mine (i INT)",
    ],
)
def test_a_query_that_cannot_be_answered_is_one_error(filled: Bench, sql: str) -> None:
    """Whatever fails, at binding or in the middle, is a UsageError; the next query works."""
    with Lab(filled.store.path) as lab:
        with pytest.raises(UsageError):
            lab.sql(sql)
        assert lab.sql("SELECT count(*) FROM logs").item() == 1


def test_times_are_utc(filled: Bench, monkeypatch: pytest.MonkeyPatch) -> None:
    """The zone of the machine does not change an answer."""
    monkeypatch.setenv("TZ", "Asia/Shanghai")
    time.tzset()
    try:
        assert str(filled.one("SELECT TIMESTAMPTZ '2026-11-30 00:00:00'")) == "2026-11-30 00:00:00+00:00"
    finally:
        monkeypatch.undo()
        time.tzset()
