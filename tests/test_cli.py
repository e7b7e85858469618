"""The command line as a user meets it: one sentence for a mistake, exact exit codes, exact words."""

import json
import subprocess
import sys
from pathlib import Path

import pytest
from click.testing import CliRunner, Result

from rdmalab.cli import main

EXAMPLES = Path(__file__).parents[1] / "data" / "examples"


def run(*args: str) -> Result:
    return CliRunner().invoke(main, list(args))


@pytest.fixture(scope="module")
def db(tmp_path_factory: pytest.TempPathFactory) -> str:
    """A store with the two example campaigns."""
    path = str(tmp_path_factory.mktemp("store") / "lab.duckdb")
    done = run("ingest", str(EXAMPLES / "synthetic"), str(EXAMPLES / "softroce" / "repeats"), "--db", path)
    assert done.exit_code == 0, done.output
    return path


def test_a_missing_path_is_one_sentence_and_exit_2() -> None:
    """A path that does not exist is said, without a traceback."""
    for verb in ("parse", "ingest"):
        done = run(verb, "/nowhere/at/all")
        assert done.exit_code == 2
        assert done.stderr == "rdmalab: /nowhere/at/all: no such file or folder\n"


def test_parse_prints_one_json_object_a_log() -> None:
    """``parse --json`` prints the contract's keys, and exits 0 also for a text that is no log."""
    done = run(
        "parse", "--json", str(EXAMPLES / "synthetic" / "roce-100g" / "nccl"), str(EXAMPLES / "synthetic" / "README.md")
    )
    assert done.exit_code == 0
    logs = [json.loads(line) for line in done.stdout.splitlines()]
    assert list(logs[0]) == ["path", "sha256", "formats", "status", "runs", "transport", "readings", "notes"]
    assert {log["status"] for log in logs} == {"complete", "failed", "unrecognised"}
    run_ = next(log for log in logs if log["path"].endswith("all_reduce.1.log"))["runs"][0]
    assert (run_["tool"], run_["kind"], run_["operation"], run_["ranks"], run_["nodes"]) == (
        "nccl-tests",
        "collective",
        "all_reduce",
        16,
        2,
    )
    assert run_["gpu_model"] == "NVIDIA H100 80GB HBM3"


def test_ingest_again_stores_nothing(db: str) -> None:
    """The second ingest of the same folder reads no log."""
    done = run("ingest", "--json", str(EXAMPLES / "synthetic"), str(EXAMPLES / "softroce" / "repeats"), "--db", db)
    receipt = json.loads(done.stdout)
    assert (receipt["read"], receipt["new_logs"], receipt["runs"], receipt["samples"]) == (0, 0, 0, 0)
    assert receipt["already_known"] == receipt["files"] > 250


def test_query_formats(db: str) -> None:
    """A query answers as a table, CSV with a header, JSON and Parquet."""
    sql = "SELECT fabric, runs FROM fabrics WHERE campaign = 'synthetic' AND fabric = 'tcp-100g'"
    assert run("query", sql, "--format", "csv", "--db", db).stdout.splitlines()[0] == "fabric,runs"
    assert json.loads(run("query", sql, "--format", "json", "--db", db).stdout)[0]["fabric"] == "tcp-100g"
    assert "tcp-100g" in run("query", sql, "--db", db).stdout
    assert run("query", sql, "--format", "parquet", "--db", db).stdout_bytes[:4] == b"PAR1"


def test_a_wrong_query_is_one_sentence(db: str) -> None:
    """DuckDB's complaint is passed on without a traceback, exit 2."""
    done = run("query", "SELECT nothing FROM nowhere", "--db", db)
    assert done.exit_code == 2
    assert done.stderr.startswith("rdmalab: the query was refused: ")
    assert "Traceback" not in done.output


def test_query_cannot_change_the_store(db: str) -> None:
    """The store is opened for reading only."""
    done = run("query", "DELETE FROM raw.logs", "--db", db)
    assert done.exit_code == 2
    assert (
        json.loads(run("query", "SELECT count(*) AS n FROM logs", "--format", "json", "--db", db).stdout)[0]["n"] > 250
    )


def test_show_prints_the_run_its_rows_and_its_lines(db: str) -> None:
    """``show RUN`` names the log, the rows as printed and the lines of the log."""
    rows = json.loads(
        run(
            "query",
            "SELECT run_id FROM runs WHERE path LIKE '%all_reduce.3.log' AND fabric = 'tcp-100g'",
            "--format",
            "json",
            "--db",
            db,
        ).stdout
    )
    done = run("show", rows[0]["run_id"], "--db", db)
    assert done.exit_code == 0
    assert "operation: all_reduce" in done.stdout
    assert "# Collective test starting: all_reduce_perf" in done.stdout


def test_unknown_run_is_one_sentence(db: str) -> None:
    """An id that nothing begins with is refused with the way out."""
    done = run("show", "zzz", "--db", db)
    assert (done.exit_code, done.stderr) == (
        2,
        "rdmalab: no run with an id that begins with 'zzz'; 'rdmalab runs' lists them\n",
    )


def test_formats_are_listed_with_a_line_each() -> None:
    """Every format has a name and an example."""
    lines = run("formats").stdout.splitlines()
    assert any(line.startswith("nccl-tests ") for line in lines)
    assert all(len(line.split(None, 1)) == 2 for line in lines)


def test_help_of_every_verb() -> None:
    """Every verb explains itself."""
    for name in main.list_commands(None):  # type: ignore[arg-type]
        done = run(name, "--help")
        assert done.exit_code == 0
        assert done.stdout.startswith("Usage:")


def test_a_broken_pipe_is_no_traceback(db: str) -> None:
    """``rdmalab query ... | head -1`` ends quietly."""
    command = f'{sys.executable} -m rdmalab query "SELECT * FROM results" --format csv --db {db} | head -1'
    done = subprocess.run(["bash", "-c", command], capture_output=True, text=True, check=True)
    assert done.stdout.startswith("campaign,")
    assert "Traceback" not in done.stderr


def test_claims_are_judged_without_a_store() -> None:
    """One line a claim and a summary; JSON Lines for machines; exit 1 when one is impossible or wrong."""
    files = sorted(str(f) for f in (EXAMPLES.parent / "claims").glob("*.toml"))
    done = run("claims", *files)
    assert done.exit_code == 1
    assert done.stdout.splitlines()[-1].startswith("273 claims: ")
    rows = [json.loads(line) for line in run("claims", "--json", *files).stdout.splitlines()]
    assert len(rows) == 273  # 271 sentences and two inputs of theirs
    assert {"id", "verdict", "evidence_verdict", "reading", "formula", "computed"} <= set(rows[0])
    assert {r["verdict"] for r in rows} >= {"physically impossible", "arithmetically wrong", "consistent"}


def test_a_claims_file_that_is_none_is_one_sentence(tmp_path: Path) -> None:
    """No TOML, no claim: exit 2 and the line."""
    (tmp_path / "bad.toml").write_text("[[claim]\n", encoding="utf-8")
    done = run("claims", str(tmp_path / "bad.toml"))
    assert done.exit_code == 2
    assert done.stderr.startswith("rdmalab: ")
    assert "Traceback" not in done.output
