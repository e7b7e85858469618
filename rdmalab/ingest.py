"""Logs into the store, in three steps: plan, map, commit.

plan    lists the files and leaves out what the store has read before
map     a pure function from paths to one Parquet part a table, named by its content; any ``Executor`` may run it,
        may run it twice, and may lose a worker in the middle
commit  one process, one transaction: the parts, the paths, the places in campaigns, the limits
"""

import ctypes
import gc
import os
import signal
import tempfile
from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Sequence
from concurrent.futures import Executor, ProcessPoolExecutor, as_completed
from contextlib import contextmanager, suppress
from dataclasses import asdict, dataclass, field
from datetime import UTC, datetime
from itertools import chain
from multiprocessing import get_context
from pathlib import Path
from typing import Any

import rdmalab
from rdmalab import campaign as campaigns
from rdmalab import sources
from rdmalab.errors import CampaignError, UsageError
from rdmalab.membership import remove_campaign, write_memberships
from rdmalab.model import Log
from rdmalab.parts import log_id_of, write_parts
from rdmalab.store import LOG_TABLES, Store, Writer

_FILES_A_TASK = 1000
_SERIAL_BELOW = 64  # starting workers costs more than reading this many logs
Progress = Callable[[int, int], None]


@dataclass(frozen=True)
class Part:
    """What one task of the map brings: Parquet files by table, and what it read."""

    tables: dict[str, str]
    read: tuple[tuple[str, str, str], ...]  # (path, file, log_id)
    whole: tuple[str, ...]  # files of which nothing was skipped
    skipped: tuple[sources.Skipped, ...]


@dataclass
class Receipt:
    """What an ingest did, in counts and in words."""

    files: int = 0
    read: int = 0
    already_known: int = 0
    same_content: int = 0
    new_logs: int = 0
    runs: int = 0
    samples: int = 0
    readings: int = 0
    notes: int = 0
    by_status: dict[str, int] = field(default_factory=dict)
    not_read: list[dict[str, str]] = field(default_factory=list)
    unrecognised: list[str] = field(default_factory=list)
    failed: list[str] = field(default_factory=list)
    campaigns: dict[str, int] = field(default_factory=dict)
    remarks: list[str] = field(default_factory=list)

    def lines(self, store: Path) -> list[str]:
        """The receipt for people."""
        shown = [
            f"{self.files} files: {self.read} logs read, {self.already_known} files already known, "
            f"{self.same_content} logs of known content, {len(self.unrecognised)} unrecognised, "
            f"{len(self.failed)} failed, {len(self.not_read)} not readable",
            f"new: {self.new_logs} logs, {self.runs} runs, {self.samples} rows, {self.readings} readings, "
            f"{self.notes} notes",
        ]
        shown += [f"campaign {name}: {count} runs" for name, count in self.campaigns.items()]
        shown += [f"not read: {s['path']}: {s['reason']}" for s in self.not_read]
        shown += _some("unrecognised: ", self.unrecognised)
        shown += _some("failed: ", self.failed)
        shown += _some("", self.remarks)
        return [*shown, f"store: {store}"]

    def entry(self) -> dict[str, Any]:
        """The row of the store's table of ingests: counts of what was found and of what is new."""
        same = ("files", "already_known", "new_logs", "runs", "samples", "readings", "notes")
        counts = {name: len(getattr(self, name)) for name in ("failed", "unrecognised", "not_read")}
        return {
            "ingested_at": datetime.now(UTC), "campaigns": sorted(self.campaigns), **counts,
            **{name: getattr(self, name) for name in same},
        }  # fmt: skip

    def to_dict(self) -> dict[str, Any]:
        """For ``--json``."""
        return asdict(self)


def _some(prefix: str, items: list[str], most: int = 10) -> list[str]:
    more = [f"{prefix}and {len(items) - most} more (--json lists all)"] if len(items) > most else []
    return [prefix + item for item in items[:most]] + more


def ingest(
    paths: Sequence[str | Path],
    store: Store,
    *,
    campaign: str | None = None,
    executor: Executor | None = None,
    staging: str | Path | None = None,
    progress: Progress | None = None,
) -> Receipt:
    """
    Reads logs into the store; what is there already, by content, is not read again.

    Args:
        paths: Files, folders and archives.
        campaign: Name for logs that no campaign file rules. Default: ``default``.
        executor: Runs the map when there is enough to do, see :func:`worker_processes`; default: this process.
        staging: A folder that all workers see, for the time of the ingest. Default: that of temporary files.
        progress: Called with (files done, files to do).

    Raises:
        UsageError: A path does not exist.
        CampaignError: A campaign file beside the logs is wrong; nothing is stored then.
        StoreError: The store is locked, foreign, newer or damaged.
    """
    files, skipped = list_files(paths)
    loaded = load_campaigns(f.path for f in files)  # a wrong campaign file is said before an hour of reading
    fresh = plan(files, store)
    if staging:
        Path(staging).mkdir(parents=True, exist_ok=True)
    with tempfile.TemporaryDirectory(prefix="rdmalab-", dir=staging) as folder:
        parts = list(map_files([f.path for f in fresh], folder, executor, progress))
        return store_parts(store, files, fresh, skipped, parts, loaded, campaign)


def store_parts(
    store: Store,
    files: list[sources.File],
    fresh: list[sources.File],
    skipped: list[sources.Skipped],
    parts: list[Part],
    loaded: dict[Path, campaigns.Campaign],
    campaign: str | None,
) -> Receipt:
    """The last step: what was read of the *fresh* ones among *files*, in one transaction."""
    receipt = Receipt(files=len(files), already_known=len(files) - len(fresh), not_read=[asdict(s) for s in skipped])
    with store.write() as writer:
        read = commit(writer, fresh, parts, receipt)
        receipt.campaigns, receipt.remarks = write_memberships(writer, {f.path for f in files}, loaded, campaign)
        _count(writer, read, receipt)
        writer.insert("ingests", [receipt.entry()])
    return receipt


def list_files(paths: Iterable[str | Path]) -> tuple[list[sources.File], list[sources.Skipped]]:
    """
    The files under *paths*, each once and with its absolute path, without campaign files; and what is no file.

    Raises:
        UsageError: A path does not exist.
    """
    paths = list(paths)
    if "-" in paths:
        raise UsageError(
            "standard input cannot be found again, so it is not stored; save it to a file, or see it with "
            "'rdmalab parse -'"
        )
    try:
        found = list(sources.find(paths))
    except FileNotFoundError as error:
        raise UsageError(f"{error}: no such file or folder") from None
    files = {path: f._replace(path=path) for f in found if isinstance(f, sources.File) and (path := _log_path(f.path))}
    return list(files.values()), [s for s in found if isinstance(s, sources.Skipped)]


def _log_path(path: str) -> str | None:
    """The absolute path of a file, None of a document beside the logs: a campaign file, a spec, claims."""
    return None if path.endswith(".toml") else os.path.abspath(path)


def plan(files: list[sources.File], store: Store) -> list[sources.File]:
    """The files that this version has not read yet in this size and age."""
    if not store.path.exists():
        return files
    con = store.connect()
    rows = con.execute(
        "SELECT file, size_bytes, modified_ns FROM raw.files WHERE reader = $r", {"r": rdmalab.__version__}
    ).fetchall()
    con.close()
    known = {name: (size, modified) for name, size, modified in rows}
    return [f for f in files if known.get(f.path) != (f.size_bytes, f.modified_ns)]


def map_files(paths: list[str], staging: str, executor: Executor | None, progress: Progress | None) -> Iterator[Part]:
    """Runs :func:`read_files` over the paths in tasks; parts come in any order."""
    if len(paths) < _SERIAL_BELOW:
        executor = None
    size = _FILES_A_TASK
    if executor:  # enough tasks for all workers, small enough that to lose one costs little
        size = max(1, min(_FILES_A_TASK // 4, -(-len(paths) // (4 * (os.cpu_count() or 1)))))
    tasks = [paths[i : i + size] for i in range(0, len(paths), size)]
    done = 0
    for part, count in _run(tasks, staging, executor):
        done += count
        if progress:
            progress(done, len(paths))
        yield part


def _run(tasks: list[list[str]], staging: str, executor: Executor | None) -> Iterator[tuple[Part, int]]:
    if executor is None:
        yield from ((read_files(t, staging), len(t)) for t in tasks)
    else:
        futures = {executor.submit(read_files, t, staging): len(t) for t in tasks}
        yield from ((f.result(), futures[f]) for f in as_completed(futures))


def worker_processes(count: int | None = None) -> Executor:
    """Worker processes for :func:`ingest`; they start when there is enough to do. A script needs its main guard."""
    # spawn, because polars must not be forked; one thread each, because the workers are the parallelism
    os.environ.setdefault("POLARS_MAX_THREADS", "1")
    return ProcessPoolExecutor(count, mp_context=get_context("spawn"), initializer=_end_with_the_parent)


def _end_with_the_parent() -> None:
    """A worker ends when the ingest is killed; nobody else would ever end it."""
    with suppress(OSError, AttributeError):  # Linux only
        ctypes.CDLL(None).prctl(1, signal.SIGTERM)  # PR_SET_PDEATHSIG of prctl(2)


def read_files(paths: Sequence[str], staging: str) -> Part:
    """Reads files and archives and writes one Parquet part a table, named by the content of the logs."""
    with _no_collector():
        return _read_files(paths, staging)  # whose records are gone when it returns


def _read_files(paths: Sequence[str], staging: str) -> Part:
    from rdmalab import formats

    logs: dict[str, Log] = {}
    read: list[tuple[str, str, str]] = []
    whole: list[str] = []
    skipped: list[sources.Skipped] = []
    for path in paths:
        before = len(skipped)
        for text in sources.texts(path):
            if isinstance(text, sources.Skipped):
                skipped.append(text)
                continue
            log = formats.read(text)
            read.append((text.path, path, log_id_of(log)))
            logs.setdefault(log.sha256, log)
        if len(skipped) == before:
            whole.append(path)
    return Part(write_parts(logs, Path(staging)), tuple(read), tuple(whole), tuple(skipped))


@contextmanager
def _no_collector() -> Iterator[None]:
    """Records hold no cycles, and to look for some in a hundred thousand of them again and again costs a tenth."""
    enabled = gc.isenabled()
    gc.disable()
    try:
        yield
    finally:
        if enabled:
            gc.enable()


def load_campaigns(paths: Iterable[str]) -> dict[Path, campaigns.Campaign]:
    """
    The campaign files that rule *paths*.

    Raises:
        CampaignError: One is wrong, or two of them have the same name.
    """
    folders: dict[str, Path | None] = {}
    files = {f for p in paths if (f := campaigns.nearest(p, folders))}
    loaded = {f: campaigns.load(f) for f in sorted(files)}
    by_name: dict[str, Path] = {}
    for path, loaded_campaign in loaded.items():
        if (other := by_name.setdefault(loaded_campaign.name, path)) != path:
            raise CampaignError(f"{path}: the campaign '{loaded_campaign.name}' is also the name of {other}")
    return loaded


def commit(
    writer: Writer, fresh: list[sources.File], parts: list[Part], receipt: Receipt
) -> list[tuple[str, str, bool]]:
    """Writes parts and paths inside the writer's transaction. Returns (path, log_id, whether new) of what was read."""
    read = [entry for part in parts for entry in part.read]
    new = _add_logs(writer, parts, {log_id for _, _, log_id in read})
    _set_paths(writer, read, fresh, {file for part in parts for file in part.whole})
    receipt.read, receipt.new_logs, receipt.same_content = len(read), len(new), len(read) - len(new)
    receipt.not_read += [asdict(s) for part in parts for s in part.skipped]
    return [(path, log_id, log_id in new) for path, _, log_id in read]


def _add_logs(writer: Writer, parts: list[Part], log_ids: set[str]) -> set[str]:
    """Adds the logs that are not there yet in this reading; a log read by an older version is replaced."""
    ids = {"ids": sorted(log_ids)}
    known = dict(writer.frame("SELECT log_id, reader FROM raw.logs WHERE log_id IN (SELECT unnest($ids))", ids).rows())
    new = {log_id for log_id in log_ids if known.get(log_id) != rdmalab.__version__}
    if new:
        _remove_rows(writer, LOG_TABLES, sorted(new & known.keys()))
        whole, mixed = _sorted_by_use(parts, new)
        for table in LOG_TABLES:
            writer.append_parts(table, sorted(p.tables[table] for p in whole))
            writer.append_logs(table, sorted(p.tables[table] for p in mixed), new)
    return new


def _sorted_by_use(parts: list[Part], new: set[str]) -> tuple[list[Part], list[Part]]:
    """Parts whose logs are all new and stand in no other part, which is simple and most; and the rest."""
    different = {p.tables["logs"]: p for p in parts}.values()  # the same content twice is the same file
    held = [{log_id for _, _, log_id in p.read} for p in different]
    times = Counter(chain.from_iterable(held))
    whole: list[Part] = []
    mixed: list[Part] = []
    for part, log_ids in zip(different, held, strict=True):
        simple = log_ids <= new and all(times[log_id] == 1 for log_id in log_ids)
        (whole if simple else mixed).append(part)
    return whole, mixed


def _set_paths(writer: Writer, read: list[tuple[str, str, str]], fresh: list[sources.File], whole: set[str]) -> None:
    """
    Gives every path its log; a content that has no path any more goes.

    Only files that were read whole are known from now on: what could not be read is tried again.
    """
    again = {"names": sorted(whole | {file for _, file, _ in read})}
    before = writer.frame("SELECT log_id FROM raw.paths WHERE file IN (SELECT unnest($names))", again)
    for table in ("files", "paths"):
        writer.run(f"DELETE FROM raw.{table} WHERE file IN (SELECT unnest($names))", again)
    known = [(*f, rdmalab.__version__) for f in fresh if f.path in whole]
    writer.insert_rows("files", ("file", "size_bytes", "modified_ns", "reader"), known)
    writer.insert_rows("paths", ("path", "file", "log_id"), read)
    left = set(writer.frame("SELECT DISTINCT log_id FROM raw.paths")["log_id"]) if len(before) else set()
    _remove_rows(writer, (*LOG_TABLES, "members", "places", "paths"), sorted(set(before["log_id"]) - left))


def _remove_rows(writer: Writer, tables: Iterable[str], log_ids: list[str]) -> None:
    if log_ids:
        for table in tables:
            writer.run(f"DELETE FROM raw.{table} WHERE log_id IN (SELECT unnest($ids))", {"ids": log_ids})


def _count(writer: Writer, read: list[tuple[str, str, bool]], receipt: Receipt) -> None:
    ids = {"ids": sorted({log_id for _, log_id, new in read if new})}
    rows = {"runs": "count(*)", "samples": "coalesce(sum(rows), 0)", "readings": "count(*)", "notes": "count(*)"}
    for name, count in rows.items():
        table = "runs" if name == "samples" else name
        found = writer.frame(f"SELECT {count} AS n FROM raw.{table} WHERE log_id IN (SELECT unnest($ids))", ids)
        setattr(receipt, name, int(found["n"][0]))
    logs = writer.frame("SELECT log_id, status FROM raw.logs WHERE log_id IN (SELECT unnest($ids))", ids)
    status = dict(zip(logs["log_id"], logs["status"], strict=True))
    receipt.by_status = dict(Counter(status.values()))
    receipt.unrecognised = sorted(p for p, i, _ in read if status.get(i) == "unrecognised")
    receipt.failed = sorted(p for p, i, _ in read if status.get(i) == "failed")


def forget(store: Store, *, log: str | None = None, campaign: str | None = None) -> int:
    """
    Removes a log, or a whole campaign with the logs that stand in no other one. Returns the number of logs removed.

    Raises:
        UsageError: No log's id or hash begins like that, or there is no such campaign.
    """
    with store.write() as writer:
        if log is not None:
            gone = _log_beginning_with(writer, log)
        else:
            gone = _logs_only_of(writer, campaign)
            remove_campaign(writer, str(campaign))
        writer.run(
            "DELETE FROM raw.files WHERE file IN (SELECT file FROM raw.paths WHERE log_id IN (SELECT unnest($ids)))",
            {"ids": gone},
        )
        _remove_rows(writer, (*LOG_TABLES, "members", "places", "paths"), gone)
        return len(gone)


def _log_beginning_with(writer: Writer, log: str) -> list[str]:
    ids = writer.frame("SELECT log_id FROM raw.logs WHERE starts_with(sha256, $log)", {"log": log.lower()})
    if len(ids) != 1:
        what = f"{len(ids) or 'no'} log{'s' if len(ids) else ''}"
        raise UsageError(f"{what} with an id that begins with '{log}'; 'rdmalab query \"FROM logs\"' lists them")
    return ids["log_id"].to_list()


def _logs_only_of(writer: Writer, campaign: str | None) -> list[str]:
    known = writer.frame("SELECT campaign FROM raw.members UNION SELECT campaign FROM raw.campaigns")["campaign"]
    if campaign not in set(known):
        raise UsageError(f"no campaign '{campaign}' in this store; it has: {', '.join(sorted(known)) or 'none'}")
    ids = writer.frame("SELECT log_id FROM raw.members GROUP BY log_id HAVING bool_and(campaign = $c)", {"c": campaign})
    return ids["log_id"].to_list()
