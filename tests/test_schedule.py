"""Scheduled jobs: what is due when, one run at a time, whole or not at all, nothing twice."""

import fcntl
import json
import subprocess
import sys
import time
from collections.abc import Callable
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

import pytest
from click.testing import CliRunner, Result
from hypothesis import given, settings
from hypothesis import strategies as st

from rdmalab import schedule as library
from rdmalab.cli import main
from rdmalab.errors import NothingToCompare, UsageError
from rdmalab.report import Delivered, Order
from rdmalab.schedule import Busy, History, run_due, run_job
from rdmalab.schedule_file import Job, Schedule, load
from tests.conftest import Bench, nccl_log

NOW = datetime(2026, 12, 1, 2, 30, tzinfo=UTC)
NIGHTLY = """\
[[job]]
name = "nightly"
cron = "30 2 * * *"
keep = 2
out = "out/{job}/{date}"

[[job.report]]
notebook = "fabric-comparison"
"""


def run(*args: str) -> Result:
    return CliRunner().invoke(main, ["schedule", *args])


# --- when -----------------------------------------------------------------------------------------------------------


def berlin(text: str, *, fold: int = 0) -> datetime:
    """A time on a clock in Berlin."""
    zone = Job(name="x", cron="* * * * *", timezone="Europe/Berlin").zone
    return datetime.fromisoformat(text).replace(tzinfo=zone, fold=fold)


def runs_between(cron: str, start: datetime, end: datetime, step: timedelta) -> list[datetime]:
    """The moments at which a timer that ticks every *step* finds the job due."""
    job = Job(name="x", cron=cron, timezone="Europe/Berlin")
    moment, handled, found = start.astimezone(UTC), start.astimezone(UTC), []
    while moment <= end.astimezone(UTC):
        if due := job.due(handled, moment):
            handled = due
            found.append(moment)
        moment += step
    return found


@pytest.mark.parametrize("day", ["2026-03-29", "2026-10-25", "2026-06-01"])
@pytest.mark.parametrize("minutes", [1, 5, 50])
@pytest.mark.parametrize("cron", ["30 2 * * *", "10 2 * * *", "0 3 * * *", "59 1 * * *"])
def test_a_change_of_the_clock_runs_a_daily_job_once(day: str, minutes: int, cron: str) -> None:
    """Summer time begins, it ends, or nothing happens: one run that day."""
    found = runs_between(cron, berlin(f"{day}T00:00"), berlin(f"{day}T23:00"), timedelta(minutes=minutes))
    assert len(found) == 1


def test_a_skipped_time_comes_right_after() -> None:
    """On 29 March 2026 clocks in Berlin go from 02:00 to 03:00, which is 01:00 UTC."""
    job = Job(name="x", cron="30 2 * * *", timezone="Europe/Berlin")
    assert next(job.times(berlin("2026-03-28T12:00"))) == datetime(2026, 3, 29, 1, 0, tzinfo=UTC)


def test_a_time_that_comes_twice_counts_the_first_time() -> None:
    """On 25 October 2026 it is 02:30 at 00:30 UTC and at 01:30 UTC. A run that comes late is not repeated."""
    job = Job(name="x", cron="30 2 * * *", timezone="Europe/Berlin")
    first = datetime(2026, 10, 25, 0, 30, tzinfo=UTC)
    assert job.due(berlin("2026-10-24T12:00"), berlin("2026-10-25T02:10", fold=1)) == first
    assert job.due(first, berlin("2026-10-25T02:45", fold=1)) is None


def test_an_hourly_job_follows_the_clock() -> None:
    """The hour that occurs twice has two runs, the one that is skipped none: 25 and 23 that day."""
    hour = timedelta(minutes=10)
    assert len(runs_between("30 * * * *", berlin("2026-10-25T00:00"), berlin("2026-10-25T23:59"), hour)) == 25
    assert len(runs_between("30 * * * *", berlin("2026-03-29T00:00"), berlin("2026-03-29T23:59"), hour)) == 23


def test_missed_runs_are_one_and_a_clock_set_back_is_none() -> None:
    """After ten days off there is one run, for the last time; before the last run nothing is due."""
    job = Job(name="x", cron="30 2 * * *")
    assert job.due(NOW - timedelta(days=10), NOW + timedelta(hours=5)) == NOW
    assert job.due(NOW, NOW + timedelta(hours=23)) is None
    assert job.due(NOW, NOW - timedelta(days=3)) is None
    assert job.due(None, NOW + timedelta(hours=1)) == NOW  # never run


@settings(deadline=None)
@given(st.datetimes(datetime(2026, 1, 1), datetime(2027, 1, 1)), st.integers(0, 3000), st.integers(7, 90))
def test_no_time_is_lost_or_repeated(start: datetime, minutes: int, step: int) -> None:
    """However irregularly a timer ticks, the runs are for ever later times, and none is left over."""
    job = Job(name="x", cron="15 */6 * * *", timezone="Europe/Berlin")
    moment = start.replace(tzinfo=UTC)
    handled, end = moment, moment + timedelta(minutes=minutes)
    while moment < end:
        moment += timedelta(minutes=step)
        due = job.due(handled, moment)
        assert due is None or handled < due <= moment
        handled = due or handled
        assert next(job.times(handled)) > moment


# --- the file -------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("old", "new", "message"),
    [
        ('"30 2 * * *"', '"30 25 * * *"', ":3: '30 25 * * *' is no cron expression (bad hour)"),
        ('"30 2 * * *"', '"@daily"', ":3: '@daily' is no cron expression (five fields are wanted"),
        ('"30 2 * * *"', '"0 0 30 2 *"', ":3: '0 0 30 2 *' is no cron expression (bad day-of-month)"),
        ("keep = 2", "keep = 0", ":4: keep must be greater than 0"),
        ("keep = 2", 'timezone = "Europe/Berln"', ":4: no time zone 'Europe/Berln'. Did you mean 'Europe/Berlin'?"),
        ("keep = 2", "kep = 2", ":4: unknown key 'kep' in [job]. Did you mean 'keep'?"),
        ("keep = 2", 'on_success = "cp a b"', ":4: on_success wants a list of texts"),
        ("keep = 2", "ingest = 3", ":4: write ingest as a table: [job.ingest]"),
        ("keep = 2", "ingest = { path = [] }", ":4: unknown key 'path' in [job.ingest]"),
        ("{date}", "{day}", ":5: 'out/{job}/{day}' may name {job}, {date}, {time}, {notebook}, {lang}, not '{day}'"),
        ('"nightly"', '"a b"', ":2: the name of a job is a word"),
        ("notebook =", "note =", ":8: unknown key 'note' in [job.report]. Did you mean 'notebook'?"),
        ("[[job.report]]\nnotebook = \"fabric-comparison\"\n", "", ":1: a job needs a report: [[job.report]]"),
        ("[[job]]", "[[jobs]]", ":1: unknown table 'jobs'. Did you mean 'job'?"),
    ],
)  # fmt: skip
def test_a_wrong_schedule_is_refused_with_its_line(tmp_path: Path, old: str, new: str, message: str) -> None:
    """A slip of the pen is found before the night comes."""
    assert old in NIGHTLY
    file = tmp_path / "schedule.toml"
    file.write_text(NIGHTLY.replace(old, new, 1), encoding="utf-8")
    with pytest.raises(UsageError) as caught:
        load(file)
    assert f"{file}{message}"[:150] in str(caught.value)


def test_two_reports_of_a_job_do_not_share_a_folder(tmp_path: Path) -> None:
    """Each report has its report.json, so each needs a folder; the language may tell them apart."""
    both = NIGHTLY + '\n[[job.report]]\nnotebook = "fabric-comparison"\nlang = "zh"\n'
    file = tmp_path / "schedule.toml"
    file.write_text(both, encoding="utf-8")
    with pytest.raises(UsageError, match=r":5: two reports of the job go to the same folder"):
        load(file)
    file.write_text(both.replace("{date}", "{date}-{lang}"), encoding="utf-8")
    assert load(file).job("nightly").folders(NOW) == ["out/nightly/2026-12-01-en", "out/nightly/2026-12-01-zh"]


# --- runs, with a report that costs nothing ---------------------------------------------------------------------------


class Desk:
    """A schedule over a store, whose reports are a line of text: the hashes of the logs."""

    def __init__(self, bench: Bench, root: Path, monkeypatch: pytest.MonkeyPatch) -> None:
        self.bench, self.root = bench, root
        self.made = 0
        self.problem: Exception | None = None
        monkeypatch.setattr(library, "make_reports", self.make)

    def make(self, orders: list[Order]) -> list[Any]:
        """What stands for `rdmalab.batch.make_reports`."""
        self.made += 1
        if self.problem:
            return [self.problem for _ in orders]
        done = []
        for order in orders:
            order.out.mkdir(parents=True)
            files = tuple(order.out / name for name in ("page.html", "report.json"))
            for file in files:
                file.write_text(" ".join(sorted(str(v) for (v,) in self.bench.rows("SELECT sha256 FROM logs"))))
            done.append(Delivered(files, "A verdict"))
        return done

    def schedule(self, text: str = NIGHTLY) -> Schedule:
        """The schedule file, read."""
        (self.root / "schedule.toml").write_text(text, encoding="utf-8")
        return load(self.root / "schedule.toml", str(self.bench.store.path))

    def data(self, number: int) -> None:
        """New logs in the store."""
        self.bench.log(f"all_reduce.{number}.log", nccl_log(pid=1000 * number))
        self.bench.ingest()

    def files(self) -> list[str]:
        """Everything under the folder of reports, hidden things included."""
        return sorted(str(p.relative_to(self.root)) for p in (self.root / "out").rglob("*") if p.is_file())

    def history(self) -> list[tuple[str, str]]:
        """(job, status) of all runs."""
        return [(r["job"], r["status"]) for r in History(self.root / ".rdmalab-schedule").runs()]


@pytest.fixture
def desk(bench: Bench, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Desk:
    """A desk with data in its store."""
    desk = Desk(bench, tmp_path, monkeypatch)
    desk.data(1)
    return desk


def test_the_same_report_of_the_same_data_is_not_made_again(desk: Desk) -> None:
    """Notebook, parameters and data are what they were: the history says so, and nothing is run."""
    schedule = desk.schedule()
    assert run_job(schedule, "nightly", now=NOW)["status"] == "delivered"
    assert run_job(schedule, "nightly", now=NOW + timedelta(days=1))["status"] == "unchanged"
    assert desk.made == 1
    desk.data(2)
    assert run_job(schedule, "nightly", now=NOW + timedelta(days=1))["status"] == "delivered"
    other = desk.schedule(NIGHTLY + "parameters = { ranks = 8 }\n")
    assert run_job(other, "nightly", now=NOW + timedelta(days=1))["status"] == "delivered"
    assert desk.made == 3
    assert [status for _, status in desk.history()] == ["delivered", "unchanged", "delivered", "delivered"]


def test_a_deleted_report_is_made_again(desk: Desk) -> None:
    """What is gone from its place was not delivered."""
    schedule = desk.schedule()
    run_job(schedule, "nightly", now=NOW)
    (desk.root / "out" / "nightly" / "2026-12-01" / "page.html").unlink()
    assert run_job(schedule, "nightly", now=NOW)["status"] == "delivered"


def test_old_deliveries_are_removed_and_nothing_else(desk: Desk) -> None:
    """``keep = 2`` leaves two; a file of the user stays, and the folder that holds it."""
    schedule = desk.schedule()
    for day in range(4):
        desk.data(day + 10)
        run_job(schedule, "nightly", now=NOW + timedelta(days=day))
        if not day:
            (desk.root / "out" / "nightly" / "2026-12-01" / "mine.txt").write_text("mine")
    kept = [f"out/nightly/2026-12-0{d}/{name}" for d in (3, 4) for name in ("page.html", "report.json")]
    assert desk.files() == ["out/nightly/2026-12-01/mine.txt", *kept]
    assert not (desk.root / "out" / "nightly" / "2026-12-02").exists()


def test_a_fixed_folder_holds_the_latest(desk: Desk) -> None:
    """Without a date in the pattern a delivery replaces the one before."""
    schedule = desk.schedule(NIGHTLY.replace("/{date}", ""))
    for number in (1, 2):
        desk.data(number)
        run_job(schedule, "nightly", now=NOW)
    assert desk.files() == ["out/nightly/page.html", "out/nightly/report.json"]
    assert len((desk.root / "out" / "nightly" / "page.html").read_text().split()) == 2


def test_a_failed_run_leaves_the_last_good_report(desk: Desk) -> None:
    """The files of before, a log, a history entry with the reason; the next time that is due is another try."""
    schedule = desk.schedule()
    run_job(schedule, "nightly", now=NOW)
    before = {f: (desk.root / f).read_bytes() for f in desk.files()}
    desk.data(2)
    desk.problem = NothingToCompare("one fabric only")
    entry = run_job(schedule, "nightly", now=NOW)
    assert (entry["status"], entry["error"]) == ("failed", "one fabric only")
    assert "one fabric only" in (desk.root / entry["log"]).read_text()
    assert {f: (desk.root / f).read_bytes() for f in desk.files()} == before


def test_a_fault_of_the_program_is_a_failed_run_too(desk: Desk, monkeypatch: pytest.MonkeyPatch) -> None:
    """What nobody foresaw ends in the log with its traceback."""
    monkeypatch.setattr(library, "make_reports", lambda orders: 1 / 0)
    entry = run_job(desk.schedule(), "nightly", now=NOW)
    assert (entry["status"], entry["error"]) == ("failed", "ZeroDivisionError: division by zero")
    assert "Traceback" in (desk.root / entry["log"]).read_text()


def test_a_job_that_cannot_be_ordered_fails(desk: Desk) -> None:
    """A report that is not there, a store that is not there: said as everywhere else."""
    entry = run_job(desk.schedule(NIGHTLY.replace("fabric-comparison", "nightmare")), "nightly", now=NOW)
    assert entry["error"].startswith("no report 'nightmare'")
    desk.bench.store.path.unlink()
    assert "no store here" in run_job(desk.schedule(), "nightly", now=NOW)["error"]
    lost = desk.schedule(NIGHTLY.replace("[[job.report]]", '[job.ingest]\npaths = ["lost"]\n[[job.report]]'))
    assert "lost" in run_job(lost, "nightly", now=NOW)["error"]


@pytest.mark.parametrize(("code", "status"), [(0, "delivered"), (1, "failed"), (2, "failed")])
def test_a_check_stands_before_the_reports(desk: Desk, monkeypatch: pytest.MonkeyPatch, code: int, status: str) -> None:
    """``rdmalab check`` is asked with the spec beside the schedule and its store; only exit 0 lets a report be made."""
    asked: list[list[str]] = []

    def answer(command: list[str], **_: Any) -> subprocess.CompletedProcess[str]:
        asked.append(command)
        return subprocess.CompletedProcess(command, code, "first line\nnot accepted", "")

    schedule = desk.schedule(NIGHTLY.replace("keep = 2", 'check = "spec.toml"'))
    monkeypatch.setattr(subprocess, "run", answer)
    entry = run_job(schedule, "nightly", now=NOW)
    assert (entry["status"], desk.made) == (status, int(not code))
    assert entry.get("error") == ("spec.toml does not pass: not accepted" if code else None)
    spec, db = str(desk.root / "spec.toml"), str(desk.bench.store.path)
    assert asked == [[sys.executable, "-m", "rdmalab", "check", spec, "--db", db]]


def test_commands_are_told_what_happened(desk: Desk) -> None:
    """The command gets job, status and files in its environment, as words and without a shell."""
    code = "import os; print(*(os.environ['RDMALAB_' + k] for k in ('JOB', 'STATUS', 'FILES', 'ERROR')), sep='|')"
    hooks = f'on_success = ["{sys.executable}", "-c", "{code}", "$HOME; rm"]\non_failure = ["no-such-program"]\n'
    schedule = desk.schedule(NIGHTLY.replace("keep = 2\n", hooks))
    entry = run_job(schedule, "nightly", now=NOW)
    assert entry["hook_exit"] == 0
    folder = desk.root / "out" / "nightly" / "2026-12-01"
    told = f"nightly|delivered|{folder / 'page.html'}\n{folder / 'report.json'}|"
    assert told in (desk.root / entry["log"]).read_text()
    desk.data(2)
    desk.problem = NothingToCompare("no")
    entry = run_job(schedule, "nightly", now=NOW)
    assert (entry["status"], entry["hook"], entry["hook_exit"]) == ("failed", "on_failure", 127)
    assert not library.good(entry)


def test_a_second_run_is_told_who_is_at_it(desk: Desk) -> None:
    """While a job is run nobody else runs it: one that is named is refused with exit 1, one that is due is left."""
    schedule = desk.schedule()
    schedule.state.mkdir()
    with (schedule.state / "nightly.lock").open("w") as lock:
        lock.write("process 17 on node01, since noon,")
        lock.flush()
        fcntl.flock(lock, fcntl.LOCK_EX)
        with pytest.raises(Busy, match="nightly: process 17 on node01, since noon, is running this job"):
            run_job(schedule, "nightly")
        assert [type(e) for e in run_due(schedule)] == [Busy]
        done = run("run", "nightly", "--schedule", str(schedule.path), "--db", str(desk.bench.store.path))
        assert done.exit_code == 1
        assert "is running this job" in done.stderr
        assert run("run", "--due", "--schedule", str(schedule.path)).exit_code == 0
    assert desk.made == 0
    assert run_job(schedule, "nightly")["status"] == "delivered"


def test_due_jobs_run_once_after_a_long_night(desk: Desk) -> None:
    """Nothing is due twice, downtime of a week is one run, and a job that is not due is not touched."""
    schedule = desk.schedule()
    assert [e["status"] for e in run_due(schedule, now=NOW + timedelta(minutes=1)) if isinstance(e, dict)] == [
        "delivered"
    ]
    assert list(run_due(schedule, now=NOW + timedelta(minutes=6))) == []
    (entry,) = run_due(schedule, now=NOW + timedelta(days=7, hours=1))
    assert isinstance(entry, dict)
    assert (entry["status"], entry["due"]) == ("unchanged", "2026-12-08T02:30:00+00:00")
    assert list(run_due(schedule, now=NOW + timedelta(days=7, hours=2))) == []


def test_three_jobs_of_which_one_fails(desk: Desk) -> None:
    """Two are delivered, the old third stays, the history is right, exit 1."""
    text = "".join(NIGHTLY.replace("nightly", name) for name in ("alpha", "beta", "gamma"))
    schedule = desk.schedule(text)
    assert len(list(run_due(schedule, now=NOW - timedelta(days=30)))) == 3
    old = (desk.root / "out" / "gamma" / "2026-11-01" / "page.html").read_text()
    desk.data(2)
    desk.schedule(text.replace('name = "gamma"', 'name = "gamma"\ncheck = "no-such.toml"'))
    done = run("run", "--due", "--schedule", str(schedule.path), "--db", str(desk.bench.store.path))
    assert done.exit_code == 1
    today = f"{datetime.now(UTC):%Y-%m-%d}"
    assert [line.split(": ")[:2] for line in done.stdout.splitlines()] == [
        ["alpha", "delivered"],
        ["beta", "delivered"],
    ]
    assert done.stderr.startswith("gamma: failed: no-such.toml does not pass")
    assert (desk.root / "out" / "gamma" / "2026-11-01" / "page.html").read_text() == old
    assert (desk.root / "out" / "alpha" / today / "page.html").read_text() != old
    assert desk.history()[3:] == [("alpha", "delivered"), ("beta", "delivered"), ("gamma", "failed")]
    assert run("list", "--schedule", str(schedule.path)).stdout.count(" delivered") == 2
    assert "gamma: failed" in run("history", "gamma", "--schedule", str(schedule.path)).stdout


# --- killed ---------------------------------------------------------------------------------------------------------


class Killed(BaseException):
    """Ends a run at any place, as kill -9 does: nothing of it catches this."""


def killed_at(number: int, monkeypatch: pytest.MonkeyPatch) -> None:
    """From now on the *number*-th change to the disk, or command, is not made: the run ends there."""
    count = 0

    def counted(owner: Any, name: str) -> None:
        original = getattr(owner, name)

        def call(*args: Any, **given: Any) -> Any:
            nonlocal count
            count += 1
            if count == number:
                raise Killed
            return original(*args, **given)

        monkeypatch.setattr(owner, name, call)

    for owner, name in (
        (Path, "rename"), (Path, "replace"), (Path, "unlink"), (History, "append"), (library.shutil, "rmtree"),  # type: ignore[attr-defined]
        (library.subprocess, "run"),  # type: ignore[attr-defined]
    ):  # fmt: skip
        counted(owner, name)


@pytest.mark.parametrize("pattern", ["out/{job}/{date}", "out/{job}"])
def test_a_run_that_is_killed_anywhere_is_finished_by_the_next(desk: Desk, pattern: str) -> None:
    """Killed before its n-th step, for all n, and started again: whole files of the new data, one entry, one mail."""
    hook = f"on_success = [\"{sys.executable}\", \"-c\", \"open('mail', 'a').write('x')\"]\n"
    text = NIGHTLY.replace("keep = 2\n", "keep = 1\n" + hook).replace("out/{job}/{date}", pattern)
    schedule = desk.schedule(text)
    for number in range(1, 60):
        desk.data(100 + number)
        now = NOW + timedelta(days=number)
        mails = len(list(mail.read_text())) if (mail := desk.root / "mail").exists() else 0
        before = len(desk.history())
        with pytest.MonkeyPatch.context() as patch:
            killed_at(number, patch)
            try:
                run_job(schedule, "nightly", now=now)
            except Killed:
                killed = True
            else:
                killed = False
        for file in desk.files():
            if "/." not in file and "page" in file:  # at any moment: a page is whole, of these data or of those before
                assert len((desk.root / file).read_text().split()) in (number, number + 1)
        assert run_job(schedule, "nightly", now=now)["status"] in ("unchanged", "delivered")
        folder = pattern.format(job="nightly", date=f"{now:%Y-%m-%d}")
        assert desk.files() == [f"{folder}/page.html", f"{folder}/report.json"]
        assert len((desk.root / folder / "page.html").read_text().split()) == number + 1
        statuses = [status for _, status in desk.history()[before:]]
        assert statuses.count("delivered") == 1
        assert len(mail.read_text()) - mails in ((1,) if not killed else (0, 1))
        if not killed:
            return
    pytest.fail("the run has more than 60 steps")


def test_half_a_line_in_the_history_is_no_event(tmp_path: Path) -> None:
    """A process that dies while it writes leaves half a line; what is written next is not lost with it."""
    history = History(tmp_path)
    history.append({"job": "a", "run": "1", "status": "delivered"})
    with history.path.open("a") as file:
        file.write('{"job": "a", "run": "2", "sta')
    history.append({"job": "a", "run": "3", "status": "failed"})
    assert [run["run"] for run in history.runs("a")] == ["1", "3"]


# --- the real thing -------------------------------------------------------------------------------------------------


def notebook(path: Path, *lines: str) -> None:
    """A report of few lines."""
    cells = [
        {"cell_type": "code", "id": f"c{n}", "metadata": {"tags": tags}, "execution_count": None, "outputs": [],
         "source": source}
        for n, (tags, source) in enumerate([(["parameters"], 'lang: str = "en"'), ([], "\n".join(lines))])
    ]  # fmt: skip
    metadata = {"kernelspec": {"name": "python3", "display_name": "Python 3", "language": "python"}}
    document = {"cells": cells, "metadata": metadata, "nbformat": 4, "nbformat_minor": 5}
    path.write_text(json.dumps(document), encoding="utf-8")


def test_killed_for_real_and_started_again(bench: Bench, tmp_path: Path) -> None:
    """kill -9 while a report runs: nothing is left in its place, its processes end, and the next run delivers."""
    bench.log("all_reduce.log", nccl_log())
    notebook(
        tmp_path / "slow.ipynb", "import os, time", f"open(r'{tmp_path}/pid', 'w').write(str(os.getpid()))",
        f"time.sleep(0 if os.path.exists(r'{tmp_path}/second') else 600)",
    )  # fmt: skip
    (tmp_path / "schedule.toml").write_text(
        '[[job]]\nname = "slow"\ncron = "0 0 * * *"\nout = "out/{job}"\n[job.ingest]\npaths = ["logs"]\n'
        '[[job.report]]\nnotebook = "slow.ipynb"\nto = ["html"]\n',
        encoding="utf-8",
    )
    command = [
        sys.executable,
        "-m",
        "rdmalab",
        "schedule",
        "run",
        "--due",
        "--schedule",
        str(tmp_path / "schedule.toml"),
    ]
    with subprocess.Popen([*command, "--db", str(bench.store.path)]) as first:
        until(
            lambda: first.poll() is not None or ((tmp_path / "pid").exists() and (tmp_path / "pid").read_text() != "")
        )
        first.kill()
    kernel = int((tmp_path / "pid").read_text())
    until(lambda: not Path(f"/proc/{kernel}").exists() or "Z" in Path(f"/proc/{kernel}/stat").read_text().split()[2])
    assert not [p for p in (tmp_path / "out").rglob("*") if p.is_file()]
    (tmp_path / "second").touch()
    done = subprocess.run([*command, "--db", str(bench.store.path)], capture_output=True, text=True, check=False)
    assert (done.returncode, done.stdout) == (0, "slow: delivered: out/slow\n"), done
    assert sorted(p.name for p in (tmp_path / "out").rglob("*")) == ["report.json", "slow", "slow.html"]
    assert [run["status"] for run in History(tmp_path / ".rdmalab-schedule").runs()] == ["delivered"]
    again = subprocess.run([*command, "--db", str(bench.store.path)], capture_output=True, text=True, check=False)
    assert (again.returncode, again.stdout) == (0, "nothing is due\n")


def until(condition: Callable[[], bool]) -> None:
    """Waits for something that other processes bring about."""
    for _ in range(1200):
        if condition():
            return
        time.sleep(0.1)
    pytest.fail("it did not happen")


def test_emitted_texts_name_the_schedule(tmp_path: Path) -> None:
    """Both run what is due of this very file, wherever they are started, and say nothing as long as all is well."""
    file = tmp_path / "50% of it" / "schedule.toml"
    file.parent.mkdir()
    file.write_text(NIGHTLY, encoding="utf-8")
    cron = run("emit", "--cron", "--schedule", str(file)).stdout
    wanted = f"-m rdmalab schedule run --due --quiet --schedule '{file}'".replace("%", r"\%")
    assert cron.splitlines()[1] == f"*/5 * * * * {sys.executable} {wanted}"
    systemd = run("emit", "--systemd", "--schedule", str(file)).stdout
    assert f'--quiet --schedule "{str(file).replace("%", "%%")}"\n' in systemd
    assert "Persistent=true" in systemd
    assert run("emit", "--schedule", str(file)).exit_code == 2


def test_next_shows_each_job_in_its_zone(tmp_path: Path) -> None:
    """Times are those of the clock where the job is."""
    file = tmp_path / "schedule.toml"
    file.write_text(NIGHTLY.replace("keep = 2", 'timezone = "Asia/Shanghai"'), encoding="utf-8")
    lines = run("next", "-n", "3", "--schedule", str(file)).stdout.splitlines()
    assert len(lines) == 3
    assert all(" 02:30 +0800 Asia/Shanghai" in line and line.endswith("nightly") for line in lines)
