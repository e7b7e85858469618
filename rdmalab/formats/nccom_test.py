"""nccom-test (AWS Neuron): a table much like that of nccl-tests, with units in the names of its columns.

::

    nccom-test -r 8 --minbytes 1kb --maxbytes 1mb --datatype fp32 --stats avg p99 --iters 1000 allg
    size(B)    count(elems)    type    time:avg(us)    time:p99(us)    algbw(GB/s)    busbw(GB/s)
       1024             256    fp32            10.0              12           0.10           0.09
    Avg bus bandwidth:  9.1966GB/s

Old versions mean 2**30 bytes by GB: size / time decides for the table as a whole.
"""

import re
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from typing import Any

from rdmalab.formats import _collectives as arithmetic
from rdmalab.formats._collectives import Printed
from rdmalab.formats._lines import ends_with_line_end, unprefixed
from rdmalab.model import Note, Parsed, Run, Sample
from rdmalab.sources import Text

NAME = "nccom-test"
EXAMPLE = "   1024             256    fp32            10.0           0.10           0.09"
HINTS = (b"nccom-test ", b"size(B)")
SIGNATURE = re.compile(rb"nccom-test |size\(B\)[ \t]+count\(elems\)")
_ANCHOR = re.compile(r"size\(B\) +count\(elems\)|Avg bus bandwidth:")
_OPERATIONS = {
    "allr": "all_reduce", "allg": "all_gather", "redsct": "reduce_scatter", "alltoall": "alltoall",
    "alltoallv": "alltoallv", "sendrecv": "sendrecv", "bcast": "broadcast",
}  # fmt: skip
_COLUMNS = {
    "size(B)": "size_bytes", "count(elems)": "count", "type": "dtype", "time(us)": "time_us", "time:avg(us)": "time_us",
    "time:min(us)": "iter_min_us", "time:max(us)": "iter_max_us", "time:p99(us)": "iter_p99_us",
    "algbw(GB/s)": "algbw_gbyte_s", "busbw(GB/s)": "busbw_gbyte_s",
}  # fmt: skip
_NEEDED = ("size_bytes", "time_us", "algbw_gbyte_s", "busbw_gbyte_s")
_AVERAGE = re.compile(r"Avg bus bandwidth:\s*(\d+(?:\.\d+)?(?:e[+-]\d\d)?) ?GB/s")


@dataclass(slots=True)
class _Draft:
    line: int
    command: str | None = None
    columns: list[str | None] = field(default_factory=list)
    samples: list[Sample] = field(default_factory=list)
    printed: list[Printed] = field(default_factory=list)
    average: str | None = None
    torn: int = 0


class _Reader:
    def __init__(self) -> None:
        self.drafts: list[_Draft] = []
        self.notes: list[Note] = []
        self.command: tuple[int, str] | None = None

    def line(self, number: int, text: str) -> None:
        if "count(elems)" in text:
            self.header(number, text)
        elif "nccom-test " in text:
            self.command = number, text.strip()
        elif (found := _AVERAGE.search(text)) and self.drafts:
            self.drafts[-1].average = found[1]
        elif self.drafts and not self.drafts[-1].average and text.strip()[:1].isdigit():
            self.row(number, text)

    def cut(self, line: int, text: str) -> None:
        if self.drafts:
            self.drafts[-1].torn += 1
            self.notes.append(
                Note(line, "cut_row", f"The log ends inside this line, which is left out: {text.strip()}")
            )

    def header(self, line: int, text: str) -> None:
        """Columns of an unknown name are passed over; without those that are needed no row is read."""
        draft = _Draft(line, self.command[1] if self.command else None)
        draft.columns = [_COLUMNS.get(word) for word in text.split()]
        self.drafts.append(draft)
        if not set(_NEEDED) <= set(draft.columns):
            draft.columns = []
            self.notes.append(
                Note(line, "unknown_unit", f"Columns that are not known, their rows are not read: {text.strip()}")
            )

    def row(self, line: int, text: str) -> None:
        draft, cells = self.drafts[-1], text.split()
        if not draft.columns:
            return
        if len(cells) != len(draft.columns):
            draft.torn += 1
            self.notes.append(
                Note(line, "torn_row", f"A row with {len(cells)} of {len(draft.columns)} cells is left out.")
            )
            return
        named = {name: cell for name, cell in zip(draft.columns, cells, strict=True) if name}
        try:
            sample = _sample(line, named)
        except ValueError:
            draft.torn += 1
            self.notes.append(Note(line, "not_understood", f"A row with a cell that is no number: {text.strip()}"))
            return
        draft.samples.append(sample)
        draft.printed.append((named["time_us"], named["algbw_gbyte_s"], named["busbw_gbyte_s"]))


def _sample(line: int, cells: dict[str, str]) -> Sample:
    values: dict[str, Any] = {"line": line, "placement": "out_of_place"}
    for name, cell in cells.items():
        if name == "dtype":
            values[name] = cell
        elif name in ("size_bytes", "count"):
            values[name] = arithmetic.whole(cell)
        else:
            values[name] = arithmetic.real(cell)
    return Sample(**values)


def parse(text: Text) -> Parsed:
    """Reads all runs of *text*."""
    reader = _Reader()
    last = None
    for line in unprefixed(text, _ANCHOR):
        if last:
            reader.line(last.number, last.text)
        last = line
    if last:
        # A row ends in a number: without a line end digits may be missing.
        whole = "GB/s" in last.text or ends_with_line_end(text)
        (reader.line if whole else reader.cut)(last.number, last.text)
    notes = list(reader.notes)
    runs = []
    for draft in reader.drafts:
        run, found = _finish(draft)
        runs.append(run)
        notes += found
    return Parsed(runs=tuple(runs), notes=tuple(sorted(notes, key=lambda n: n.line or 0)))


def _finish(draft: _Draft) -> tuple[Run, list[Note]]:
    words = (draft.command or "").split()
    operation = next((_OPERATIONS[w] for w in reversed(words) if w in _OPERATIONS), None)
    ranks = re.search(r"\s(?:-r|--nworkers)[ =](\d{1,9})\b", draft.command or "")
    scale, notes = _gigabyte(draft.samples, draft.printed)
    rows = bool(draft.samples)
    status = "complete" if rows and draft.average else "truncated" if rows or draft.torn else "no_data"
    run = Run(
        tool=NAME, kind="collective", status=status, line=draft.line, samples=tuple(_scaled(draft.samples, scale)),
        operation=operation, operation_evidence="command line" if operation else None, command=draft.command,
        ranks=int(ranks[1]) if ranks else None, ranks_evidence="command line" if ranks else None,
        average_busbw_gbyte_s=float(draft.average) * scale if draft.average and scale else None,
    )  # fmt: skip
    if status == "truncated":
        notes.append(Note(draft.line, "no_footer", "The run ends without its average; the rows before that are kept."))
    checks = arithmetic.check(
        [s._replace(time_us=None) for s in draft.samples], draft.printed, operation=operation, ranks=run.ranks,
        ranks_evidence=run.ranks_evidence, average=draft.average,
    )  # fmt: skip
    return run, notes + checks


def _gigabyte(samples: Sequence[Sample], printed: Sequence[Printed]) -> tuple[float | None, list[Note]]:
    """What GB means in this table, in units of 1e9 bytes; None where size / time fits no meaning."""
    meaning = arithmetic.gigabyte(samples, printed)
    if meaning == 1.0:
        return meaning, []
    code, text = "binary_gigabyte", "By size / time, GB means 2**30 bytes here; bandwidths are converted."
    if meaning is None:
        code, text = "size_time_mismatch", "Bandwidths fit size / time neither in 1e9 nor in 2**30 bytes: left out."
    return meaning, [Note(samples[0].line, code, text)]


def _scaled(samples: Sequence[Sample], scale: float | None) -> Iterator[Sample]:
    for s in samples:
        if scale == 1.0:
            yield s
        else:
            both = [v * scale if v is not None and scale else None for v in (s.algbw_gbyte_s, s.busbw_gbyte_s)]
            yield s._replace(algbw_gbyte_s=both[0], busbw_gbyte_s=both[1])
