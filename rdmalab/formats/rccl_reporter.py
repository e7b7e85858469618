"""rccl-tests-reporter: the CSV and JSON of rccl-tests ``-Z csv|json -X FILE``, a record a row and placement.

    numCycle,collective,ranks,rankspernode,gpusperrank,size,type,redop,inplace,time,algbw,busbw,#wrong
    0,AllReduce,2,16,8,1,1048576,float,sum,0,61.13,17.15,32.16,0

Under MPI a row of CSV has one field more than its header: the number of nodes stands behind the name. There is no
footer, so a file is complete where no row of it is torn.
"""

import re
from dataclasses import dataclass, field
from itertools import groupby

from rdmalab.formats import _collectives as arithmetic
from rdmalab.formats._collectives import Printed
from rdmalab.formats._json import documents
from rdmalab.formats._lines import ends_with_line_end, unprefixed
from rdmalab.model import COLLECTIVES, Note, Parsed, Run, Sample
from rdmalab.sources import Text

NAME = "rccl-tests-reporter"
EXAMPLE = "0,AllReduce,2,16,8,1,1048576,float,sum,0,61.13,17.15,32.16,0"
HINTS = (b"numCycle",)
SIGNATURE = re.compile(rb'numCycle,collective,|"numCycle"[ \t]*:')
_ANCHOR = re.compile(r"numCycle,collective,")
_OPERATIONS = {name.replace("_", ""): name for name in COLLECTIVES}
_NEEDED = {"collective", "size", "type", "inplace", "time", "algbw", "busbw"}
_SAME = ("collective", "nodes", "ranks", "rankspernode", "gpusperrank", "gpus")
_YES_NO = {"0": "out_of_place", "1": "in_place", "false": "out_of_place", "true": "in_place"}


@dataclass(frozen=True, slots=True)
class _Record:
    """One row, by the lower-case name of its column."""

    line: int
    cells: dict[str, str]

    @property
    def run(self) -> tuple[str, ...]:
        """What is the same in all rows of one run."""
        return tuple(self.cells.get(name, "") for name in _SAME)


@dataclass(slots=True)
class _Found:
    records: list[_Record] = field(default_factory=list)
    notes: list[Note] = field(default_factory=list)
    torn: bool = False

    def lose(self, line: int, text: str) -> None:
        self.torn = True
        self.notes.append(Note(line, "torn_row", f"A row that is not whole is left out: {text.strip()[:120]}"))


def parse(text: Text) -> Parsed:
    """Reads all records; those that follow each other under one name and one number of ranks are a run."""
    found = _Found()
    lines = [(line.number, line.text) for line in unprefixed(text, _ANCHOR)]
    _csv(lines, found)
    _json(lines, found)
    last, content = lines[-1] if lines else (0, "")
    closed = ends_with_line_end(text) or content.rstrip().endswith(("]", "}"))
    if found.records and found.records[-1].line == last and not closed:  # digits may be missing
        found.lose(found.records.pop().line, content)
    runs: list[Run] = []
    for _, records in groupby(found.records, key=lambda r: r.run):
        if run := _run(list(records), found):
            runs.append(run)
    return Parsed(runs=tuple(runs), notes=tuple(sorted(found.notes, key=lambda n: n.line or 0)))


def _csv(lines: list[tuple[int, str]], found: _Found) -> None:
    columns: list[str] = []
    for number, line in lines:
        cells = [cell.strip() for cell in line.split(",")]
        if cells[0] == "numCycle":
            columns = [name.lower() for name in cells]
            if not set(columns) >= _NEEDED:
                columns = []
                found.notes.append(Note(number, "unknown_header", f"Columns that are not known: {line.strip()[:120]}"))
        elif columns and cells[0].isdigit() and len(cells) > 1:
            names = [*columns[:2], "nodes", *columns[2:]] if len(cells) == len(columns) + 1 else columns
            if len(cells) == len(names):
                found.records.append(_Record(number, dict(zip(names, cells, strict=True))))
            else:
                found.lose(number, line)


def _json(lines: list[tuple[int, str]], found: _Found) -> None:
    for number, document in documents(lines, '"numCycle"'):
        if document is None:
            found.lose(number, "a JSON document")
        for entry in document if isinstance(document, list) else [document]:
            if isinstance(entry, dict) and "numCycle" in entry:
                cells = {str(k).lower(): str(v).strip() for k, v in entry.items()}
                found.records.append(_Record(number, cells | {"collective": cells.get("name", "")}))


def _run(records: list[_Record], found: _Found) -> Run | None:
    samples: list[Sample] = []
    printed: list[Printed] = []
    for record in records:
        try:
            samples.append(_sample(record))
            printed.append((record.cells["time"], record.cells["algbw"], record.cells["busbw"]))
        except (KeyError, ValueError):
            found.lose(record.line, ",".join(record.cells.values()))
    if not samples:
        return None
    first = records[0].cells
    operation = _OPERATIONS.get(re.sub("[^a-z]", "", first["collective"].lower().removesuffix("_perf")))
    ranks = _product(first.get("ranks"), first.get("gpusperrank", "1")) or _product(first.get("gpus"), "1")
    found.notes += arithmetic.check(
        samples, printed, operation=operation, ranks=ranks, ranks_evidence="columns" if ranks else None, average=None
    )
    nodes = first.get("nodes", "")
    return Run(
        tool="rccl-tests", kind="collective", status="truncated" if found.torn else "complete", line=records[0].line,
        samples=tuple(samples), operation=operation, operation_evidence="column" if operation else None,
        program=first["collective"] or None, ranks=ranks, ranks_evidence="columns" if ranks else None,
        nodes=int(nodes) if re.fullmatch("[0-9]{1,9}", nodes) else None,
    )  # fmt: skip


def _sample(record: _Record) -> Sample:
    cells = record.cells
    redop, root = cells.get("redop", ""), cells.get("root", "-1")
    wrong = cells.get("#wrong", cells.get("wrong", "N/A"))
    return Sample(
        line=record.line, size_bytes=arithmetic.whole(cells["size"]), dtype=cells["type"],
        redop=redop if redop in arithmetic.REDOPS else None, root=None if root == "-1" else arithmetic.whole(root),
        placement=_YES_NO[cells["inplace"].lower()], time_us=arithmetic.real(cells["time"]),
        algbw_gbyte_s=arithmetic.real(cells["algbw"]), busbw_gbyte_s=arithmetic.real(cells["busbw"]),
        wrong=arithmetic.whole(wrong) if wrong.isdigit() else None,
    )  # fmt: skip


def _product(*numbers: str | None) -> int | None:
    """The product of whole numbers, None where one is missing."""
    product = 1
    for number in numbers:
        if number is None or not re.fullmatch("[0-9]{1,6}", number):
            return None
        product *= int(number)
    return product or None
