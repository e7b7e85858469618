"""The store survives murder, and a report survives what a host may call itself."""

import os
import random
import subprocess
import sys
import time
from pathlib import Path

import pytest
from click.testing import CliRunner

import rdmalab
from rdmalab.cli import main
from rdmalab.errors import StoreError
from rdmalab.ingest import ingest
from rdmalab.store import Store

EXAMPLES = Path(__file__).parents[1] / "data" / "examples"
COUNTS = "SELECT (SELECT count(*) FROM raw.logs), (SELECT count(*) FROM raw.runs), (SELECT count(*) FROM raw.samples)"


def _torn(path: Path) -> bool:
    """Whether a reader sees runs without their rows, or rows without their run."""
    try:
        with rdmalab.open(path) as lab:
            runs = lab.sql("SELECT coalesce(sum(rows), 0)::BIGINT AS n FROM raw.runs")["n"][0]
            rows = lab.sql("SELECT count(*) AS n FROM raw.samples")["n"][0]
            orphans = lab.sql("SELECT count(*) AS n FROM raw.runs WHERE log_id NOT IN (SELECT log_id FROM raw.logs)")[
                "n"
            ][0]
    except StoreError:
        return path.exists()  # before the first publish there is no store to see
    return bool(runs != rows or orphans)


def test_ten_killed_ingests_and_one_that_completes(tmp_path: Path) -> None:
    """Killed at random moments: no reader sees half a batch, and the end equals a clean ingest."""
    db = tmp_path / "killed.duckdb"
    folders = [EXAMPLES / "synthetic" / f / "nccl" for f in ("tcp-100g", "roce-100g", "infiniband-ndr400")]
    dice = random.Random(7)
    for attempt in range(10):
        command = [sys.executable, "-m", "rdmalab", "ingest", str(folders[attempt % 3]), "--db", str(db)]
        with subprocess.Popen(command, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL) as process:
            end = time.monotonic() + dice.uniform(0.4, 2.2)
            while time.monotonic() < end and process.poll() is None:
                assert not _torn(db)
                time.sleep(0.1)
            process.kill()
        assert not _torn(db)
    ingest(folders, Store(db))
    ingest(folders, Store(tmp_path / "clean.duckdb"))
    with rdmalab.open(db) as killed, rdmalab.open(tmp_path / "clean.duckdb") as clean:
        assert killed.sql(COUNTS).row(0) == clean.sql(COUNTS).row(0)
        assert clean.sql(COUNTS).row(0)[0] == 66
    assert sorted(p.name for p in tmp_path.iterdir() if ".new" in p.name) == []


@pytest.mark.skipif(sys.platform != "linux", reason="prctl is Linux's")
def test_no_worker_outlives_a_killed_ingest(tmp_path: Path) -> None:
    """SIGKILL reaches the ingest alone; its workers end by themselves."""
    command = [sys.executable, "-m", "rdmalab", "ingest", str(EXAMPLES), "--db", str(tmp_path / "lab.duckdb")]
    with subprocess.Popen(
        command, start_new_session=True, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL
    ) as process:
        time.sleep(1.5)
        process.kill()
    end = time.monotonic() + 20
    while time.monotonic() < end:
        try:
            os.killpg(process.pid, 0)
        except ProcessLookupError:
            return
        time.sleep(0.1)
    pytest.fail("workers are still there")


HOSTS = ("<script>alert(1)</script>", '=HYPERLINK("http://x","y")', "n" * 400)


@pytest.mark.parametrize("host", HOSTS, ids=["script", "formula", "long"])
def test_a_host_name_is_text_everywhere(host: str, tmp_path: Path) -> None:
    """A host may call itself anything: in the HTML it is text, and no page breaks."""
    for fabric in ("tcp-100g", "roce-100g"):
        for number in range(1, 8):
            text = (EXAMPLES / "synthetic" / fabric / "nccl" / f"all_reduce.{number}.log").read_text(encoding="utf-8")
            if fabric == "roce-100g":
                text = text.replace("synthetic-node-02", host.replace(" ", ""))
            target = tmp_path / "logs" / fabric / f"{number}.log"
            target.parent.mkdir(parents=True, exist_ok=True)
            target.write_text(text, encoding="utf-8")
    (tmp_path / "logs" / "rdmalab.toml").write_text(
        "".join(
            ["[campaign]\nname = 'hosts'\n"]
            + [
                f"[[fabric]]\nname = '{f}'\nfamily = '{m}'\nlogs = ['{f}/**']\n"
                for f, m in (("tcp-100g", "tcp"), ("roce-100g", "roce"))
            ]
        ),
        encoding="utf-8",
    )
    db = str(tmp_path / "lab.duckdb")
    assert CliRunner().invoke(main, ["ingest", str(tmp_path / "logs"), "--db", db]).exit_code == 0
    with rdmalab.open(db) as lab:
        assert any(host in hosts for hosts in lab.runs()["hosts"].to_list())
    done = CliRunner().invoke(
        main, ["report", "fabric-comparison", "--to", "html", "--db", db, "--out", str(tmp_path / "out")]
    )
    assert done.exit_code == 0, done.output
    html = (tmp_path / "out" / "fabric_comparison.html").read_text(encoding="utf-8")
    assert "<script>alert" not in html
    assert 'href="http://x' not in html
