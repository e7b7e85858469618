"""Logs into the store: each content once, every file accounted for, the same rows however the work is split."""

import gzip
import hashlib
import os
import zipfile
from collections.abc import Iterator
from concurrent.futures import Executor
from contextlib import AbstractContextManager, nullcontext
from dataclasses import replace
from pathlib import Path

import pytest

from rdmalab import formats
from rdmalab import ingest as ingesting
from rdmalab.errors import UsageError
from rdmalab.formats import nccl_tests
from rdmalab.ingest import forget, ingest, worker_processes
from rdmalab.lab import Lab
from rdmalab.model import Parsed
from rdmalab.sources import Text
from rdmalab.store import LOG_TABLES, Store
from tests.conftest import ROCE, Bench, nccl_log, perftest_log, touch, write


def counts(bench: Bench) -> dict[str, object]:
    return {t: bench.one(f"SELECT count(*) FROM raw.{t}") for t in ("logs", "paths", "runs", "samples", "notes")}


# Once


def test_a_receipt_counts_what_is_stored(bench: Bench) -> None:
    """Every number of the receipt is that of a SQL count over the store."""
    bench.log("1.log", nccl_log(pid=1, info=ROCE))
    bench.log("2.log", nccl_log(pid=2, footer=""))
    bench.log("client.log", perftest_log("client"))
    bench.log("notes.txt", "nothing to see\n")
    receipt = bench.ingest()
    assert (receipt.files, receipt.read, receipt.new_logs, receipt.already_known, receipt.same_content) == (
        4,
        4,
        4,
        0,
        0,
    )
    assert (receipt.runs, receipt.samples, receipt.readings) == (3, 4 + 4 + 2, 0)
    assert receipt.by_status == {"complete": 2, "truncated": 1, "unrecognised": 1}
    for table in ("runs", "samples", "readings", "notes"):
        assert getattr(receipt, table) == bench.one(f"SELECT count(*) FROM {table}")
    assert receipt.by_status == dict(bench.rows("SELECT status, count(*) FROM logs GROUP BY status"))
    assert receipt.campaigns == dict(bench.rows("SELECT campaign, count(*) FROM runs GROUP BY campaign"))


def test_the_second_ingest_stores_nothing_and_says_so(bench: Bench) -> None:
    """Files of known size and age are not opened again."""
    bench.log("1.log", nccl_log(pid=1))
    bench.log("2.log", nccl_log(pid=2))
    bench.ingest()
    before = counts(bench)
    receipt = bench.ingest()
    assert receipt.lines(bench.store.path) == [
        "2 files: 0 logs read, 2 files already known, 0 logs of known content, 0 unrecognised, 0 failed, "
        "0 not readable",
        "new: 0 logs, 0 runs, 0 rows, 0 readings, 0 notes",
        "campaign default: 2 runs",
        f"store: {bench.store.path}",
    ]
    assert counts(bench) == before


def test_a_touched_file_adds_nothing(bench: Bench) -> None:
    """A new age alone makes a file read again, and its content is known."""
    touch_me = bench.log("1.log", nccl_log())
    bench.ingest()
    before = counts(bench)
    touch(touch_me)
    receipt = bench.ingest()
    assert (receipt.read, receipt.same_content, receipt.new_logs, receipt.runs) == (1, 1, 0, 0)
    assert counts(bench) == before
    assert bench.ingest().already_known == 1


def test_changed_content_replaces_the_log_of_its_path(bench: Bench) -> None:
    """A log that was read while it grew gives its place to the whole one; nothing of the old one stays."""
    path = bench.log("1.log", nccl_log(footer=""))
    bench.ingest()
    assert bench.rows("SELECT excluded_because, rows FROM runs") == [("truncated", 4)]
    path.write_text(nccl_log())
    receipt = bench.ingest()
    assert (receipt.new_logs, receipt.runs, receipt.samples) == (1, 1, 4)
    assert bench.rows("SELECT excluded_because, rows FROM runs") == [(None, 4)]
    assert counts(bench) == {"logs": 1, "paths": 1, "runs": 1, "samples": 4, "notes": 0}
    assert bench.one("SELECT count(*) FROM raw.members") == 1


def test_one_content_at_two_paths_is_one_log(bench: Bench) -> None:
    """A copy adds a path and nothing else, in the same ingest or in a later one."""
    bench.log("a/1.log", nccl_log())
    bench.log("b/1.log", nccl_log())
    receipt = bench.ingest()
    assert (receipt.read, receipt.new_logs, receipt.same_content, receipt.runs, receipt.samples) == (2, 1, 1, 1, 4)
    bench.log("c/1.log.gz", gzip.compress(nccl_log().encode()))
    bench.ingest()
    assert counts(bench) == {"logs": 1, "paths": 3, "runs": 1, "samples": 4, "notes": 0}
    assert bench.rows("SELECT path, paths FROM logs") == [(str(bench.logs / "a" / "1.log"), 3)]
    assert bench.one("SELECT count(*) FROM results") == 4


def test_a_copy_that_changes_leaves_the_other(bench: Bench) -> None:
    """A content stays as long as one path still has it."""
    bench.log("a.log", nccl_log(pid=1))
    path = bench.log("b.log", nccl_log(pid=1))
    bench.ingest()
    path.write_text(nccl_log(pid=2, nodes=3))
    bench.ingest()
    assert bench.rows("SELECT path, ranks FROM runs ORDER BY path") == [
        (str(bench.logs / "a.log"), 16),
        (str(bench.logs / "b.log"), 24),
    ]


def test_a_path_named_twice_is_one_file(bench: Bench) -> None:
    """A folder and a file in it, named together, do not read the file twice."""
    path = bench.log("1.log", nccl_log())
    receipt = bench.ingest(bench.logs, path, path)
    assert (receipt.files, receipt.read) == (1, 1)
    assert counts(bench)["paths"] == 1


def test_another_version_reads_anew(bench: Bench, monkeypatch: pytest.MonkeyPatch) -> None:
    """A newer reader replaces what an older one stored, even of a file that did not change."""
    bench.log("1.log", nccl_log())
    bench.ingest()
    monkeypatch.setattr("rdmalab.__version__", "99.0")
    receipt = bench.ingest()
    assert (receipt.already_known, receipt.read, receipt.new_logs) == (0, 1, 1)
    assert counts(bench) == {"logs": 1, "paths": 1, "runs": 1, "samples": 4, "notes": 0}
    assert bench.one("SELECT reader FROM logs") == "99.0"


# However the work is split


@pytest.fixture(scope="module")
def many(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A folder of 90 files of 73 contents, among them archives, one damaged."""
    root = tmp_path_factory.mktemp("many")
    for i in range(30):
        write(root / "a" / f"{i}.log", nccl_log(pid=i, info=ROCE if i % 3 else ""))
        write(root / "b" / f"{i}.log", perftest_log("client" if i % 2 else "server", qpn=i // 2))
    for i in range(17):
        write(root / "copies" / f"{i}.log", nccl_log(pid=i, info=ROCE if i % 3 else ""))
    for i in range(11):
        write(root / "text" / f"{i}.txt", f"file {i}\n")
    with zipfile.ZipFile(root / "c.zip", "w") as archive:
        archive.writestr("x.log", nccl_log(pid=500))
        archive.writestr("y.log", nccl_log(pid=501))
    write(root / "d.tar.gz", b"no archive")
    return root


def checksums(store: Store) -> dict[str, str]:
    """A hash of the sorted rows of every table of logs."""
    with Lab(store.path) as lab:
        return {
            table: hashlib.sha256(
                "\n".join(sorted(map(repr, lab.sql(f"FROM raw.{table}").rows()))).encode()
            ).hexdigest()
            for table in (*LOG_TABLES, "files", "paths", "members")
        }


@pytest.fixture(scope="module")
def expected(many: Path, tmp_path_factory: pytest.TempPathFactory) -> dict[str, str]:
    """The tables of one task in this process."""
    store = Store(tmp_path_factory.mktemp("serial") / "lab.duckdb")
    receipt = ingest([many], store)
    assert (receipt.files, receipt.read, receipt.new_logs) == (90, 90, 73)
    assert [s["path"] for s in receipt.not_read] == [str(many / "d.tar.gz")]
    return checksums(store)


def one_file_a_task() -> AbstractContextManager[Executor | None]:
    return nullcontext()


@pytest.mark.parametrize("split", [one_file_a_task, worker_processes])
def test_tables_do_not_depend_on_how_the_work_is_split(
    many: Path, expected: dict[str, str], tmp_path: Path, monkeypatch: pytest.MonkeyPatch,
    split: "type[AbstractContextManager[Executor | None]]",
) -> None:  # fmt: skip
    """One file a task, equal contents in tasks of their own, and worker processes give the tables of one task."""
    monkeypatch.setattr(ingesting, "_FILES_A_TASK", 1 if split is one_file_a_task else 500)
    done: list[tuple[int, int]] = []
    store = Store(tmp_path / "lab.duckdb")
    with split() as executor:
        ingest([many], store, executor=executor, progress=lambda n, total: done.append((n, total)))
    assert checksums(store) == expected
    assert done[-1] == (90, 90)
    assert [n for n, _ in done] == sorted(n for n, _ in done)


def test_few_files_start_no_workers(bench: Bench) -> None:
    """Below the threshold the executor is left alone."""
    bench.log("1.log", nccl_log())

    class Idle(Executor):
        def submit(self, *_: object, **__: object) -> None:  # type: ignore[override]
            raise AssertionError

    ingest([bench.logs], bench.store, executor=Idle())
    assert counts(bench)["logs"] == 1


# What cannot be read


def test_a_parser_that_raises_is_a_note(bench: Bench, monkeypatch: pytest.MonkeyPatch) -> None:
    """A defect in one format costs what it would have read in one log, and nothing of the others."""
    perftest = next(f for f in formats.known() if f.NAME == "perftest")
    parse = perftest.parse

    def stumble(text: Text) -> Parsed:
        if "0x0666" in "".join(line for _, line in text.lines()):
            raise IndexError("list index out of range")
        return parse(text)

    monkeypatch.setattr(perftest, "parse", stumble)
    bench.log("1.log", perftest_log("client", qpn=0x666))
    bench.log("2.log", perftest_log("client", qpn=0x111))
    bench.log("3.log", nccl_log())
    receipt = bench.ingest()
    assert (receipt.read, receipt.runs) == (3, 2)
    assert bench.rows("SELECT path, code, text FROM notes JOIN logs USING (log_id)") == [
        (str(bench.logs / "1.log"), "parser_error", "perftest: IndexError: list index out of range")
    ]


def test_a_number_that_no_column_holds_is_a_note(bench: Bench, monkeypatch: pytest.MonkeyPatch) -> None:
    """A number beyond 64 bits that a format lets pass costs its own log, not the ingest."""
    real = nccl_tests.parse

    def careless(text: Text) -> Parsed:
        parsed = real(text)
        if not text.path.endswith("1.log"):
            return parsed
        samples = (parsed.runs[0].samples[0]._replace(size_bytes=10**22),)
        return replace(parsed, runs=(replace(parsed.runs[0], samples=samples),))

    monkeypatch.setattr(nccl_tests, "parse", careless)
    bench.log("1.log", nccl_log(pid=1))
    bench.log("2.log", nccl_log(pid=2))
    receipt = bench.ingest()
    assert (receipt.new_logs, receipt.runs) == (2, 1)
    ((path, code, text),) = bench.rows("SELECT path, code, text FROM notes JOIN logs USING (log_id)")
    assert (path, code) == (str(bench.logs / "1.log"), "parser_error")
    assert str(text).startswith("not stored: TypeError: ")


def test_what_no_format_claims_is_listed(bench: Bench) -> None:
    """Unrecognised files stand in the receipt and in the store, by path."""
    bench.log("readme.txt", "nothing to see\n")
    bench.log("empty.log", "")
    receipt = bench.ingest()
    assert receipt.unrecognised == [str(bench.logs / "empty.log"), str(bench.logs / "readme.txt")]
    assert f"unrecognised: {bench.logs}/readme.txt" in receipt.lines(bench.store.path)
    assert bench.rows("SELECT status, formats FROM logs") == [("unrecognised", [])] * 2


def test_failed_logs_are_listed(bench: Bench) -> None:
    """A benchmark that failed is a result: its log is listed, its rows are not quoted."""
    failure = "node01: Test NCCL failure common.cu:1005 'unhandled system error'\n"
    bench.log("1.log", nccl_log(footer=failure))
    assert bench.ingest().failed == [str(bench.logs / "1.log")]
    assert bench.rows("SELECT excluded_because FROM runs") == [("failed",)]
    assert bench.rows("FROM results") == []


def test_what_cannot_be_read_is_listed_and_tried_again(bench: Bench) -> None:
    """A damaged archive is listed by every ingest until it can be read, even if neither size nor age change then."""
    whole = gzip.compress(nccl_log().encode(), mtime=0)
    path = bench.log("1.log.gz", b"\0" * len(whole))
    os.mkfifo(bench.logs / "pipe")
    status = path.stat()
    for _ in range(2):
        receipt = bench.ingest()
        assert (receipt.files, receipt.read, receipt.already_known) == (1, 0, 0)
        assert {s["path"] for s in receipt.not_read} == {str(bench.logs / "pipe"), str(path)}
        assert f"not read: {bench.logs}/pipe: not a plain file" in receipt.lines(bench.store.path)
    path.write_bytes(whole)
    os.utime(path, ns=(status.st_atime_ns, status.st_mtime_ns))
    assert bench.ingest().runs == 1


def test_long_lists_are_cut_for_people(bench: Bench) -> None:
    """The printed receipt names ten files of a kind and counts the rest."""
    for i in range(13):
        bench.log(f"{i:02d}.txt", f"text {i}\n")
    receipt = bench.ingest()
    shown = [line for line in receipt.lines(bench.store.path) if line.startswith("unrecognised: ")]
    assert len(shown) == 11
    assert shown[-1] == "unrecognised: and 3 more (--json lists all)"
    assert len(receipt.to_dict()["unrecognised"]) == 13


def test_a_missing_path_stores_nothing(bench: Bench) -> None:
    """A path that does not exist is an error of usage, before anything is read."""
    bench.log("1.log", nccl_log())
    with pytest.raises(UsageError) as caught:
        bench.ingest(bench.logs, bench.logs / "gone")
    assert str(caught.value) == f"{bench.logs}/gone: no such file or folder"
    assert not bench.store.path.exists()


# Archives


def test_members_of_an_archive_are_logs(bench: Bench) -> None:
    """Each member has its own path; the archive is one file, known the second time."""
    path = bench.logs / "runs.zip"
    with zipfile.ZipFile(path, "w") as archive:
        archive.writestr("a/1.log", nccl_log(pid=1))
        archive.writestr("a/2.log", nccl_log(pid=2))
    receipt = bench.ingest()
    assert (receipt.files, receipt.read, receipt.runs) == (1, 2, 2)
    assert bench.rows("SELECT path FROM runs ORDER BY path") == [(f"{path}!a/1.log",), (f"{path}!a/2.log",)]
    assert bench.ingest().already_known == 1
    with zipfile.ZipFile(path, "w") as archive:
        archive.writestr("a/2.log", nccl_log(pid=2))
        archive.writestr("a/3.log", nccl_log(pid=3))
    receipt = bench.ingest()
    assert (receipt.read, receipt.new_logs, receipt.same_content) == (2, 1, 1)
    assert bench.rows("SELECT path FROM runs ORDER BY path") == [(f"{path}!a/2.log",), (f"{path}!a/3.log",)]


# Forgetting


@pytest.fixture
def two_campaigns(bench: Bench) -> Iterator[Bench]:
    """Log 1 stands in both campaigns, logs 2 and 3 in one each."""
    for campaign, pids in (("east", (1, 2)), ("west", (1, 3))):
        bench.campaign(f'[campaign]\nname = "{campaign}"\n', campaign)
        for pid in pids:
            bench.log(f"{campaign}/{pid}.log", nccl_log(pid=pid))
    bench.ingest()
    return bench


def test_forgetting_a_log(two_campaigns: Bench) -> None:
    """A log goes with its rows, paths and places, by any beginning of its id; an ingest brings it back."""
    bench = two_campaigns
    sha256 = hashlib.sha256(nccl_log(pid=1).encode()).hexdigest()
    assert forget(bench.store, log=sha256[:10].upper()) == 1
    assert bench.one(f"SELECT count(*) FROM logs WHERE sha256 = '{sha256}'") == 0
    assert counts(bench) == {"logs": 2, "paths": 2, "runs": 2, "samples": 8, "notes": 0}
    assert bench.rows("SELECT campaign, count(*) FROM runs GROUP BY ALL ORDER BY ALL") == [("east", 1), ("west", 1)]
    receipt = bench.ingest()
    assert (receipt.new_logs, receipt.already_known) == (1, 2)
    assert bench.rows("SELECT campaign, count(*) FROM runs GROUP BY ALL ORDER BY ALL") == [("east", 2), ("west", 2)]


def test_forgetting_a_campaign(two_campaigns: Bench) -> None:
    """A campaign goes with the logs that stand in no other one."""
    bench = two_campaigns
    assert forget(bench.store, campaign="east") == 1
    assert bench.rows("SELECT DISTINCT campaigns FROM logs") == [(["west"],)]
    assert counts(bench)["logs"] == 2
    assert bench.rows("SELECT campaign FROM raw.campaigns") == [("west",)]


@pytest.mark.parametrize(
    ("what", "message"),
    [
        ({"log": "zzzz"}, "no log with an id that begins with 'zzzz'; 'rdmalab query \"FROM logs\"' lists them"),
        ({"log": ""}, "3 logs with an id that begins with ''; 'rdmalab query \"FROM logs\"' lists them"),
        ({"campaign": "north"}, "no campaign 'north' in this store; it has: east, west"),
    ],
)
def test_forgetting_what_is_not_there(two_campaigns: Bench, what: dict[str, str], message: str) -> None:
    """What cannot be found is said, and nothing changes."""
    before = two_campaigns.store.path.read_bytes()
    with pytest.raises(UsageError) as caught:
        forget(two_campaigns.store, **what)
    assert str(caught.value) == message
    assert two_campaigns.store.path.read_bytes() == before


# Pairs


def test_both_ends_of_a_test_count_once(bench: Bench) -> None:
    """Client and server of one perftest run are both stored; the results hold the client's rows, which are more."""
    bench.log("client.log", perftest_log("client"))
    bench.log("server.log", perftest_log("server"))
    bench.log("another.log", perftest_log("client", qpn=0x500))
    bench.ingest()
    kept, left_out = bench.rows(
        "SELECT side, excluded_because, run_id FROM runs WHERE path NOT LIKE '%another.log' ORDER BY side"
    )
    assert kept[:2] == ("client", None)
    assert left_out[:2] == ("server", f"other end of {kept[2]}, counted there")
    assert bench.rows(
        "SELECT side, size_bytes FROM results WHERE path LIKE '%/client.log' OR path LIKE '%/server.log'"
    ) == [
        ("client", 4096),
        ("client", 65536),
    ]
    assert bench.one("SELECT count(DISTINCT run_id) FROM results") == 2


def test_the_server_stands_in_for_a_client_that_was_cut(bench: Bench) -> None:
    """Where the client's log has no end, the server's row is the result."""
    bench.log("client.log", perftest_log("client", footer=False))
    bench.log("server.log", perftest_log("server"))
    bench.ingest()
    assert bench.rows("SELECT side, excluded_because FROM runs ORDER BY side") == [
        ("client", "truncated"),
        ("server", None),
    ]
    assert bench.rows("SELECT side, size_bytes, bw_avg_gbit_s FROM results") == [("server", 65536, 392.23)]


# Results


def test_results_hold_only_what_is_fit_to_be_quoted(bench: Bench) -> None:
    """Complete, without wrong data, more than one rank; the other runs say why they are left out."""
    one_row = (
        "     1048576        262144     float     sum      -1"
        "    61.13   17.15   32.16      {}    60.94   17.21   32.26      0\n"
    )
    wrong = "# Out of bounds values : {} FAILED\n# Avg bus bandwidth    : 32.21 \n#\n"
    bench.log("good.log", nccl_log())
    bench.log("cut.log", nccl_log(footer="", pid=2))
    bench.log("wrong.log", nccl_log(rows=one_row.format(3), footer=wrong.format(3), pid=3))
    bench.log("out_of_bounds.log", nccl_log(rows=one_row.format(0), footer=wrong.format(3), pid=4))
    bench.log("one_rank.log", nccl_log(nodes=1, gpus=1, pid=5))
    bench.log("no_rows.log", nccl_log(rows="", pid=6))
    bench.ingest()
    reasons = bench.rows("SELECT parse_filename(path), excluded_because FROM runs ORDER BY ALL")
    assert reasons == [
        ("cut.log", "truncated"),
        ("good.log", None),
        ("no_rows.log", "no_data"),
        ("one_rank.log", "one rank: no fabric was measured"),
        ("out_of_bounds.log", "wrong data"),
        ("wrong.log", "wrong data"),
    ]
    assert bench.rows("SELECT DISTINCT parse_filename(path), run_status FROM results") == [("good.log", "complete")]
    assert bench.one("SELECT count(*) FROM samples") == 4 + 4 + 2 + 2 + 4


def test_a_sample_knows_its_line(bench: Bench) -> None:
    """Line numbers in the store are those of the log, archive or not."""
    path = bench.logs / "runs.zip"
    with zipfile.ZipFile(path, "w") as archive:
        archive.writestr("1.log", nccl_log())
    bench.ingest()
    lines = nccl_log().splitlines()
    for line, size in bench.rows("SELECT DISTINCT line, size_bytes FROM results"):
        assert lines[int(str(line)) - 1].split()[0] == str(size)
    assert lines[int(str(bench.one("SELECT line FROM runs"))) - 1].startswith("# Collective test starting")


def test_a_row_of_which_nothing_is_known_costs_no_other_log(bench: Bench) -> None:
    """A report of perftest that names neither size nor unit keeps its run; the logs beside it are stored too."""
    info = '{"test_info": {"test": "RDMA_Write_BW_Test", "Device": "mlx5_0"}, "results": {"bw_avg": 92.57,}}\n'
    bench.log("unknown.json", info)
    bench.log("nccl.log", nccl_log())
    bench.ingest()
    assert bench.rows("SELECT tool, rows FROM runs ORDER BY tool") == [("nccl-tests", 4), ("perftest", 1)]
