"""
Runs scheduled jobs: one run at a time, whole or not at all, and nothing twice.

    lock ─▶ finish what a killed run left ─▶ ingest ─▶ new data? ─▶ check ─▶ reports ─▶ commit ─▶ deliver ─▶ command

Reports are made in a hidden folder beside their place. When all are there, one small file says where each goes (the
commit): a run that is killed before it has delivered nothing, and one that is killed after it is finished by the next.
What happened stands in ``history.jsonl`` of the state folder, a line an event; nothing else is remembered.
"""

import contextlib
import fcntl
import hashlib
import json
import os
import re
import secrets
import shutil
import socket
import subprocess
import sys
import traceback
from collections.abc import Iterator
from datetime import UTC, datetime
from functools import cached_property
from pathlib import Path
from typing import Any

from rdmalab.batch import make_reports
from rdmalab.errors import RdmalabError, ReportError, UsageError
from rdmalab.evidence import evidence
from rdmalab.report import Order
from rdmalab.schedule_file import Job, Schedule
from rdmalab.store import Store

_LOGS_KEPT = 50  # of each job
Entry = dict[str, Any]


class Busy(RdmalabError):
    """The job is being run by another process."""

    exit_code = 1


class History:
    """
    The events of a schedule, oldest first.

    A run is one line (``job, run, at, ended, due, status, key, files, error, log, hook``); its command adds one when
    it starts (``run, hook``) and one when it has ended (``run, hook, exit``).
    """

    def __init__(self, state: Path) -> None:
        self.path = state / "history.jsonl"

    def append(self, entry: Entry) -> None:
        """Adds a line; half of one that a killed process left becomes a line of its own, which nobody reads."""
        self.path.parent.mkdir(parents=True, exist_ok=True)
        with self.path.open("ab+") as file:
            fcntl.flock(file, fcntl.LOCK_EX)
            size = file.seek(0, os.SEEK_END)
            if size:
                file.seek(size - 1)
            torn = size and file.read(1) != b"\n"
            file.write((b"\n" if torn else b"") + json.dumps(entry, ensure_ascii=False).encode() + b"\n")
            file.flush()
            os.fsync(file.fileno())

    def events(self, job: str | None = None) -> list[Entry]:
        """All whole lines, of one job or of all."""
        found = []
        with contextlib.suppress(FileNotFoundError):
            for line in self.path.read_text(encoding="utf-8", errors="replace").splitlines():
                with contextlib.suppress(ValueError):
                    entry = json.loads(line)
                    if isinstance(entry, dict) and job in (None, entry.get("job")):
                        found.append(entry)
        return found

    def runs(self, job: str | None = None) -> list[Entry]:
        """The runs, each with what became of its command as ``hook_exit`` (None: cut off, or not yet)."""
        events = self.events(job)
        exits = {e["run"]: e["exit"] for e in events if "exit" in e}
        return [e | {"hook_exit": exits.get(e["run"])} for e in events if "status" in e]

    def handled(self, job: str) -> datetime | None:
        """The latest time of the cron expression that a run was for."""
        due = [datetime.fromisoformat(run["due"]) for run in self.runs(job) if run.get("due")]
        return max(due, default=None)


def run_job(schedule: Schedule, name: str, *, now: datetime | None = None) -> Entry:
    """
    Runs a job now, whatever its cron expression says.

    Returns:
        The run as it stands in the history: ``status`` is ``delivered``, ``unchanged`` (this very report, of these
        very data, is what was delivered last), or ``failed``; ``hook_exit`` is that of the job's command.

    Raises:
        Busy: Another process is running the job.
        UsageError: There is no such job.
    """
    job = schedule.job(name)
    with _lock(schedule, job):
        run = _Run(schedule, job, now or datetime.now(UTC), None)
        run.recover()
        return run()


def run_due(schedule: Schedule, *, now: datetime | None = None) -> Iterator[Entry | Busy]:
    """Runs all jobs whose time has come since their last run, each once; yields what :func:`run_job` returns."""
    for job in schedule.jobs:
        moment = now or datetime.now(UTC)
        try:
            with _lock(schedule, job):
                run = _Run(schedule, job, moment, None)
                run.recover()
                run.due = job.due(run.history.handled(job.name), moment)
                if run.due:
                    yield run()
        except Busy as busy:
            yield busy


def good(entry: Entry) -> bool:
    """Whether a run ended well, its command included."""
    return entry["status"] != "failed" and entry.get("hook_exit") in (None, 0)


class _Run:
    """One run of a job, under its lock."""

    def __init__(self, schedule: Schedule, job: Job, now: datetime, due: datetime | None) -> None:
        self.schedule, self.job, self.now, self.due = schedule, job, now.astimezone(UTC), due
        self.name = f"{self.now:%Y%m%dT%H%M%SZ}-{secrets.token_hex(2)}"
        self.history = History(schedule.state)
        self.base = schedule.root / re.split(r"[^/]*(?:\{|$)", job.out)[0]  # the folders above the first {word}
        self.staging = self.base / f".rdmalab-{job.name}"
        self.commit = self.staging / "commit.json"
        self.log = schedule.state / "logs" / f"{job.name}-{self.name}.log"

    def __call__(self) -> Entry:
        """The whole run; what fails is in the history, in the log and in the answer."""
        self._say(f"{self.job.name}: {self.now.isoformat()}")
        try:
            self._ingest()
            if self._delivered_last(self.key):
                return self._record("unchanged", key=self.key)
            self._check()
            files = self._make()
        except Exception as error:
            known = isinstance(error, RdmalabError)
            self._say(str(error) if known else traceback.format_exc())
            words = self._keep_notebooks(str(error) if known else f"{type(error).__name__}: {error}")
            shutil.rmtree(self.staging, ignore_errors=True)
            return self._hook(self._record("failed", error=words, hook="on_failure"))
        entry = self._entry("delivered", key=self.key, files=files, hook="on_success")
        _write_whole(self.commit, json.dumps(entry))
        return self._hook(self._deliver(entry))

    # -- steps ----------------------------------------------------------------------------------------------------

    def _ingest(self) -> None:
        if not self.job.ingest:
            return
        from rdmalab.executors import executor_of
        from rdmalab.ingest import ingest

        paths = [self.schedule.root / path for path in self.job.ingest.paths]
        with executor_of("process") as executor:
            receipt = ingest(paths, self._store, campaign=self.job.ingest.campaign, executor=executor)
        self._say("\n".join(receipt.lines(self._store.path)))

    def _check(self) -> None:
        if not self.job.check:
            return
        spec = str(self.schedule.root / self.job.check)
        command = [sys.executable, "-m", "rdmalab", "check", spec, "--db", str(self._store.path)]
        done = subprocess.run(
            command, stdin=subprocess.DEVNULL, capture_output=True, text=True, errors="replace", check=False
        )
        said = (done.stdout + done.stderr).strip()
        self._say(f"rdmalab check {self.job.check}: exit {done.returncode}\n{said}")
        if done.returncode:
            last = said.splitlines()[-1] if said else "no output"
            raise ReportError(f"{self.job.check} does not pass: {last}")

    def _make(self) -> list[str]:
        """Makes all reports into the staging folder; the files that they will be."""
        outcomes = make_reports(self._orders)
        problems = [p for o in outcomes if (p := o if isinstance(o, RdmalabError) else o.missing)]
        for order, outcome in zip(self._orders, outcomes, strict=True):
            self._say(f"{order.stem}: {outcome if isinstance(outcome, RdmalabError) else outcome.verdict}")
        if problems:
            more = f" (and {len(problems) - 1} more reports failed)" if len(problems) > 1 else ""
            raise type(problems[0])(f"{problems[0]}{more}")
        made = zip(self.job.folders(self.now), outcomes, strict=True)
        return [f"{folder}/{file.name}" for folder, o in made if not isinstance(o, RdmalabError) for file in o.files]

    def _deliver(self, entry: Entry) -> Entry:
        """Moves what is in the staging folder to its place: a new folder at once, into an old one file by file."""
        folders = dict.fromkeys(str(Path(file).parent) for file in entry["files"])
        for number, folder in enumerate(folders):
            source, target = self.staging / str(number), self.schedule.root / folder
            if not source.exists():
                continue
            target.parent.mkdir(parents=True, exist_ok=True)
            if not target.exists():
                source.rename(target)
                continue
            for file in sorted(source.iterdir()):
                file.replace(target / file.name)
        if entry["run"] not in [run["run"] for run in self.history.runs(self.job.name)]:
            self.history.append(entry)
        self._prune()
        shutil.rmtree(self.staging)
        return entry

    def _hook(self, entry: Entry) -> Entry:
        """
        Runs the command of the user that belongs to the end of a run, if there is one.

        Its start is recorded before it: a command that was cut off is not run again, and the history shows it.
        """
        command = entry.get("hook") and getattr(self.job, entry["hook"])
        if not command:
            return entry
        started = {"job": self.job.name, "run": entry["run"], "hook": entry["hook"], "at": _text(datetime.now(UTC))}
        self.history.append(started)
        files = [str(self.schedule.root / file) for file in entry.get("files", ())]
        told = {
            "RDMALAB_JOB": self.job.name, "RDMALAB_STATUS": entry["status"], "RDMALAB_FILES": "\n".join(files),
            "RDMALAB_ERROR": entry.get("error") or "", "RDMALAB_LOG": str(self.schedule.root / entry["log"]),
        }  # fmt: skip
        try:
            done = subprocess.run(
                command, cwd=self.schedule.root, env={**os.environ, **told}, stdin=subprocess.DEVNULL,
                capture_output=True, text=True, errors="replace", check=False,
            )  # fmt: skip
            status, said = done.returncode, done.stdout + done.stderr
        except OSError as error:
            status, said = 127, f"{command[0]}: {(error.strerror or str(error)).lower()}"
        self._say(f"{entry['hook']}: exit {status}\n{said}".rstrip())
        self.history.append(started | {"at": _text(datetime.now(UTC)), "exit": status})
        return entry | {"hook_exit": status}

    # -- what was before -------------------------------------------------------------------------------------------

    def recover(self) -> None:
        """Finishes the delivery of a run that was killed after its commit; of one killed before, nothing is left."""
        if self.commit.exists():
            self._deliver(json.loads(self.commit.read_text(encoding="utf-8")))
        shutil.rmtree(self.staging, ignore_errors=True)
        events = self.history.events(self.job.name)
        ended = [e for e in events if e.get("hook") and "status" in e]
        if ended and not [e for e in events if e["run"] == ended[-1]["run"] and "status" not in e]:
            self._hook(ended[-1])

    def _delivered_last(self, key: str) -> bool:
        """Whether these reports, of these data, are what was delivered last, and are still there."""
        runs = [run for run in self.history.runs(self.job.name) if run["status"] == "delivered"]
        return (
            bool(runs) and runs[-1]["key"] == key and all((self.schedule.root / f).exists() for f in runs[-1]["files"])
        )

    def _prune(self) -> None:
        """Removes the files of deliveries beyond ``keep``, and those that a later one in the same folder left out."""
        kept: set[str] = set()
        folders: set[str] = set()
        count = 0
        for run in reversed([run for run in self.history.runs(self.job.name) if run["status"] == "delivered"]):
            own = {str(Path(file).parent) for file in run["files"]}
            if not own <= folders and (self.job.keep is None or count < self.job.keep):
                kept |= {file for file in run["files"] if str(Path(file).parent) not in folders}
                folders |= own
                count += 1
            for file in set(run["files"]) - kept:
                self._remove(self.schedule.root / file)
        for log in sorted((self.schedule.state / "logs").glob(f"{self.job.name}-2*"))[:-_LOGS_KEPT]:
            log.unlink()

    def _remove(self, file: Path) -> None:
        """A delivered file, and the folders that it leaves empty, up to the place where the pattern begins."""
        if not (file.is_relative_to(self.base) and file.exists()):
            return
        file.unlink()
        for folder in file.parents:
            if folder == self.base or not folder.is_dir() or any(folder.iterdir()):
                return
            folder.rmdir()

    # -- parts -----------------------------------------------------------------------------------------------------

    @property
    def _store(self) -> Store:
        return Store(self.schedule.db)

    @cached_property
    def _orders(self) -> list[Order]:
        return [
            report.order(self._store, self.staging / str(number), self.schedule.root)
            for number, report in enumerate(self.job.reports)
        ]

    @cached_property
    def key(self) -> str:
        """Changes with the notebooks, the parameters and the data."""
        parts = [
            (order.notebook_sha256, order.values, order.formats,
             evidence(self._store, order.values.get("campaign") or None)["sha256"])
            for order in self._orders
        ]  # fmt: skip
        return hashlib.sha256(json.dumps(parts, sort_keys=True).encode()).hexdigest()

    def _keep_notebooks(self, words: str) -> str:
        """Moves the partial notebooks of a failed run to the logs; the words of the error then name that place."""
        for notebook in self.staging.glob("*/*.failed.ipynb"):
            kept = self.log.with_name(f"{self.log.stem}-{notebook.name}")
            notebook.replace(kept)
            words = words.replace(str(notebook), str(kept))
        return words

    def _entry(self, status: str, **more: Any) -> Entry:
        log = self.log.relative_to(self.schedule.root) if self.log.is_relative_to(self.schedule.root) else self.log
        return {
            "job": self.job.name, "run": self.name, "at": _text(self.now), "ended": _text(datetime.now(UTC)),
            "due": _text(self.due) if self.due else None, "status": status, "log": str(log), **more,
        }  # fmt: skip

    def _record(self, status: str, **more: Any) -> Entry:
        entry = self._entry(status, **more)
        self.history.append(entry)
        return entry

    def _say(self, text: str) -> None:
        self.log.parent.mkdir(parents=True, exist_ok=True)
        with self.log.open("a", encoding="utf-8") as file:
            file.write(text + "\n")


def _text(moment: datetime) -> str:
    return moment.astimezone(UTC).isoformat(timespec="seconds")


def _write_whole(path: Path, text: str) -> None:
    new = path.with_suffix(".new")
    new.write_text(text, encoding="utf-8")
    new.replace(path)


@contextlib.contextmanager
def _lock(schedule: Schedule, job: Job) -> Iterator[None]:
    """Excludes a second run of the job; the system lets go when the process dies, however it dies."""
    try:
        schedule.state.mkdir(parents=True, exist_ok=True)
        stream = (schedule.state / f"{job.name}.lock").open("a+", encoding="utf-8")
    except OSError as error:
        raise UsageError(f"{schedule.state}: cannot be written ({(error.strerror or str(error)).lower()})") from None
    with stream:
        try:
            fcntl.flock(stream, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError:
            stream.seek(0)
            holder = stream.read().strip() or "another process"
            raise Busy(f"{job.name}: {holder} is running this job; nothing was done") from None
        stream.truncate(0)
        stream.write(f"process {os.getpid()} on {socket.gethostname()}, since {_text(datetime.now(UTC))},")
        stream.flush()
        yield


def crontab(schedule: Schedule) -> str:
    """The line for a crontab; time zones and missed runs are the work of ``--due``."""
    command = " ".join(_quoted(word) for word in _command(schedule)).replace("%", r"\%")
    return f"# Every five minutes, what is due. Install with: crontab -e\n*/5 * * * * {command}\n"


def systemd(schedule: Schedule) -> str:
    """The texts of a service and its timer."""
    words = [word.replace("%", "%%").replace("$", "$$") for word in _command(schedule)]
    command = " ".join(_quoted(word, '"') for word in words)
    return f"""\
# ~/.config/systemd/user/rdmalab.service
[Unit]
Description=Scheduled reports of {str(schedule.path).replace("%", "%%")}

[Service]
Type=oneshot
ExecStart={command}

# ~/.config/systemd/user/rdmalab.timer; install with: systemctl --user enable --now rdmalab.timer
[Unit]
Description=Every five minutes, what is due

[Timer]
OnCalendar=*:0/5
Persistent=true

[Install]
WantedBy=timers.target
"""


def _command(schedule: Schedule) -> list[str]:
    return [sys.executable, "-m", "rdmalab", "schedule", "run", "--due", "--quiet", "--schedule", str(schedule.path)]


def _quoted(word: str, mark: str = "") -> str:
    """A word for a shell, or with *mark* for systemd."""
    import shlex

    if not mark:
        return shlex.quote(word)
    return mark + word.replace("\\", r"\\").replace('"', r"\"") + mark if re.search(r"[\s\"'\\;]", word) else word
