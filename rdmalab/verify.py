"""Whether a delivered report still holds: its notebook run again, its numbers and its logs held against report.json."""

import json
import math
from collections import Counter
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from rdmalab import sources
from rdmalab.errors import NothingToCompare, UsageError
from rdmalab.lab import Lab
from rdmalab.report import prepare, run_again
from rdmalab.store import Store

SAME_WITHIN = 1e-9  # relative: less is the last bits of another processor or library, and no reader ever sees it
_SHOWN = 100
# What tells the rows of a list apart, as far as they have it: a table, a fabric, a size.
_NAMES = ("subject", "name", "id", "requirement", "test", "operation", "fabric", "pair", "size_bytes")


@dataclass(frozen=True)
class Verification:
    """What a report says, held against what it would say now."""

    report: str
    compared: int  # numbers and verdicts
    changes: tuple[str, ...]  # of numbers and verdicts
    logs: tuple[str, ...]  # that changed or are gone
    others: tuple[str, ...]  # versions and notebook: they explain a change and are none

    @property
    def same(self) -> bool:
        """Whether every number, every verdict and every log is what it was."""
        return not (self.changes or self.logs)

    def lines(self) -> list[str]:
        """The answer for a terminal."""
        head = f"{self.report}: {self.compared} numbers and verdicts compared, {len(self.changes)} changed"
        logs = f"logs: {len(self.logs)} changed, gone or new" if self.logs else "logs: all as they were"
        return [head, *_few(self.changes), logs, *_few(self.logs), *self.others]


def _few(lines: tuple[str, ...]) -> list[str]:
    more = [f"  and {len(lines) - _SHOWN} more"] if len(lines) > _SHOWN else []
    return [f"  {line}" for line in lines[:_SHOWN]] + more


def verify(file: Path, store: Store, notebook: str | None = None) -> Verification:
    """
    Runs the report of a ``report.json`` again, with its parameters, on the store as it is now.

    Args:
        file: The ``report.json``.
        store: Where the data are.
        notebook: The notebook, where it is not one that comes with rdmalab.

    Raises:
        UsageError: The file is no ``report.json`` of this version, or its notebook is not found.
        ReportError: The notebook fails.
    """
    before = _load(file)
    name = notebook or before["report"]
    values = {key: value for key, value in before["parameters"].items() if key != "lang"}
    order = prepare(name, store, file.absolute().parent, parameters=values, lang=before["lang"])
    try:
        after = run_again(order)
        changes, compared = _changes(before["result"], after["result"])
    except (NothingToCompare, UsageError) as error:  # the campaign, a fabric or the runs are gone
        after, changes, compared = None, [f"the report cannot be made again: {error}"], 0
    logs = _logs(before["data"], after["data"] if after else None, store)
    return Verification(
        before["report"], compared, tuple(changes), tuple(logs), tuple(_others(before, after) if after else ())
    )


def _load(file: Path) -> dict[str, Any]:
    try:
        content = json.loads(file.read_text(encoding="utf-8"))
        wanted = {"report": str, "lang": str, "parameters": dict, "data": dict, "notebook": dict, "versions": dict}
        if all(isinstance(content[key], kind) for key, kind in wanted.items()):
            {log["path"]: log["sha256"] for log in content["data"]["logs"]}
            return dict(content)
    except OSError as error:
        raise UsageError(f"{file}: {str(error.strerror).lower()}") from None
    except (ValueError, KeyError, TypeError, RecursionError):
        pass
    raise UsageError(f"{file}: no report.json that can be verified; make the report again")


def _changes(before: Any, after: Any) -> tuple[list[str], int]:
    """(what changed, number of values compared); the hash of the data is none, its logs are held against each other"""
    old, new = ({place: v for place, v in _leaves(result) if place != "snapshot"} for result in (before, after))
    changed = []
    for place in dict.fromkeys([*old, *new]):
        if place not in new:
            changed.append(f"{place}: {_said(old[place])} is gone")
        elif place not in old:
            changed.append(f"{place}: {_said(new[place])} is new")
        elif not _same(old[place], new[place]):
            changed.append(f"{place}: {_said(old[place])} is now {_said(new[place])}")
    return changed, len(old)


def _same(old: Any, new: Any) -> bool:
    numbers = [v for v in (old, new) if isinstance(v, int | float) and not isinstance(v, bool)]
    if len(numbers) == 2:
        return math.isclose(old, new, rel_tol=SAME_WITHIN)
    return type(old) is type(new) and bool(old == new)


def _said(value: Any) -> str:
    return "nothing" if value is None else str(value)


def _leaves(value: Any, place: str = "") -> Iterator[tuple[str, Any]]:
    """All values that hold no others, each with its place in words: table / fabric, 8 B / median."""
    inner: list[tuple[str, Any]] = []
    if isinstance(value, dict):
        inner = [(str(key), part) for key, part in value.items()]
    elif isinstance(value, list):
        seen: Counter[str] = Counter()
        for part in value:
            label = _label(part)
            seen[label] += 1
            inner.append((f"{label} #{seen[label]}" if seen[label] > 1 or not label else label, part))
    else:
        yield place, value
    for name, part in inner:
        yield from _leaves(part, f"{place} / {name}" if place else name)


def _label(row: Any) -> str:
    """What a row of a list is about."""
    if not isinstance(row, dict):
        return ""
    names = [(key, row[key]) for key in _NAMES if isinstance(row.get(key), str | int)]
    return ", ".join(f"{value} B" if key == "size_bytes" else str(value) for key, value in names)


def _logs(before: dict[str, Any], after: dict[str, Any] | None, store: Store) -> list[str]:
    """What became of the logs: in the store, and on disk."""
    old = {(log["path"], log["sha256"]) for log in before["logs"]}
    new = {(log["path"], log["sha256"]) for log in after["logs"]} if after else set()
    paths, hashes = {path for path, _ in new}, {sha256 for _, sha256 in new}
    out = []
    for path, sha256 in sorted(old - new):
        if path in paths:
            out.append(f"changed: {path}")
        elif sha256 in hashes:
            out.append(f"moved: {path}")
        else:
            out.append(f"gone: {path}")
    known = {path for path, _ in old}
    out += [f"new: {path}" for path, _ in sorted(new - old) if path not in known]
    return out + _on_disk({sha256 for _, sha256 in old & new}, store)


def _on_disk(wanted: set[str], store: Store) -> list[str]:
    """Logs whose file is gone or holds something else since it was read."""
    with Lab(store.path) as lab:
        rows = lab.sql(
            "SELECT p.file, p.path, l.sha256 FROM raw.paths p JOIN raw.logs l USING (log_id) ORDER BY p.file, p.path"
        ).rows()
    files: dict[str, list[tuple[str, str]]] = {}
    for file, path, sha256 in rows:
        if sha256 in wanted:
            files.setdefault(file, []).append((path, sha256))
    out = []
    for file, logs in files.items():
        found = {t.path: t.sha256 for t in sources.texts(file) if isinstance(t, sources.Text)}
        for path, sha256 in logs:
            if path not in found:
                out.append(f"gone from disk: {path}")
            elif found[path] != sha256:
                out.append(f"changed on disk since it was read: {path}")
    return out


def _others(before: dict[str, Any], after: dict[str, Any]) -> list[str]:
    """What may explain a change."""
    out = []
    if before["notebook"].get("sha256") != after["notebook"]["sha256"]:
        out.append(f"the notebook {after['notebook']['name']} is not the one that the report was made with")
    for name, version in before["versions"].items():
        now = after["versions"].get(name)
        if name != "chromium" and version != now:
            out.append(f"{name}: {version} then, {now or 'not known'} now")
    return out
