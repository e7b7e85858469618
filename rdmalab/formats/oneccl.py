"""oneCCL benchmark: times of collectives, without any bandwidth.

    # Benchmarking: allreduce
    # #processes: 16
        #bytes  #elem_count  #repetitions  t_min[usec]  t_max[usec]  t_avg[usec]  stddev[%]
       1048576       262144            20        58.31        66.02        61.13       3.10

The time of a row is the average over repetitions and processes. uxlfoundation/oneCCL examples/benchmark.
"""

import re
from dataclasses import dataclass, field

from rdmalab.formats import _collectives as arithmetic
from rdmalab.formats._lines import ends_with_line_end, unprefixed
from rdmalab.model import COLLECTIVES, Note, Parsed, Run, Sample
from rdmalab.sources import Text

NAME = "oneccl-benchmark"
EXAMPLE = "1048576       262144            20        58.31        66.02        61.13       3.10"
HINTS = (b"#elem_count", b"# Benchmarking:", b"#Benchmarking:")
SIGNATURE = re.compile(rb"#bytes[ \t]+#elem_count[ \t]|# Benchmarking: \w")
_ANCHOR = re.compile(r"# Benchmarking: |# #processes: |#bytes +#elem_count")
_OPERATIONS = {name.replace("_", ""): name for name in COLLECTIVES} | {"allgatherv": "all_gather", "bcast": "broadcast"}
_BENCHMARK = re.compile(r"# Benchmarking: (\w+)")
_PROCESSES = re.compile(r"# #processes: (\d{1,9})\s*$")
_COLUMNS = {
    "#bytes": "size_bytes", "#elem_count": "count", "#repetitions": "iterations", "t_min[usec]": "iter_min_us",
    "t_max[usec]": "iter_max_us", "t_avg[usec]": "time_us",
}  # fmt: skip


@dataclass(slots=True)
class _Draft:
    line: int
    name: str = ""
    processes: int | None = None
    columns: list[str | None] = field(default_factory=list)
    samples: list[Sample] = field(default_factory=list)
    torn: bool = False


def parse(text: Text) -> Parsed:
    """Reads all tables; each is a run."""
    drafts: list[_Draft] = []
    notes: list[Note] = []
    number, whole = 0, ends_with_line_end(text)
    lines = list(unprefixed(text, _ANCHOR))
    last = lines[-1].number if lines else 0
    for number, _, line in lines:
        if found := _BENCHMARK.match(line.strip()):
            drafts.append(_Draft(number, found[1]))
        elif (found := _PROCESSES.match(line.strip())) and drafts:
            drafts[-1].processes = int(found[1])
        elif line.split()[:2] == ["#bytes", "#elem_count"]:
            if not drafts or drafts[-1].columns:
                before = drafts[-1] if drafts else _Draft(number)
                drafts.append(_Draft(number, before.name, before.processes))
            drafts[-1].columns = [_COLUMNS.get(word) for word in line.split()]
        elif drafts and drafts[-1].columns and re.match(r"\s*\d", line):
            sample = _sample(drafts[-1].columns, number, line) if whole or number < last else None
            if sample:
                drafts[-1].samples.append(sample)
            else:
                drafts[-1].torn = True
                notes.append(Note(number, "torn_row", f"A row that is not whole is left out: {line.strip()[:120]}"))
    return Parsed(runs=tuple(map(_run, drafts)), notes=tuple(notes))


def _sample(columns: list[str | None], number: int, line: str) -> Sample | None:
    cells = line.split()
    if len(cells) != len(columns) or "time_us" not in columns:
        return None
    named = {name: cell for name, cell in zip(columns, cells, strict=True) if name}
    try:
        values = {n: arithmetic.real(c) if n.endswith("_us") else arithmetic.whole(c) for n, c in named.items()}
    except ValueError:
        return None
    return Sample(line=number, **values)  # type: ignore[arg-type]


def _run(draft: _Draft) -> Run:
    operation = _OPERATIONS.get(draft.name.replace("_", "").lower())
    return Run(
        tool="oneccl-benchmark", kind="collective", line=draft.line, samples=tuple(draft.samples),
        status="truncated" if draft.torn else "complete" if draft.samples else "no_data",
        operation=operation, operation_evidence="title line" if operation else None, program=draft.name or None,
        ranks=draft.processes, ranks_evidence="processes line" if draft.processes else None,
    )  # fmt: skip
