"""nccl-tests and rccl-tests of all ages, and the ``*_test`` programs of NCCL 1.x: text tables of collectives.

One reader per stream of the log (the launcher's mark tells streams apart), because every process of a program built
without MPI prints a table of its own. Inside a stream the runs follow each other; a run begins with the first line of
its head that the run before has printed already.

A row is printed in pieces and other processes write in between: pieces are joined when they fit exactly, else the row
becomes a Note.
"""

import re
from collections import Counter
from collections.abc import Iterable, Iterator
from dataclasses import dataclass, field
from functools import lru_cache
from typing import Any, NamedTuple

from rdmalab.formats import _collectives as arithmetic
from rdmalab.formats import _nccl_command as command
from rdmalab.formats import _nccl_table as table
from rdmalab.formats._collectives import Printed
from rdmalab.formats._lines import Line, ends_with_line_end, plain_lines, unprefixed
from rdmalab.formats._nccl_table import Layout
from rdmalab.model import COLLECTIVES, Note, Parsed, Run, Sample, Samples
from rdmalab.sources import Text

NAME = "nccl-tests"
EXAMPLE = "1048576  262144  float  sum  -1  61.13  17.15  25.73  0  60.02  17.47  26.21  0"
_TYPE = "(?:u?int(?:8|32|64)?|char|half|float|double|bfloat16|f8e4m3|f8e5m2|fp8_e4m3|fp8_e5m2)"
HINTS = (
    b"Avg bus", b"Out of bounds", b"nThread", b"Using devices", b"Test NCCL", b"Test CUDA", b"Test timeout",
    b"Test failure", b"NCCL failure", b"Cuda failure", b"algbw", b"int", b"char", b"half", b"float", b"double",
    b"f8e5m2", b"fp8_e5m2",
)  # fmt: skip
SIGNATURE = re.compile(
    rb"Avg bus bandwidth|Out of bounds values|nThread|Using devices|Test (?:NCCL|CUDA|timeout|failure)"
    rb"|(?:NCCL|Cuda) failure \S+:\d|algbw +busbw"
    rb"|(?:int8|int32|int64|int|char|half|float|double|bfloat16|fp?8_?e[45]m[23])"
    rb"[ \t]+(?:sum|prod|max|min|avg|mulsum|none|-?\d)"
)
# What only the process that prints the table prints. A leading literal lets huge logs be searched at memory speed; the
# other pattern is for logs whose comment marks or whole heads are gone.
_ANCHOR = re.compile(r"# ?(?:nThreads?:? +\d|Using devices| *Rank +\d+ +(?:Group|Pid|on) | *size +count +type)")
_MARKED = re.compile(_ANCHOR.pattern.encode())
_BARE_ANCHOR = re.compile(
    r"nThreads?:? +\d|Using devices|Rank +\d+ +(?:Group|Pid|on) |size +count +type|Avg bus bandwidth +: +[\d-]"
    rf"|\d++[ \t]++\d++[ \t]++{_TYPE}[ \t]+(?:sum|prod|max|min|avg|mulsum|none|-?\d)"
)
# Messages of NCCL itself: a log may hold millions of them around a table.
_MESSAGES = re.compile(r"^(?:[A-Za-z][\w.-]*+:\d++:\d++ \[\d++\] NCCL INFO [^\n]*+\n)++", re.MULTILINE)
_DEVICE = re.compile(
    r"Rank[ \t]+(\d{1,9})[ \t]+(?:Group[ \t]+(\d+)[ \t]+)?(?:Pid[ \t]+(\d+)[ \t]+)?on[ \t]+(\S+)[ \t]+device[ \t]+"
    r"(\d{1,9})[ \t]+\[[^\]]+\][ \t]*(.*)"
)
_DEVICES = re.compile("^[# \\t]*" + _DEVICE.pattern, re.MULTILINE)
_DEVICE_1X = re.compile(r"Device +(\d{1,9}) +-> +(\d{1,9}) +\[[^\]]+\] *(.*)")
_PARAMETER = re.compile(r"(warmup ?iters|agg iters|iters|validation)[ :]+(\d{1,18})\b", re.IGNORECASE)
_VERSION = re.compile(r"\b(nccl|rccl)-tests:? version (\S+)(?:.*-library=(\d{1,9}))?", re.IGNORECASE)
_LIBRARY = re.compile(r"\b(N|R)CCL version *:? *(\d\S*)")
_PROGRAM = re.compile(r"Collective test (starting|concluded): *(\S+)")
_AVERAGE = re.compile(r"Avg bus bandwidth\s*: *(\S+) *(\S*)")
_BOUNDS = re.compile(r"Out of bounds values\s*: *(\d{1,18}) +(?:OK|FAILED)")
_FAILURE = re.compile(
    r"Test (?:NCCL|CUDA) failure|(?:NCCL|Cuda) failure \S+:\d|Test timeout \(|\bTest failure \S+:\d"
    r"|Invalid number of GPUs: \d+ requested"
)
_SOURCE_FILE = re.compile(rf"failure ({'|'.join(COLLECTIVES)})\.cu:\d")
_LAUNCHER = ("srun: error:", "slurmstepd: error:", "mpirun noticed", "mpirun detected", "prterun ", "Primary job ")
_OPEN_ENDED = re.compile(
    r"nThread|Rank +\d|version|size +count|Avg bus bandwidth[^:]*:\s*\S+$|Out of bounds(?!.*(?:OK|FAILED)$)"
    rf"|Collective test(?!.*(?:{'|'.join(COLLECTIVES)})_(?:perf|test))"
)
_ROW = re.compile(r"[ \t]*\d+\s+\d+\s+[A-Za-z]", re.ASCII)
_ROW_LIKE = re.compile(rf"\d\s+{_TYPE}\s+(?:sum|prod|max|min|avg|mulsum|none|-?\d+)\s+[-.\d]")
_LONG = 100
_HEADER = re.compile(r"[# \t]*(?:size|bytes)\s")
_TAIL = "The end of a row whose beginning is missing"
# The fields of a sample that tell rows of one table apart: from the size to the placement.
_FIRST, _LAST = Sample._fields.index("size_bytes"), Sample._fields.index("cycle")


class _Device(NamedTuple):
    """A line of the list of devices, as printed; what it lacks is empty."""

    rank: str
    group: str
    pid: str
    host: str
    number: str
    model: str


@dataclass(slots=True)
class _Draft:
    """A run while it is being read. ``seen`` names the lines of its head and its footer that were there."""

    line: int
    seen: set[str] = field(default_factory=set)
    layout: Layout | None = None
    columns: table.Columns = field(default_factory=dict)
    printed: list[Printed] = field(default_factory=list)
    rows: int = 0
    torn: int = 0
    devices: dict[int, _Device] = field(default_factory=dict)
    tool: str = NAME
    program: str | None = None
    command: str | None = None
    parameters: dict[str, int] = field(default_factory=dict)
    tool_version: str | None = None
    library: str | None = None
    average: str | None = None
    out_of_bounds: int | None = None
    failures: list[tuple[int, str]] = field(default_factory=list)
    launcher: list[tuple[int, str]] = field(default_factory=list)
    elided: int | None = None
    finished: bool = False  # an average or "concluded" was there
    interleaved: bool = False
    last_key: tuple[object, ...] = ()

    @property
    def samples(self) -> Samples:
        return Samples(self.columns)

    def list_devices(self, devices: dict[int, _Device]) -> None:
        self.devices |= devices
        if any(model.startswith("AMD") for model in {device.model for device in devices.values()}):
            self.tool = "rccl-tests"

    def add(self, columns: table.Columns, printed: list[Printed]) -> None:
        """Adds the samples of rows; what only some rows have is null in the others."""
        for name in columns.keys() | self.columns.keys():
            column = self.columns.setdefault(name, [None] * len(self.printed))
            column += columns.get(name) or [None] * len(printed)
        self.printed += printed

    @property
    def begun(self) -> bool:
        """Past its head: another head is another run's."""
        return bool(self.rows or self.torn or self.failures or self.finished)


@dataclass(slots=True)
class _Piece:
    """The beginning of a row whose rest has not come yet."""

    line: int
    stage: int
    cells: list[str]


class _Reader:
    """Reads one log. Runs of all streams stand in ``drafts`` in order of appearance."""

    def __init__(self) -> None:
        self.drafts: list[_Draft] = []
        self.notes: list[Note] = []
        self.streams: dict[str, _Stream] = {}
        self.commands: list[str] = []  # since a run last began
        self.taken = False
        self.library: str | None = None
        self.refused = False

    def stream(self, tag: str) -> "_Stream":
        if tag not in self.streams:
            self.streams[tag] = _Stream(self)
        return self.streams[tag]

    def failure(self, line: int, text: str) -> None:
        """Belongs to the run that is under way in whatever stream, else it is a run of its own."""
        if not self.drafts or self.drafts[-1].finished:
            self.stream("").start(line)
        self.drafts[-1].failures.append((line, text.strip()))

    def launched(self, line: int, text: str) -> None:
        if self.drafts:
            self.drafts[-1].launcher.append((line, text.strip()))

    def invoked(self, line: str) -> None:
        """A command line: the next head is another run."""
        if self.taken:
            self.commands, self.taken = [], False
        self.commands.append(line)
        for stream in self.streams.values():
            stream.drop_piece()
            stream.open = []

    def command_of_next(self) -> str | None:
        """The command that starts the run beginning now. A script that was echoed as a whole tells nothing."""
        if self.taken and self.drafts[-1].begun:
            self.commands = []
        self.taken = True
        return self.commands[-1] if len({command.operation_in(c) for c in self.commands}) == 1 else None


class _Stream:
    """The lines of one process (or of all, where the launcher marks none)."""

    def __init__(self, log: _Reader) -> None:
        self.log = log
        self.open: list[_Draft] = []  # runs under way; several only where processes print into each other
        self.interleaved = False
        self.placements: tuple[str, ...] = ()
        self.piece: _Piece | None = None
        self.orphan: int | None = None

    # -- runs ---------------------------------------------------------------------------------------------------

    def start(self, line: int) -> _Draft:
        self.drop_piece()
        draft = _Draft(line, command=self.log.command_of_next())
        if not self.log.drafts:
            draft.library = self.log.library
        if not self.open or self.open[-1].begun:
            self.open, self.interleaved = [], False
        self.open.append(draft)
        self.log.drafts.append(draft)
        self.log.refused = False
        return draft

    def head(self, kind: str, line: int) -> _Draft:
        """The run that this line of a head belongs to; where all have printed it already, a new one begins."""
        for draft in reversed(self.open):
            if kind not in draft.seen and not draft.begun:
                if draft is not self.open[-1]:
                    self.mix()
                break
        else:
            draft = self.start(line)
        draft.seen.add(kind)
        return draft

    def foot(self, kind: str) -> _Draft | None:
        for draft in reversed(self.open):
            if kind not in draft.seen:
                draft.seen.add(kind)
                draft.finished = draft.finished or kind != "bounds"
                return draft
            if not self.interleaved:
                break
        return None

    def mix(self) -> None:
        """Heads that step back to an earlier run show that several processes print into each other."""
        self.interleaved = True
        for draft in self.open:
            draft.interleaved = True

    def target(self, line: int) -> _Draft:
        """The run that a row belongs to."""
        running = [d for d in self.open if not d.finished]
        if not running:
            draft = self.start(line)
            if self.orphan is not None:
                self.lose(self.orphan, _TAIL)
                self.orphan = None
            return draft
        return min(running, key=lambda d: d.rows) if self.interleaved else running[-1]

    @property
    def under_way(self) -> _Draft | None:
        return self.open[-1] if self.open and not self.open[-1].finished else None

    # -- rows ---------------------------------------------------------------------------------------------------

    def row(self, line: int, text: str) -> bool:
        """Reads a line that begins with a number; False where it has nothing to do with a table."""
        cells = text.split()
        if cells[0] == "#":
            del cells[0]
        if len(cells) > 2 and cells[2][0].isalpha() and cells[1].isdigit():
            self.drop_piece()
            return self.full(line, text, cells)
        if self.piece and self.join(line, text):
            return True
        return self.tail(line, cells)

    def rows(self, lines: list[str], first: int, last: int) -> int:
        """Reads the full rows that stand from *first* on, before *last*, and says how many it read."""
        draft = self.under_way
        if draft is None or draft.layout is None or len(self.open) > 1 or self.piece or self.log.refused:
            return 0
        layout, end = draft.layout, first
        while end < last and _ROW.match(lines[end]):
            end += 1
        try:
            found = table.read_all(layout, "\n".join(lines[first:end]), range(first + 1, end + 1))
        except (ValueError, OverflowError):
            found = None
        if found is None:
            for at in range(first, end):
                self.line(at + 1, lines[at])
        else:
            self.keep(first + 1, layout, *found)
            draft.rows += end - first - 1
        return end - first

    def full(self, line: int, text: str, cells: list[str]) -> bool:
        if self.log.refused:
            return True
        draft = self.under_way
        layout = (draft and draft.layout) or table.without_header(cells)
        try:
            found = table.read(layout, cells, line) if layout else None
        except (ValueError, OverflowError):
            if self.torn(line, text, as_wide_as_a_row=True):
                return True
            if draft:
                self.note(line, "not_understood", f"A row with a cell that is no number: {_short(text)}")
            return draft is not None
        if layout is None or found is None:
            return self.torn(line, text)
        self.keep(line, layout, *found)
        return True

    def keep(self, line: int, layout: Layout, columns: table.Columns, printed: list[Printed]) -> None:
        draft = self.under_way
        if len(self.open) > 1 or draft is None:
            draft = self.owner(line, Samples(columns)[0])
        draft.layout = draft.layout or layout
        draft.add(columns, printed)
        draft.rows += 1

    def owner(self, line: int, first: Sample) -> _Draft:
        """The run of a row where it is not the only one under way."""
        key = first[_FIRST:_LAST]
        if len(self.open) > 1 and first.size_bytes and key == self.open[-1].last_key and self.open[-2].layout:
            self.mix()  # each process printed its whole head before the rows: the same row twice running shows it
        draft = self.target(line)
        draft.last_key = key
        return draft

    def torn(self, line: int, text: str, *, as_wide_as_a_row: bool = False) -> bool:
        """The beginning of a row, with foreign text or nothing behind it."""
        draft = self.under_way
        layout = (draft and draft.layout) or table.DEFAULT
        cells, stage, rest = table.match(layout, 0, text)
        if stage == len(table.pieces(layout)) and not _numeric(rest):
            self.join_all(line, layout, cells)
        elif stage and not _numeric(rest) and (draft or "NCCL" in rest) and not (as_wide_as_a_row and rest[:1] == " "):
            self.target(line)
            self.piece = _Piece(line, stage, cells)
        elif as_wide_as_a_row or not (draft and draft.layout):
            return False
        else:
            self.lose(line, f"A row with {len(text.split())} of {layout.width} cells")
        self.foreign(line, rest)
        return True

    def join(self, line: int, text: str) -> bool:
        """The rest of a torn row, or its next piece."""
        layout = self.target(line).layout or table.DEFAULT
        if self.piece is None:  # the footer came in between: this line begins another run
            return False
        cells, stage, rest = table.match(layout, self.piece.stage, text)
        if stage == self.piece.stage or _numeric(rest) or self.interleaved:
            return False
        self.piece.cells += cells
        if stage < len(table.pieces(layout)):
            self.piece.stage = stage
        else:
            first, cells, self.piece = self.piece.line, self.piece.cells, None
            self.join_all(first, layout, cells)
        self.foreign(line, rest)
        return True

    def join_all(self, line: int, layout: Layout, cells: list[str]) -> None:
        try:
            found = table.read(layout, cells, line)
        except (ValueError, OverflowError):
            found = None
        if found and (layout.cpu_time or all(map(arithmetic.has_time, Samples(found[0]), found[1]))):
            self.keep(line, layout, *found)
        else:
            self.lose(line, "A row whose pieces do not fit together")

    def foreign(self, line: int, rest: str) -> None:
        if _FAILURE.search(rest):
            self.log.failure(line, rest)

    def tail(self, line: int, cells: list[str]) -> bool:
        """The end of a row whose beginning is missing: nothing but the cells of one or two placements."""
        in_table = bool(self.under_way and self.under_way.layout)
        if in_table and len(cells) < 3 and all(c.isdigit() for c in cells):
            self.lose(line, f"A row with {len(cells)} cells")
        elif len(cells) not in (4, 8) or "." not in cells[0] or not all(_is_number(c) or c == "N/A" for c in cells):
            return False
        elif in_table:
            self.drop_piece()
            self.lose(line, _TAIL)
        else:
            self.orphan = line
        return True

    def drop_piece(self) -> None:
        if self.piece:
            piece, self.piece = self.piece, None
            self.lose(piece.line, "The beginning of a row whose rest is missing")

    def lose(self, line: int, what: str) -> None:
        if self.open:
            self.open[-1].torn += 1
        self.note(line, "torn_row", f"{what}; the row is left out.")

    def note(self, line: int, code: str, what: str) -> None:
        self.log.notes.append(Note(line, code, what))

    def cut(self, line: int, text: str) -> None:
        """A last line without line end, of which something may be missing: a row is lost, a number is not believed."""
        self.drop_piece()
        if text.lstrip("# \t")[:1].isdigit() and self.under_way:
            self.under_way.torn += 1
        if self.open:
            self.note(line, "cut_row", f"The log ends inside this line, which is left out: {_short(text)}")

    def sure(self, text: str) -> bool:
        """Whether a last line without line end is read the same however it would have gone on."""
        if not text.lstrip("# \t")[:1].isdigit():
            return not _OPEN_ENDED.search(text)
        layout = self.under_way.layout if self.under_way else None
        end = text.split()[-1]
        if layout and layout.tail:
            return layout.tail[-1][0] == "timestamp" and bool(re.fullmatch(r"\d\d:\d\d:\d\d", end))
        return not (layout and layout.places[-1].extras) and bool(re.fullmatch(r"N/A|0|\de[+-]\d\d", end))

    # -- everything else ----------------------------------------------------------------------------------------

    def line(self, number: int, text: str) -> None:
        start = text.lstrip("# \t")
        if not start:
            return
        if start[0] in "0123456789" and self.row(number, text):
            return
        if "NCCL INFO" in text:
            return
        glued = len(text) > _LONG  # only then a row may stand behind a whole line of the head
        if glued:
            self.behind(number, text)
        for literal, method in _EVENTS:
            if literal in text and method(self, number, text):
                return
        if not glued:
            self.behind(number, text)

    def behind(self, line: int, text: str) -> None:
        """Says that a row stands behind other text, where one does."""
        if not self.log.refused and _ROW_LIKE.search(text):
            self.lose(line, "A row that begins with something else")

    def parameters(self, line: int, text: str) -> bool:
        values = _parameters(text)
        if values is None:
            return False
        draft = self.head("parameters", line)
        draft.parameters = {**values, **draft.parameters}
        if "nThreads:" in text:
            draft.tool = "rccl-tests"
        return True

    def using(self, line: int, text: str) -> bool:
        self.head("using", line)
        return True

    def device(self, line: int, text: str) -> bool:
        found = _DEVICE.search(text)
        if not found:
            return False
        device = _Device(*found.groups(""))
        self.holder(device, line).list_devices({int(device.rank): device})
        return True

    def devices(self, lines: list[str], first: int, last: int) -> int:
        """Reads the list of devices that begins at *first* at once, where it can only be that of the newest run."""
        draft = self.open[-1] if self.open else None
        if draft is None or draft.layout or draft.begun:
            return 0
        start, end = lines[first].partition("Rank ")[0] + "Rank ", first
        while end < last and lines[end].startswith(start):
            end += 1
        block = "\n".join(lines[first:end])
        found = list(map(_Device._make, _DEVICES.findall(block)))
        devices = dict(zip((int(d.rank) for d in found), found, strict=True))
        known = not devices.keys().isdisjoint(draft.devices)
        if known or not end - first == len(found) == len(devices) or "NCCL INFO" in block:
            return 0
        draft.list_devices(devices)
        return end - first

    def holder(self, device: _Device, line: int) -> _Draft:
        """The run that lists this rank: the last one that has no other process for it."""
        for draft in reversed(self.open):
            if draft.layout is None and not draft.begun and draft.devices.get(int(device.rank), device) == device:
                if draft is not self.open[-1]:
                    self.mix()
                return draft
        return self.start(line)

    def device_1x(self, line: int, text: str) -> bool:
        """NCCL 1.x: one process on one machine, devices without host and pid."""
        found = _DEVICE_1X.search(text)
        if not found or not self.open:
            return False
        draft = self.open[-1]
        draft.devices[int(found[1])] = _Device(found[1], "", "", "", found[2], found[3])
        draft.tool = "nccl1-test"
        return True

    def version(self, line: int, text: str) -> bool:
        found = _VERSION.search(text)
        if not found:
            return False
        draft = self.head("version", line)
        draft.tool, draft.tool_version = f"{found[1].lower()}-tests", found[2]
        if found[3]:
            draft.library = arithmetic.library_version(int(found[3]))
        return True

    def library(self, line: int, text: str) -> bool:
        found = _LIBRARY.search(text)
        if not found:
            return False
        self.log.library = found[2]
        if self.log.drafts and not self.log.drafts[-1].begun:
            self.log.drafts[-1].library = self.log.drafts[-1].library or found[2]
        if found[1] == "R" and self.open:
            self.open[-1].tool = "rccl-tests"
        return True

    def program(self, line: int, text: str) -> bool:
        found = _PROGRAM.search(text)
        if not found:
            return False
        draft = self.head("starting", line) if found[1] == "starting" else self.foot("concluded")
        if draft and not draft.program:
            draft.program = found[2].rsplit("/", 1)[-1]
        return True

    def placement(self, line: int, text: str) -> bool:
        self.placements = table.placements(text)
        return False

    def header(self, line: int, text: str) -> bool:
        if "busbw" not in text or not _HEADER.match(text):
            return False
        layout = table.header(text, self.placements)
        if layout is None or self.placements == (table.IN, table.OUT):
            self.refuse(line)
            return True
        self.placements = ()
        self.drop_piece()
        self.head("header", line).layout = layout
        return True

    def refuse(self, line: int) -> None:
        """mscclpp-test prints in-place first and neither type nor operator nor root."""
        self.log.refused = True
        self.open = []
        self.note(line, "lookalike_refused", "These are not the columns of nccl-tests (mscclpp-test?): not read.")

    def units(self, line: int, text: str) -> bool:
        draft = next((d for d in reversed(self.open) if d.layout and "units" not in d.seen and not d.rows), None)
        if draft is None or draft.layout is None or not text.lstrip("# \t").startswith("("):
            return False
        draft.seen.add("units")
        layout = table.with_units(draft.layout, text)
        if layout is None:
            self.log.refused = True
            self.note(line, "unknown_unit", f"Units that are not known: the rows below are not read: {_short(text)}")
        else:
            draft.layout = layout
        return True

    def average(self, line: int, text: str) -> bool:
        found = _AVERAGE.search(text)
        if not found:
            return False
        self.drop_piece()
        draft = self.foot("average")
        if draft is None and self.log.drafts:
            self.note(line, "stray_average", "An average without a table: several processes print into each other.")
        if draft and _is_number(found[1]):
            if found[2] in ("", "OK", "FAILED", "GB/s"):
                draft.average = found[1]
            else:
                self.note(line, "not_understood", f"The unit of this average is not known: {_short(text)}")
        return True

    def bounds(self, line: int, text: str) -> bool:
        found = _BOUNDS.search(text)
        if found and (draft := self.foot("bounds")):
            self.drop_piece()
            draft.out_of_bounds = int(found[1])
        return bool(found)

    def failure(self, line: int, text: str) -> bool:
        if not _FAILURE.search(text):
            return False
        self.log.failure(line, text)
        return True

    def started(self, line: int, text: str) -> bool:
        found = command.command_in(text)
        if found:
            self.log.invoked(found)
        return bool(found)

    def launcher(self, line: int, text: str) -> bool:
        self.log.launched(line, text)
        return True

    def message(self, line: int, text: str) -> bool:
        if self.open:
            self.note(line, "tool_message", text.strip("# \t"))
        return True

    def elided(self, line: int, text: str) -> bool:
        if text.strip() == "..." and self.open and self.open[-1].layout and not self.open[-1].finished:
            self.open[-1].elided = self.open[-1].elided or line
        return True


@lru_cache(maxsize=256)
def _parameters(text: str) -> dict[str, int] | None:
    """The first value of each parameter; None where this is not their line."""
    if not re.search(r"nThreads?:? +\d", text):
        return None
    return {name.lower().replace(" ", ""): int(value) for name, value in reversed(_PARAMETER.findall(text))}


_EVENTS = (
    ("nThread", _Stream.parameters), ("Using devices", _Stream.using), ("Rank", _Stream.device),
    ("-place", _Stream.placement), ("algbw", _Stream.header), ("(us)", _Stream.units), ("B/s)", _Stream.units),
    ("Out of bounds", _Stream.bounds), ("Avg bus", _Stream.average), ("Collective test", _Stream.program),
    ("ccl-tests", _Stream.version), ("CCL version", _Stream.library), ("ailure ", _Stream.failure),
    ("Test timeout", _Stream.failure), ("Invalid number of GPUs", _Stream.failure), (" -> ", _Stream.device_1x),
    ("_perf", _Stream.started), ("_test", _Stream.started), ("...", _Stream.elided),
    ("Reducing maxBytes", _Stream.message), ("is not a power of 2", _Stream.message), ("# error: ", _Stream.message),
    *((text, _Stream.launcher) for text in _LAUNCHER),
)  # fmt: skip


def parse(text: Text) -> Parsed:
    """Reads all runs of *text*; see the module's docstring."""
    reader = _Reader()
    anchor = _ANCHOR if any(_MARKED.search(chunk) for _, chunk in text.chunks()) else _BARE_ANCHOR
    lines = plain_lines(text, anchor)
    last = _read_plain(reader, lines) if lines else _read_marked(reader, unprefixed(text, anchor, _MESSAGES))
    if last:
        stream = reader.stream(last.tag)
        whole = stream.sure(last.text) or ends_with_line_end(text)
        (stream.line if whole else stream.cut)(last.number, last.text)
    for stream in reader.streams.values():
        stream.drop_piece()
    reader.streams.clear()  # which point back to the reader: without the circle its memory is free at once
    notes = reader.notes if reader.drafts else [n for n in reader.notes if n.code == "lookalike_refused"]
    runs = []
    for draft in sorted(reader.drafts, key=lambda d: d.line):
        run, found = _finish(draft)
        runs.append(run)
        notes += found
    return Parsed(runs=tuple(runs), notes=tuple(sorted(notes, key=lambda n: n.line or 0)))


def _read_marked(reader: _Reader, lines: Iterable[Line]) -> Line | None:
    """Reads all lines but the last, which is returned: it may have been cut."""
    last = None
    for item in lines:
        if last:
            reader.stream(last.tag).line(last.number, last.text)
        last = item
    return last


def _read_plain(reader: _Reader, lines: list[str]) -> Line:
    """The same for the lines of one stream: its rows are read a table at a time."""
    stream, at, last = reader.stream(""), 0, len(lines) - 1
    while at < last:
        done = 0
        if _ROW.match(lines[at]):
            done = stream.rows(lines, at, last)
        elif _is_device(lines[at]):
            done = stream.devices(lines, at, last)
        at += done
        if not done:
            stream.line(at + 1, lines[at])
            at += 1
    return Line(len(lines), "", lines[-1])


def _finish(draft: _Draft) -> tuple[Run, list[Note]]:
    """The run of a draft, and the notes on what its numbers say of each other."""
    ranks, evidence = _ranks(draft)
    communicator = _communicator_ranks(draft, ranks)
    n = communicator or (None if _groups(draft) > 1 else ranks)
    possible, operation_evidence = _operations(draft, n)
    if ranks is None and draft.rows:
        ranks, evidence = arithmetic.infer_ranks(possible, draft.samples, draft.printed)
        n = ranks
    operation = possible[0] if len(possible) == 1 else None
    average = draft.average if draft.average and arithmetic.is_finite(draft.average) else None
    devices = draft.devices.values()
    hosts = tuple(filter(None, dict.fromkeys(d.host for d in devices)))
    models = dict.fromkeys(model.strip() for model in dict.fromkeys(d.model for d in devices))
    run = Run(
        tool=draft.tool, kind="collective", status=_status(draft), line=draft.line, samples=_with_cycles(draft.samples),
        operation=operation, operation_candidates=possible if operation is None else (),
        operation_evidence=operation_evidence if operation else None, program=draft.program,
        tool_version=draft.tool_version, library_version=draft.library, command=draft.command,
        ranks=ranks, ranks_evidence=evidence, nodes=_nodes(draft, ranks), hosts=hosts,
        gpu_model=" + ".join(filter(None, models)) or None,
        communicator_ranks=communicator, average_busbw_gbyte_s=float(average) if average else None,
        out_of_bounds=draft.out_of_bounds, iterations=draft.parameters.get("iters"),
        warmup_iterations=draft.parameters.get("warmupiters"), aggregated_iterations=draft.parameters.get("aggiters"),
        validation=draft.parameters.get("validation"),
    )  # fmt: skip
    checks = arithmetic.check(
        draft.samples, draft.printed, operation=operation, ranks=n, ranks_evidence=evidence, average=average
    )
    return run, [*_remarks(draft, run), *checks]


def _status(draft: _Draft) -> str:
    if draft.failures:
        return "failed"
    if not draft.rows:
        return "truncated" if draft.torn else "no_data"
    # NCCL 1.x prints no footer: rows are all there is to see.
    return "complete" if draft.finished or (draft.tool == "nccl1-test" and not draft.torn) else "truncated"


def _is_device(text: str) -> bool:
    return text.lstrip("# \t").startswith("Rank ")


def _groups(draft: _Draft) -> int:
    return len({d.group or "0" for d in draft.devices.values()})


def _ranks(draft: _Draft) -> tuple[int | None, str | None]:
    if draft.devices:
        return max(draft.devices) + 1, "device lines"
    # A command proves the ranks of a run that came to print rows, not of one that failed for want of GPUs.
    found = command.ranks_of(draft.command) if draft.command and draft.rows else None
    return (found, "command line") if found else (None, None)


def _communicator_ranks(draft: _Draft, ranks: int | None) -> int | None:
    """Ranks of one communicator where NCCL_TESTS_SPLIT made several of the same size."""
    sizes = Counter([d.group or "0" for d in draft.devices.values()])
    complete = len(draft.devices) == ranks and len(set(sizes.values())) == 1
    return next(iter(sizes.values())) if len(sizes) > 1 and complete else None


def _nodes(draft: _Draft, ranks: int | None) -> int | None:
    if not draft.devices:
        return 1 if draft.rows and draft.command and ranks and command.is_one_process(draft.command) else None
    hosts = {d.host for d in draft.devices.values()}
    covered = len(hosts) * (max(map(int, {d.number for d in draft.devices.values()})) + 1)
    return len(hosts) if ranks is not None and (len(draft.devices) == ranks or covered >= ranks) else None


def _operations(draft: _Draft, ranks: int | None) -> tuple[tuple[str, ...], str | None]:
    """What the run may have been, and how that is known: program line, command line, failure line, columns.

    A command that the columns contradict is another table's.
    """
    if told := arithmetic.operation_of(draft.program or ""):
        return (told,), "program line"
    deviation = bool(draft.layout and draft.layout.deviation)
    validated = draft.parameters.get("validation") != 0
    found = arithmetic.candidates(draft.samples, draft.printed, ranks, validated=validated, deviation=deviation)
    for operation, evidence in (
        (command.operation_in(draft.command or ""), "command line"),
        (next((m[1] for _, t in draft.failures if (m := _SOURCE_FILE.search(t))), None), "failure line"),
    ):
        if operation and (not found or operation in found):
            return (operation,), evidence
    return found, "columns" if found else None


def _with_cycles(samples: Samples) -> Samples:
    """Numbers the repeats that -N prints under one header. (Size 0 repeats without it, where requests are tiny.)"""
    sizes = samples.column("size_bytes")
    filled = [key for key in zip(sizes, samples.column("placement"), strict=True) if key[0]]
    if len(set(filled)) == len(filled):
        return samples
    seen: Counter[tuple[Any, ...]] = Counter()
    cycles = []
    for s in samples:
        seen[s[_FIRST:_LAST]] += 1
        cycles.append(seen[s[_FIRST:_LAST]] if s.size_bytes else None)
    repeated = any(count > 1 and key[0] for key, count in seen.items())
    return Samples({**samples.columns, "cycle": cycles}) if repeated else samples


def _remarks(draft: _Draft, run: Run) -> Iterator[Note]:
    """What a reader of this run must know, beside its rows."""
    if draft.failures:
        yield _first(draft.failures, "failure", "The benchmark failed")
    if draft.launcher:
        yield _first(draft.launcher, "launcher_message", "The launcher reports")
    if run.status == "truncated":
        yield Note(draft.line, "no_footer", "The run ends without its footer; the rows before that are kept.")
    if run.status == "no_data" and draft.seen:
        yield Note(draft.line, "no_rows", "The run starts and prints neither a row nor an error.")
    if draft.elided:
        yield Note(draft.elided, "rows_elided", 'Rows were left out by hand here ("...").')
    if draft.interleaved:
        yield Note(
            draft.line, "interleaved",
            "Several processes print into each other (built without MPI?): each is a run of its own, and which row "
            "belongs to which of them is not known.",
        )  # fmt: skip
    if run.ranks == 1 and draft.rows:
        yield Note(draft.line, "one_rank", "One rank: no fabric was measured.")
    wrong = draft.samples.column("wrong")
    if any(wrong) or draft.out_of_bounds:
        line = next(
            (line for line, count in zip(draft.samples.column("line"), wrong, strict=True) if count), draft.line
        )
        yield Note(line, "wrong_data", "The benchmark found wrong results; the rows are not fit to be quoted.")


def _first(lines: list[tuple[int, str]], code: str, what: str) -> Note:
    more = f" ({len(lines)} such lines)" if len(lines) > 1 else ""
    return Note(lines[0][0], code, f"{what}: {_short(lines[0][1])}{more}")


def _numeric(rest: str) -> bool:
    """Foreign text that begins like a cell: where the row ends cannot be told."""
    return bool(re.match(r"\s*(?:[-.\d]|N/A|nan|inf)", rest))


def _is_number(cell: str) -> bool:
    return bool(re.fullmatch(r"-?(?:nan|inf|\d+(?:\.\d+)?(?:e[+-]\d+)?)", cell))


def _short(text: str) -> str:
    text = " ".join(text.split())
    return text if len(text) <= 120 else text[:119] + "…"
