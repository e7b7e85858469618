"""The file ``schedule.toml``: which reports are made when, from which logs, and what happens with them."""

import re
import zoneinfo
from collections import Counter
from collections.abc import Iterator
from dataclasses import dataclass
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

from rdmalab.errors import UsageError, did_you_mean
from rdmalab.orders import Wanted, fill
from rdmalab.store import default_path
from rdmalab.toml_records import Reader, read_toml

FILE_NAME = "schedule.toml"


@dataclass(frozen=True, kw_only=True)
class Ingest:
    """What a job reads before it reports."""

    paths: tuple[str, ...]
    campaign: str | None = None


@dataclass(frozen=True, kw_only=True)
class Job:
    """Reports that are made together, or not at all."""

    name: str
    cron: str
    timezone: str = "UTC"
    out: str = "reports/{job}/{date}"
    keep: int | None = None
    check: str | None = None
    on_success: tuple[str, ...] = ()
    on_failure: tuple[str, ...] = ()
    ingest: Ingest | None = None
    reports: tuple[Wanted, ...] = ()

    @property
    def zone(self) -> zoneinfo.ZoneInfo:
        """The time zone of cron and of ``{date}``."""
        return zoneinfo.ZoneInfo(self.timezone)

    def times(self, after: datetime) -> Iterator[datetime]:
        """
        When the job is to run, in UTC, from *after* on.

        As Debian's cron does: a time that the change to summer time skips comes right after it, and one that occurs
        twice in autumn comes once. Jobs of every hour or minute follow the clock.
        """
        from cronsim import CronSim

        return (time.astimezone(UTC) for time in CronSim(self.cron, after.astimezone(self.zone)))

    def due(self, handled: datetime | None, now: datetime) -> datetime | None:
        """
        The latest time that has come since *handled*; None when there is none.

        However many were missed, it is one. A job that never ran is due: for the last time before now.
        """
        from cronsim import CronSim

        if handled is None:
            return next(CronSim(self.cron, now.astimezone(self.zone), reverse=True)).astimezone(UTC)
        latest = None
        for time in self.times(handled):
            if time > now:
                break
            latest = time
        return latest

    def folders(self, now: datetime) -> list[str]:
        """The folder of each report when the job runs at *now*."""
        local = now.astimezone(self.zone)
        words = {"job": self.name, "date": f"{local:%Y-%m-%d}", "time": f"{local:%H%M}"}
        return [fill(self.out, words | report.words()) for report in self.reports]


@dataclass(frozen=True, kw_only=True)
class Schedule:
    """A schedule file, read and checked."""

    path: Path
    db: Path
    state: Path
    jobs: tuple[Job, ...]

    @property
    def root(self) -> Path:
        """The folder that paths are relative to."""
        return self.path.parent

    def job(self, name: str) -> Job:
        """
        The job of that name.

        Raises:
            UsageError: There is none.
        """
        known = {job.name: job for job in self.jobs}
        if name not in known:
            raise UsageError(
                f"{self.path}: no job '{name}'; there is: {', '.join(known)}.{did_you_mean(name, list(known))}"
            )
        return known[name]


@dataclass(frozen=True, kw_only=True)
class _Head:
    """The table [schedule]."""

    db: str | None = None
    state: str = ".rdmalab-schedule"


def load(path: str | Path, db: str | None = None) -> Schedule:
    """
    Reads and checks a schedule file.

    Args:
        db: The store; default: that of the file, else as everywhere, looked for from the folder of the file upwards.

    Raises:
        UsageError: The file cannot be read, or something in it is wrong; the message names the line.
    """
    path = Path(path).absolute()
    _, text, document = read_toml(path)
    reader = _Reader(path, text)
    for key in document:
        if key not in ("schedule", "job"):
            reader.fail(key, f"unknown table '{key}'.{did_you_mean(key, ['schedule', 'job'])}")
    head = document.get("schedule", {})
    if not isinstance(head, dict):
        reader.fail("schedule", "write [schedule] as a table")
    settings = _Head(**reader.record(_Head, "schedule", 0, head, given={}))
    named = Path(db).absolute() if db else path.parent / settings.db if settings.db else default_path(path.parent)
    return Schedule(path=path, db=named, state=path.parent / settings.state, jobs=reader.jobs(document))


class _Reader(Reader):
    """Turns the tables of a schedule into jobs."""

    def __init__(self, path: Path, text: str) -> None:
        super().__init__(path, text)
        self.seen: Counter[str] = Counter()  # of tables inside jobs: the file counts them over all jobs
        self.index = 0  # of the job that is read

    def jobs(self, document: dict[str, Any]) -> tuple[Job, ...]:
        """All jobs."""
        jobs = tuple(self.job(index, table) for index, table in enumerate(self.array(document, "job")))
        if not jobs:
            self.fail("job", "no job; write [[job]] for each")
        for index, job in enumerate(jobs):
            if job.name in [other.name for other in jobs[:index]]:
                self.fail("name", f"two jobs are named '{job.name}'", "job", index)
        return jobs

    def job(self, index: int, table: dict[str, Any]) -> Job:
        """One job."""
        self.index = index
        inner: dict[str, Any] = {key: table[key] for key in ("ingest", "report") if key in table}
        values = {key: value for key, value in table.items() if key not in inner}
        values = self.record(Job, "job", index, values, given={}, nested=("ingest", "reports"))
        reports = self.array(inner, "report")
        if not reports:
            self.fail("job", "a job needs a report: [[job.report]]", "job", index)
        values["reports"] = tuple(self.inner(Wanted, "job.report", report) for report in reports)
        if "ingest" in inner:
            if not isinstance(inner["ingest"], dict):
                self.fail("ingest", "write ingest as a table: [job.ingest]", "job", index)
            values["ingest"] = self.inner(Ingest, "job.ingest", inner["ingest"])
        job = Job(**values)
        self.check(job, index)
        return job

    def inner(self, kind: type, table: str, values: dict[str, Any]) -> Any:
        """A table inside a job."""
        self.seen[table] += 1
        return kind(**self.record(kind, table, self.seen[table] - 1, values, given={}))

    def line_of(self, key: str, table: str | None, index: int) -> int:
        """As everywhere; a table that is written in one line stands in that of its job."""
        line = super().line_of(key, table, index)
        if line == 1 and table and table.startswith("job."):
            return super().line_of(table.removeprefix("job."), "job", self.index)
        return line

    def check(self, job: Job, index: int) -> None:
        """What would only fail when the time has come."""
        from cronsim import CronSim, CronSimError

        if not re.fullmatch(r"\w[\w.-]*", job.name):
            self.fail("name", "the name of a job is a word of letters, digits, '.', '_' and '-'", "job", index)
        if job.keep is not None and job.keep < 1:
            self.fail("keep", "keep must be greater than 0", "job", index)
        try:
            if len(job.cron.split()) != 5:
                raise CronSimError("five fields are wanted: minute, hour, day, month, weekday")
            next(CronSim(job.cron, datetime(2026, 1, 1, tzinfo=UTC)))
        except (CronSimError, StopIteration) as error:
            why = str(error) or "no such day"
            self.fail("cron", f"'{job.cron}' is no cron expression ({why[0].lower()}{why[1:]})", "job", index)
        try:
            zone = job.zone
        except (zoneinfo.ZoneInfoNotFoundError, ValueError, OSError):
            known = sorted(zoneinfo.available_timezones())
            self.fail("timezone", f"no time zone '{job.timezone}'.{did_you_mean(job.timezone, known)}", "job", index)
        try:
            folders = job.folders(datetime.now(zone))
        except UsageError as error:
            self.fail("out", str(error), "job", index)
        if len(set(folders)) < len(folders):
            self.fail(
                "out", "two reports of the job go to the same folder; add {notebook}, {lang} or a parameter to out",
                "job", index,
            )  # fmt: skip
