"""mllog: the lines of MLPerf training, which stand among all other output of a job.

    :::MLLOG {"namespace": "", "time_ms": 1728602167490, "event_type": "INTERVAL_END", "key": "run_stop", ...}

The time to train is from ``run_start`` to ``run_stop``, and only where the run reached its target: a run that was
aborted has none.
"""

import re
from dataclasses import dataclass
from datetime import UTC, datetime
from typing import Any

from rdmalab.formats._json import decoded, finite
from rdmalab.formats._lines import unprefixed
from rdmalab.formats._telemetry import Found
from rdmalab.model import Parsed, Reading
from rdmalab.sources import Text

NAME = "mllog"
EXAMPLE = ':::MLLOG {"namespace": "", "time_ms": 1728602167490, "key": "run_stop", "metadata": {"status": "success"}}'
HINTS = (b":::MLLOG",)
SIGNATURE = re.compile(rb":::MLLOG \{")

_MARK = ":::MLLOG "
_ANCHOR = re.compile(re.escape(_MARK))


@dataclass
class _Run:
    """One training, from its benchmark's name to its ``run_stop``."""

    benchmark: str | None = None
    started: tuple[int, float] | None = None  # line, time_ms


def parse(text: Text) -> Parsed:
    """``time_to_train_s`` of each run that succeeded, and the throughput it tracked on its way."""
    found = Found()
    runs: dict[str, _Run] = {}
    for line, tag, content in unprefixed(text, _ANCHOR):
        at = content.find(_MARK)
        if at < 0:
            continue
        event = decoded(content, at + len(_MARK))
        time_ms = finite(event.get("time_ms")) if isinstance(event, dict) else None
        if time_ms is None:
            found.torn(line, content[at:])
        else:
            _event(found, runs.setdefault(tag, _Run()), line, time_ms, event)
    for run in runs.values():
        _unfinished(found, run)
    return Parsed(readings=tuple(found.readings), notes=tuple(found.notes))


def _event(found: Found, run: _Run, line: int, time_ms: float, event: dict[str, Any]) -> None:
    key, value = event.get("key"), event.get("value")
    if key == "submission_benchmark" and isinstance(value, str):
        run.benchmark = value
    elif key == "run_start":
        _unfinished(found, run)
        run.started = line, time_ms
    elif key == "run_stop":
        _stop(found, run, line, time_ms, event.get("metadata"))
    elif key == "tracked_stats" and isinstance(value, dict) and (rate := finite(value.get("throughput"))) is not None:
        found.readings.append(Reading(metric="throughput", value=rate, read_at=_moment(time_ms), line=line))


def _stop(found: Found, run: _Run, line: int, time_ms: float, metadata: Any) -> None:
    status = metadata.get("status") if isinstance(metadata, dict) else None
    name = run.benchmark or "The training"
    started, run.started = run.started, None
    if started is None:
        found.note(line, "stop_without_start", f"{name}: run_stop with status {status}, but no run_start before it.")
        return
    seconds = (time_ms - started[1]) / 1000
    if seconds <= 0:
        found.note(line, "times_disagree", f"{name}: run_stop is not later than run_start; no time to train is read.")
        return
    if status == "success":
        at = _moment(time_ms)
        found.readings.append(Reading(metric="time_to_train_s", value=seconds, unit="s", read_at=at, line=line))
        found.note(line, "run_status", f"{name}: run_stop with status success.")
    else:
        text = f"{name}: run_stop with status {status} after {seconds:g} s, which is no time to train."
        found.note(line, "run_status", text)


def _unfinished(found: Found, run: _Run) -> None:
    """A run that was started and not stopped, at the end of the log or where the next one starts."""
    if run.started:
        name = run.benchmark or "The training"
        found.note(run.started[0], "start_without_stop", f"{name}: run_start without a run_stop; no time to train.")
        run.started = None


def _moment(time_ms: float) -> datetime | None:
    return datetime.fromtimestamp(time_ms / 1000, UTC) if 0 < time_ms < 1e14 else None
