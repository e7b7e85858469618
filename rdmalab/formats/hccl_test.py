"""HCCL test (Ascend): one table of sizes, times and algbw; no collective, type, operator, rank count or busbw.

::

    the minbytes is 8192, maxbytes is 32768, iters is 20, warmup_iters is 5
    data_size(Bytes): | aveg_time(us): | alg_bandwidth(GB/s): | check_result:
    8192              | 25.13          | 0.32598              | success

GB/s is 1e9 bytes/s. What a command line above the table tells is taken from there, busbw is never computed.
"""

import re
from collections.abc import Iterator
from dataclasses import dataclass, field

from rdmalab.formats import _collectives as arithmetic
from rdmalab.formats._collectives import Printed
from rdmalab.formats._lines import unprefixed
from rdmalab.model import Note, Parsed, Run, Sample
from rdmalab.sources import Text

NAME = "hccl-test"
EXAMPLE = "8192              | 25.13          | 0.32598              | success"
HINTS = (b"data_size(Bytes)", b"the minbytes is ", b"hccl interface return err", b"local rank_id ")
SIGNATURE = re.compile(rb"data_size\(Bytes\)|the minbytes is \d|hccl interface return err|local rank_id \d")
_ANCHOR = re.compile(r"the minbytes is \d|data_size\(Bytes\)")
_START = re.compile(
    r"the minbytes is (\d{1,18}), *maxbytes is (\d{1,18}), *iters is (\d{1,9}), *warmup_iters is (\d{1,9})"
)
_FAILURES = ("hccl interface return err", "acl interface return err", "This is an error in ")
_FAILED_RANK = re.compile(r"rank[ _]id \d+, *(?:check result failed)?")
_COLUMNS = {
    "data_size": "(Bytes)",
    "aveg_time": "(us)",
    "avg_time": "(us)",
    "alg_bandwidth": "(GB/s)",
    "check_result": "",
}
_PROCESSES = re.compile(r"\bmpirun\b.*?\s-(?:np|n)[ =]*(\d{1,9})\b")
_RESULTS = ("success", "failed", "NULL")


@dataclass(slots=True)
class _Draft:
    line: int
    parameters: tuple[int, ...] = ()
    command: str | None = None
    table: bool = False
    samples: list[Sample] = field(default_factory=list)
    printed: list[Printed] = field(default_factory=list)
    failed_rows: list[int] = field(default_factory=list)
    failed_ranks: list[int] = field(default_factory=list)
    failures: list[tuple[int, str]] = field(default_factory=list)
    torn: int = 0


class _Reader:
    def __init__(self) -> None:
        self.drafts: list[_Draft] = []
        self.notes: list[Note] = []
        self.command: str | None = None

    def line(self, number: int, text: str) -> None:
        if found := _START.search(text):
            self.start(number).parameters = tuple(map(int, found.groups()))
        elif "data_size(" in text:
            self.header(number, text)
        elif any(f in text for f in _FAILURES):
            (self.drafts[-1] if self.drafts else self.start(number)).failures.append((number, text.strip()))
        elif self.drafts and self.drafts[-1].table and ("|" in text or text.strip().isdigit()):
            self.row(number, text)
        elif "_test" in text and arithmetic.operation_of(text):
            self.command = text.strip()

    def start(self, line: int) -> _Draft:
        self.drafts.append(_Draft(line, command=self.command))
        return self.drafts[-1]

    def header(self, line: int, text: str) -> None:
        if not self.drafts or self.drafts[-1].table:
            self.start(line)
        cells = [c.strip().rstrip(":") for c in text.split("|")]
        known = [f"{name}{unit}" for name, unit in _COLUMNS.items()]
        if len(cells) == 4 and all(c in known for c in cells):
            self.drafts[-1].table = True
        else:
            self.notes.append(
                Note(line, "unknown_unit", f"Columns that are not known, their rows are not read: {text.strip()}")
            )

    def row(self, line: int, text: str) -> None:
        draft = self.drafts[-1]
        if _FAILED_RANK.match(text.strip()):
            draft.failed_ranks.append(line)  # a rank's own opinion of the row that the table prints next
            return
        cells = text.split("|")
        try:
            size, time, algbw, result = (c.strip() for c in cells)
            values = arithmetic.whole(size), arithmetic.real(time), arithmetic.real(algbw)
            if result not in _RESULTS:
                raise ValueError(result)
        except ValueError:
            if cells[0].strip().isdigit():
                draft.torn += 1
                self.notes.append(Note(line, "torn_row", f"A row that is not whole is left out: {text.strip()}"))
            return
        draft.samples.append(Sample(
            line=line, size_bytes=values[0], placement="out_of_place", time_us=values[1], algbw_gbyte_s=values[2],
            wrong=0 if result == "success" else None,
        ))  # fmt: skip
        draft.printed.append((time, algbw, "0.00"))
        if result == "failed":
            draft.failed_rows.append(line)


def parse(text: Text) -> Parsed:
    """Reads all runs of *text*."""
    reader = _Reader()
    for line in unprefixed(text, _ANCHOR):
        reader.line(line.number, line.text)
    notes = list(reader.notes)
    for draft in reader.drafts:
        notes += _remarks(draft)
    return Parsed(runs=tuple(map(_finish, reader.drafts)), notes=tuple(sorted(notes, key=lambda n: n.line or 0)))


def _finish(draft: _Draft) -> Run:
    command = draft.command or ""
    operation = arithmetic.operation_of(command)
    processes = _PROCESSES.search(command)
    return Run(
        tool=NAME, kind="collective", status=_status(draft), line=draft.line, samples=tuple(draft.samples),
        operation=operation, operation_evidence="command line" if operation else None, command=draft.command,
        ranks=int(processes[1]) if processes else None, ranks_evidence="command line" if processes else None,
        out_of_bounds=len(draft.failed_rows) if draft.samples else None,
        iterations=draft.parameters[2] if draft.parameters else None,
        warmup_iterations=draft.parameters[3] if draft.parameters else None,
    )  # fmt: skip


def _status(draft: _Draft) -> str:
    if draft.failures:
        return "failed"
    if not draft.samples:
        return "truncated" if draft.torn else "no_data"
    last = draft.parameters and draft.samples[-1].size_bytes == draft.parameters[1]
    return "complete" if last else "truncated"


def _remarks(draft: _Draft) -> Iterator[Note]:
    if draft.failures:
        more = f" ({len(draft.failures)} such lines)" if len(draft.failures) > 1 else ""
        yield Note(draft.failures[0][0], "failure", f"The benchmark failed: {draft.failures[0][1]}{more}")
    if wrong := [*draft.failed_rows, *draft.failed_ranks]:
        yield Note(
            min(wrong),
            "wrong_data",
            f"The data check failed in {len(draft.failed_rows)} rows; they are not fit to be quoted.",
        )
    if _status(draft) == "truncated":
        yield Note(draft.line, "no_footer", "The run ends before its largest size; the rows before that are kept.")
    if arithmetic.gigabyte(draft.samples, draft.printed) == arithmetic.BINARY_GIGABYTE:
        yield Note(
            draft.samples[0].line, "binary_gigabyte",
            "By size / time, GB means 2**30 bytes in this table; algbw is kept as printed.",
        )  # fmt: skip
    else:
        yield from arithmetic.check(
            draft.samples, draft.printed, operation=None, ranks=None, ranks_evidence=None, average=None
        )
