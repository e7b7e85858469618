"""Logs as columns: one Parquet part a table, as the store takes them in.

A part is named by the content of its logs and published by a rename, so that a task that is run twice, or is killed
in the middle, leaves nothing wrong behind.
"""

import hashlib
import os
from collections.abc import Iterable, Sequence
from dataclasses import fields, replace
from itertools import chain, repeat
from operator import attrgetter
from pathlib import Path
from typing import TYPE_CHECKING, Any

import rdmalab
from rdmalab.model import Log, Note, Reading, Run, Samples
from rdmalab.store import frame_of_columns

if TYPE_CHECKING:
    import polars as pl

_PROOF = ("verdict", "gdr", "fallback", "fallback_reason", "provider")
_RUN = [f.name for f in fields(Run) if f.name != "samples"]
_READING = [f.name for f in fields(Reading)]
Columns = dict[str, Sequence[Any]]


def write_parts(logs: dict[str, Log], staging: Path) -> dict[str, str]:
    """Writes the rows of logs, by hash, and returns the Parquet files by table."""
    digest = hashlib.sha256("\n".join(sorted(logs)).encode()).hexdigest()[:24]
    try:
        frames = _frames(list(logs.values()))
    except (TypeError, ValueError):
        frames = _frames([_storable(log) for log in logs.values()])
    tables = {}
    for table, frame in frames.items():
        tables[table] = str(staging / f"{digest}.{table}.parquet")
        unfinished = f"{tables[table]}.{os.getpid()}"
        frame.write_parquet(unfinished, compression="snappy", statistics=False)  # read once and deleted
        Path(unfinished).replace(tables[table])
    return tables


def log_id_of(log: Log) -> str:
    """The first 16 digits of the content's hash."""
    return log.sha256[:16]


def _storable(log: Log) -> Log:
    """*log*, or only a note where it holds what no column can: one log must not end the ingest of the others."""
    try:
        _frames([log])
    except (TypeError, ValueError) as error:  # a number beyond 64 bit, half of a surrogate pair
        reason = str(error).splitlines()[0].encode("utf-8", "replace").decode()
        note = Note(None, "parser_error", f"not stored: {type(error).__name__}: {reason}")
        return replace(log, runs=(), readings=(), notes=(note,), transport=None)
    return log


def _frames(logs: list[Log]) -> dict[str, "pl.DataFrame"]:
    """The rows of all logs by table. Columns are built whole: a row as a dict costs more than reading it."""
    ids = [log_id_of(log) for log in logs]
    runs = [
        (log_id, ordinal, run) for log_id, log in zip(ids, logs, strict=True) for ordinal, run in enumerate(log.runs)
    ]
    readings = [log.readings for log in logs]
    notes = [log.notes for log in logs]
    content: dict[str, Columns] = {
        "logs": _logs(ids, logs),
        "runs": _runs(runs),
        "samples": _samples(runs),
        "readings": {"log_id": _each(ids, readings), **_attributes(_READING, chain.from_iterable(readings))},
        "notes": {"log_id": _each(ids, notes), **_attributes(Note._fields, chain.from_iterable(notes))},
    }
    return {table: frame_of_columns(table, columns) for table, columns in content.items()}


def _logs(ids: list[str], logs: list[Log]) -> Columns:
    proofs = [log.transport for log in logs]
    return {
        "log_id": ids,
        **_attributes(("sha256", "size_bytes", "formats", "status"), logs),
        "reader": [rdmalab.__version__] * len(logs),
        **{f"transport_{name}": [getattr(proof, name, None) for proof in proofs] for name in _PROOF},
        "transport_evidence": ["\n".join(f"{e.line}: {e.text}" for e in p.evidence) if p else None for p in proofs],
    }


def _runs(runs: list[tuple[str, int, Run]]) -> Columns:
    return {
        "run_id": [f"{log_id}-{ordinal}" for log_id, ordinal, _ in runs],
        "log_id": [log_id for log_id, _, _ in runs],
        "ordinal": [ordinal for _, ordinal, _ in runs],
        **_attributes(_RUN, (run for _, _, run in runs)),
        "rows": [len(run.samples) for _, _, run in runs],
        "wrong_rows": [sum(map(bool, Samples.of(run.samples).column("wrong"))) for _, _, run in runs],
        "pair_key": [_pair_key(run) for _, _, run in runs],
    }


def _pair_key(run: Run) -> str | None:
    """The same text for both ends of one point-to-point test: their addresses name each other."""
    if run.local_address and run.remote_address and run.local_address != run.remote_address:
        return " | ".join([run.program or run.tool, *sorted((run.local_address, run.remote_address))])
    return None


def _samples(runs: list[tuple[str, int, Run]]) -> Columns:
    samples = [run.samples for _, _, run in runs]
    return {
        "run_id": _each([f"{log_id}-{ordinal}" for log_id, ordinal, _ in runs], samples),
        "log_id": _each([log_id for log_id, _, _ in runs], samples),
        "ordinal": list(chain.from_iterable(range(len(of_run)) for of_run in samples)),
        **_below_each_other([Samples.of(of_run) for of_run in samples]),
    }


def _below_each_other(tables: list[Samples]) -> Columns:
    """The columns of all tables that any of them has."""
    columns: dict[str, list[Any]] = {}
    length = 0
    for table in tables:
        for name, cells in table.columns.items():
            column = columns.setdefault(name, [])
            column += [None] * (length - len(column))
            column += cells
        length += len(table)
    for column in columns.values():
        column += [None] * (length - len(column))
    return dict(columns)


def _each(names: list[str], items: Iterable[Sequence[Any]]) -> list[str]:
    """Each name as often as it has items."""
    return list(chain.from_iterable(map(repeat, names, map(len, items))))


def _attributes(names: Sequence[str], records: Iterable[Any]) -> Columns:
    """The fields of records as columns."""
    return dict(zip(names, zip(*map(attrgetter(*names), records), strict=True), strict=False))
