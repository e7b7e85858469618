"""The same store, whoever reads the logs: this process, others, other machines, or a job array."""

import os
import signal
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest
from click.testing import CliRunner

from rdmalab import ingest as ingesting
from rdmalab.cli import main
from rdmalab.errors import MissingProgram, UsageError
from rdmalab.executors import executor_of
from rdmalab.ingest import ingest
from rdmalab.shards import Shard, commit_shards, read_shard
from rdmalab.store import LOG_TABLES, Store
from tests.conftest import write

ROOT = Path(__file__).parents[1]


@pytest.fixture(scope="module")
def logs(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Two hundred logs of all kinds, some of them twice, some unreadable."""
    root = tmp_path_factory.mktemp("logs")
    examples = sorted((ROOT / "data" / "examples" / "synthetic").rglob("*.log"))[:60]
    for number, path in enumerate(examples * 3):
        content = path.read_bytes()
        write(root / f"{number % 7}" / f"{number:03d}.log", content if number < 90 else content + b"# %d\n" % number)
    write(root / "broken.log.gz", b"no gzip")
    write(root / "text.log", b"nothing of interest\n")
    os.mkfifo(root / "pipe")
    return root


def tables(store: Store) -> dict[str, list[tuple[object, ...]]]:
    """All that an ingest writes, in an order of its own."""
    con = store.connect()
    names = (*LOG_TABLES, "files", "paths", "members")
    found = {name: con.execute(f"SELECT * FROM raw.{name} ORDER BY ALL").fetchall() for name in names}
    con.close()
    return found


@pytest.fixture(scope="module")
def serial(logs: Path, tmp_path_factory: pytest.TempPathFactory) -> dict[str, list[tuple[object, ...]]]:
    """What this process alone stores."""
    store = Store(tmp_path_factory.mktemp("serial") / "lab.duckdb")
    ingest([logs], store)
    return tables(store)


def test_two_processes_store_the_same(logs: Path, serial: object, tmp_path: Path) -> None:
    """Workers write parts, one process commits them."""
    store = Store(tmp_path / "lab.duckdb")
    with executor_of("process:2") as executor:
        ingest([logs], store, executor=executor)
    assert tables(store) == serial


def test_four_shards_store_the_same(logs: Path, serial: object, tmp_path: Path) -> None:
    """Each job reads its share; the store has all of it, or nothing before the commit."""
    store, parts = Store(tmp_path / "lab.duckdb"), tmp_path / "parts"
    counts = [read_shard([logs], Shard(number, 4), parts, store) for number in (1, 2, 3, 4)]
    assert min(counts) > 20
    assert not store.path.exists()
    receipt = commit_shards(parts, store)
    assert tables(store) == serial
    assert (receipt.files, sorted(s["reason"] for s in receipt.not_read)) == (
        182,
        ["not a gzipped file (b'no')", "not a plain file"],
    )
    again = commit_shards(parts, store)
    assert (again.new_logs, again.same_content) == (0, receipt.read)
    assert tables(store) == serial


def test_a_missing_shard_is_named(logs: Path, tmp_path: Path) -> None:
    """Nothing is stored before every job is done."""
    store, parts = Store(tmp_path / "lab.duckdb"), tmp_path / "parts"
    for number in (1, 3):
        read_shard([logs], Shard(number, 4), parts, store)
    with pytest.raises(UsageError, match=r"not read yet: shard 2/4, 4/4"):
        commit_shards(parts, store)
    read_shard([logs], Shard(1, 3), parts, store)
    with pytest.raises(UsageError, match=r"shards of 3 and of 4 there"):
        commit_shards(parts, store)
    with pytest.raises(UsageError, match="no shard there"):
        commit_shards(tmp_path, store)
    assert not store.path.exists()


def test_shards_of_other_versions_and_torn_receipts_are_refused(tmp_path: Path) -> None:
    """What was read by other rules is read again."""
    store, parts = Store(tmp_path / "lab.duckdb"), tmp_path / "parts"
    receipt = write(parts / "shard-1-of-1.json", b'{"reader": "0.0.1"}')
    with pytest.raises(UsageError, match=r"read by rdmalab 0\.0\.1"):
        commit_shards(parts, store)
    receipt.write_bytes(b'{"reader": ')
    with pytest.raises(UsageError, match="read this shard again"):
        commit_shards(parts, store)


def test_shards_share_all_files() -> None:
    """Every file belongs to exactly one share, whatever the others are."""
    names = [f"/logs/{i}.log" for i in range(100)]
    shards = [Shard(number, 7) for number in range(1, 8)]
    assert all(sum(shard.has(name) for shard in shards) == 1 for name in names)
    assert Shard.of("2/8") == Shard(2, 8)
    for wrong in ("0/4", "5/4", "1", "a/b", "1/0"):
        with pytest.raises(UsageError, match="is no shard"):
            Shard.of(wrong)


def test_a_job_array_on_the_command_line(logs: Path, serial: object, tmp_path: Path) -> None:
    """The pair of commands that the README shows."""
    db, parts, run = str(tmp_path / "lab.duckdb"), str(tmp_path / "parts"), CliRunner().invoke
    for shard in ("1/2", "2/2"):
        done = run(main, ["ingest", str(logs), "--shard", shard, "--parts", parts, "--executor", "serial", "--db", db])
        assert done.exit_code == 0, done.output
        assert f"rdmalab ingest --commit {parts}" in done.output
    done = run(main, ["ingest", "--commit", parts, "--db", db])
    assert done.exit_code == 0, done.output
    assert tables(Store(db)) == serial


@pytest.mark.parametrize(
    ("arguments", "said"),
    [
        ([], "ingest wants files"),
        (["-"], "standard input cannot be found again"),
        (["x", "--commit", "d"], "--commit DIR stands alone"),
        (["x", "--shard", "1/2"], "go together"),
        (["x", "--executor", "threads"], "'threads' is no executor"),
        (["x", "--executor", "process:0"], "'process:0' is no executor"),
    ],
)
def test_wrong_usage_is_one_sentence(arguments: list[str], said: str) -> None:
    """Exit code 2 and what to write instead."""
    done = CliRunner().invoke(main, ["ingest", *arguments])
    assert (done.exit_code, said in done.output, done.output.count("\n")) == (2, True, 1)


def test_dask_is_asked_for_by_name(monkeypatch: pytest.MonkeyPatch) -> None:
    """Without the package the command that installs it is printed."""
    monkeypatch.setitem(sys.modules, "distributed", None)
    with pytest.raises(MissingProgram, match=r"rdmalab\[cluster\]"), executor_of("dask:tcp://127.0.0.1:1"):
        pass


@pytest.fixture
def address() -> Iterator[str]:
    """A dask cluster of two worker processes on this machine."""
    distributed = pytest.importorskip("distributed")
    with distributed.LocalCluster(
        n_workers=2, threads_per_worker=1, dashboard_address=None, silence_logs=50
    ) as cluster:
        yield cluster.scheduler_address


@pytest.mark.filterwarnings("ignore")  # those of dask are not ours to mend
def test_a_cluster_stores_the_same_though_a_worker_dies(
    logs: Path, serial: object, tmp_path: Path, address: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A task whose worker was killed is done again by another one, and writes the same parts."""
    from distributed import Client

    monkeypatch.setattr(ingesting, "_FILES_A_TASK", 20)
    with Client(address, set_as_default=False) as client:
        workers = list(client.run(os.getpid).values())
    store = Store(tmp_path / "lab.duckdb")

    def kill_one(done: int, total: int) -> None:
        if workers and done < total:
            os.kill(workers.pop(), signal.SIGKILL)
            workers.clear()

    with executor_of(f"dask:{address}") as executor:
        ingest([logs], store, executor=executor, staging=tmp_path / "staging", progress=kill_one)
    assert not workers
    assert tables(store) == serial
    assert list((tmp_path / "staging").iterdir()) == []


def test_no_scheduler_is_said() -> None:
    """An address where nobody answers is named."""
    pytest.importorskip("distributed")
    with pytest.raises(UsageError, match="no dask scheduler answers at nonsense"), executor_of("dask:nonsense://x"):
        pass
