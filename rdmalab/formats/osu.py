"""OSU micro-benchmarks of MPI: latency, bandwidth, message rate and collectives.

    # OSU MPI-CUDA Allreduce Latency Test v7.5
    # Datatype: MPI_CHAR.
    # Size       Avg Latency(us)   Min Latency(us)   Max Latency(us)  Iterations
    4                      33.78              9.34             58.23          50

``MB/s`` are 10^6 byte/s. A point-to-point latency is half of the round trip; that of a collective is the mean over the
ranks, its minimum and maximum are those of the ranks. The size of a collective is printed as the tool understands it:
with gather, scatter, allgather and all-to-all it is the part of one rank. Bus bandwidth is not printed, nor is what
carried the messages.

Sources: the suite's osu_latency.c, osu_bw.c, osu_mbw_mr.c, osu_coll.c and osu_util_mpi.c (titles, columns, widths).
"""

import re
from collections.abc import Iterator
from dataclasses import dataclass, field
from typing import Any

from rdmalab.formats import _lines
from rdmalab.formats._lines import Line
from rdmalab.model import Note, Parsed, Run, Sample
from rdmalab.sources import Text

NAME = "osu"
EXAMPLE = "# OSU MPI Allreduce Latency Test v5.3"
HINTS = (b"# OSU MPI",)
SIGNATURE = re.compile(rb"# OSU MPI[ _-]")
_ANCHOR = re.compile(r"# OSU MPI[ _-]|# Size  |# Datatype: ")

_TITLE = re.compile(
    r"# OSU MPI(?P<call>_\w+?)?(?P<memory>-[A-Z]+(?: MANAGED)?)? (?P<test>.+?) Test v(?P<version>[\d.]+\w*)$"
)
_COMMAND = re.compile(r"(?:^|[\s/;&+$(])osu_\w+(?:\s.*)?$")
_PROMPT = re.compile(r"^(?:\[[^\]]*\]|\S*)[$#>] +")
_PLACES = re.compile(r"\s(H|D|M|MD|MH) (H|D|M|MD|MH)$")  # where the buffers of a point-to-point test lie
_PROCESSES = re.compile(r"\b(?:mpirun|mpiexec|srun|orterun|prterun)\b.*?\s(?:-np|-n|--np|--ntasks)[ =]*(\d{1,9})\s")
_BUFFERS = re.compile(
    r"# (?:Send Buffer|Rank 0 Memory) on (\w+)(?: \(\w\))? and (?:Receive Buffer|Rank 1 Memory) on (\w+)"
)
_PAIRS = re.compile(r"# \[ pairs: (\d{1,9}) \]")
_HEADER = re.compile(r"# (?:Size|(?:Avg )?Latency ?\(us\)|Overall\(us\)).*")
_COLUMN = re.compile(
    r"Size\b|(?:Avg |Min |Max )?Latency ?\(us\)|Bandwidth \(MB/s\)|MB/s|Messages/s|Iterations|Validation"
    r"|P\d+ Tail (?:Lat\(us\)|BW\(MB/s\))"
)
_NUMBER = re.compile(r"\d+\.\d\d")  # FLOAT_PRECISION is 2: a number with fewer decimals has lost some
_FAILURE = re.compile(
    r"This test requires |DATA VALIDATION ERROR|Fatal error in |An error occurred in MPI_|MPI_ABORT was invoked"
    r"|osu_\w+: .*Assertion .* failed"
)
_LAUNCHER = re.compile(
    r"(?:mpirun|mpiexec|prterun) noticed that process|srun: error: |slurmstepd: error: |BAD TERMINATION OF|"
    r"^Segmentation fault|^Killed\b|\*\*\* Process received signal"
)


@dataclass(frozen=True)
class _Test:
    """What the title of a test means. ``collective`` tests have ``one_rank`` where the size is the part of one rank."""

    program: str
    kind: str
    operation: str | None = None
    convention: str | None = None
    bidirectional: bool | None = None
    one_rank: bool = False
    largest: int = 1 << 22  # bytes, where the tool stops without -m


_POINT_TO_POINT = {
    "latency": _Test("osu_latency", "latency", "send", "one_way"),
    "multithreadedlatency": _Test("osu_latency_mt", "latency", "send", "one_way"),
    "multiprocesslatency": _Test("osu_latency_mp", "latency", "send", "one_way"),
    "multilatency": _Test("osu_multi_lat", "latency", "send", "one_way"),
    "bandwidth": _Test("osu_bw", "bandwidth", "send", bidirectional=False),
    "bidirectionalbandwidth": _Test("osu_bibw", "bandwidth", "send", bidirectional=True),
    "multiplebandwidth/messagerate": _Test("osu_mbw_mr", "bandwidth", "send", bidirectional=False),
}
# Words of the title: program, operation, size is the part of one rank.
_COLLECTIVES = {
    "allreduce": ("osu_allreduce", "all_reduce", False),
    "allgather": ("osu_allgather", "all_gather", True),
    "allgatherv": ("osu_allgatherv", None, True),
    "broadcast": ("osu_bcast", "broadcast", False),
    "reduce": ("osu_reduce", "reduce", False),
    "reducescatter": ("osu_reduce_scatter", "reduce_scatter", False),
    "reducescatterblock": ("osu_reduce_scatter_block", "reduce_scatter", False),
    "gather": ("osu_gather", "gather", True),
    "gatherv": ("osu_gatherv", None, True),
    "scatter": ("osu_scatter", "scatter", True),
    "scatterv": ("osu_scatterv", None, True),
    "alltoallpersonalizedexchange": ("osu_alltoall", "alltoall", True),
    "alltoallvpersonalizedexchange": ("osu_alltoallv", "alltoallv", True),
    "alltoallwpersonalizedexchange": ("osu_alltoallw", None, True),
    "barrier": ("osu_barrier", None, False),
}
_ONE_SIDED = {"_Put": ("put", "write"), "_Get": ("get", "read")}


@dataclass
class _Table:
    """What one invocation printed."""

    line: int
    title: re.Match[str]
    command: str | None = None
    columns: list[str] = field(default_factory=list)
    header: Line | None = None
    unknown: str = ""  # words of the header that are no known column
    buffers: tuple[str, str] | None = None
    dtype: str | None = None
    pairs: int | None = None
    rows: list[tuple[int, dict[str, str]]] = field(default_factory=list)
    torn: list[Line] = field(default_factory=list)
    failures: list[Line] = field(default_factory=list)
    launcher: list[Line] = field(default_factory=list)
    closed: bool = False


def parse(text: Text) -> Parsed:
    """One run for each title."""
    reader = _Reader()
    for line in _lines.unprefixed(text, _ANCHOR):
        reader.read(line._replace(text=line.text.strip()))
    results = [_run(table) for table in reader.tables]
    return Parsed(runs=tuple(run for run, _ in results), notes=tuple(n for _, notes in results for n in notes))


# --- reading ------------------------------------------------------------------------------------------------------


class _Reader:
    """Sorts lines to tables; what a launcher says without a prefix belongs to the table begun last."""

    def __init__(self) -> None:
        self.tables: list[_Table] = []
        self._current: dict[str, _Table] = {}
        self._command: str | None = None

    def read(self, line: Line) -> None:
        if found := _TITLE.match(line.text):
            self._current[line.tag] = _Table(line.number, found, command=self._command)
            self.tables.append(self._current[line.tag])
            self._command = None
        elif not line.text.startswith("#") and _COMMAND.search(line.text):
            self._command = _PROMPT.sub("", line.text)
            self._current.pop(line.tag, None)
        elif table := self._current.get(line.tag):
            _read(table, line)
        elif self.tables and (_FAILURE.search(line.text) or _LAUNCHER.search(line.text)):
            _read(self.tables[-1], line)


def _read(table: _Table, line: Line) -> None:
    text = line.text
    if _FAILURE.search(text):
        table.failures.append(line)
    elif _LAUNCHER.search(text):
        table.launcher.append(line)
    elif found := _BUFFERS.match(text):
        table.buffers = found[1], found[2]
    elif found := _PAIRS.match(text):
        table.pairs = int(found[1])
    elif text.startswith("# Datatype: "):
        table.dtype = text.removeprefix("# Datatype: ").rstrip(".")
    elif table.header is None and _HEADER.fullmatch(text):
        table.header = line
        table.columns = _COLUMN.findall(text)
        table.unknown = _COLUMN.sub("", text.removeprefix("#")).strip()
    elif table.header and not table.closed:
        _read_row(table, line)


def _read_row(table: _Table, line: Line) -> None:
    """A row, a torn row, or the beginning of what another program prints."""
    text = line.text
    if text.startswith("#") and table.rows:
        table.closed = True
    if not table.header or not re.match(r"[\d.]+(\s|$)", text) or table.unknown:
        return
    words = text.split()
    if len(words) > len(table.columns):
        return
    row = dict(zip(table.columns, words, strict=False))
    last = int(table.rows[-1][1].get("Size", -1)) if table.rows else -1
    if len(words) == len(table.columns) and all(_is_whole(c, v, text, table) for c, v in row.items()):
        if int(row.get("Size", 0)) > last:  # sizes only grow: another number is another program's
            table.rows.append((line.number, row))
    else:
        table.torn.append(line)


def _is_whole(column: str, word: str, text: str, table: _Table) -> bool:
    """Whether a value has all its characters; an integer at the end of a row shows that only by the row's width."""
    if column == "Validation":
        return word in ("Pass", "Fail")
    if column in ("Size", "Iterations"):
        ends = column == table.columns[-1] and len(table.columns) > 1
        return word.isascii() and word.isdigit() and len(word) < 19 and not (ends and _is_short(text, table))
    return bool(_NUMBER.fullmatch(word)) and len(word) < 19


def _is_short(text: str, table: _Table) -> bool:
    return table.header is not None and len(text) < len(table.header.text)


# --- judging ------------------------------------------------------------------------------------------------------


def _test(title: re.Match[str]) -> _Test | None:
    """What a title stands for; None for a test that is not known, whose columns have no certain meaning then."""
    words = re.sub(r"[ _-]", "", title["test"]).lower()
    if title["call"]:
        verb, operation = _ONE_SIDED.get(title["call"], (title["call"].strip("_").lower(), None))
        short = {"latency": "latency", "bandwidth": "bw", "bidirectionalbandwidth": "bibw"}.get(words)
        kind = "latency" if short == "latency" else "bandwidth"
        two = None if short == "latency" else short == "bibw"
        return _Test(f"osu_{verb}_{short}", kind, operation, bidirectional=two) if short else None
    if words in _POINT_TO_POINT:
        return _POINT_TO_POINT[words]
    if words.removesuffix("latency") in _COLLECTIVES and words.endswith("latency"):
        program, operation, one_rank = _COLLECTIVES[words.removesuffix("latency")]
        return _Test(program, "collective", operation, one_rank=one_rank, largest=1 << 20)
    return None


def _run(table: _Table) -> tuple[Run, list[Note]]:
    test = _test(table.title)
    samples = tuple(_sample(line, row, test, table) for line, row in table.rows) if test else ()
    failed = any(row.get("Validation") == "Fail" for _, row in table.rows)
    kind = test.kind if test else "latency" if "atency" in table.title["test"] else "bandwidth"
    ranks = _ranks(table, kind)
    run = Run(
        tool=NAME, kind=kind, status=_status(table, samples, failed), line=table.line, samples=samples,
        operation=test.operation if test else None, operation_evidence="title" if test and test.operation else None,
        program=test.program if test else None, tool_version=table.title["version"], command=table.command,
        ranks=ranks, ranks_evidence="command line" if ranks else None, memory=_memory(table),
        validation=1 if "Validation" in table.columns else None,
        latency_convention=test.convention if test else None, bidirectional=test.bidirectional if test else None,
        streams=table.pairs, unit_printed="MB/s" if kind == "bandwidth" else None,
    )  # fmt: skip
    return run, list(_notes(table, test, samples, failed))


_FIELDS = {"Min Latency(us)": "lat_min_us", "Max Latency(us)": "lat_max_us", "P50 Tail Lat(us)": "lat_typical_us",
           "P99 Tail Lat(us)": "lat_p99_us"}  # fmt: skip


def _sample(line: int, row: dict[str, str], test: _Test, table: _Table) -> Sample:
    values: dict[str, Any] = {_FIELDS[c]: float(v) for c, v in row.items() if c in _FIELDS}
    for column, word in row.items():
        if column.replace("Avg ", "").replace(" ", "") == "Latency(us)":
            values["time_us" if test.kind == "collective" else "lat_avg_us"] = float(word)
        elif column in ("Bandwidth (MB/s)", "MB/s"):
            values["bw_avg_gbit_s"] = float(word) / 125
        elif column == "Messages/s":
            values["msg_rate_mpps"] = float(word) / 1e6
    return Sample(
        line=line, size_bytes=int(row["Size"]) if "Size" in row else None, dtype=table.dtype,
        iterations=int(row["Iterations"]) if "Iterations" in row else None,
        wrong=0 if row.get("Validation") == "Pass" else None, **values,
    )  # fmt: skip


def _ranks(table: _Table, kind: str) -> int | None:
    """The processes of a collective, from the command where the log shows it."""
    found = _PROCESSES.search(table.command or "") if kind == "collective" else None
    return int(found[1]) if found else None


def _memory(table: _Table) -> str:
    """The buffers where they or the command are printed, else the title's accelerator, else the host."""
    shown = (table.title["memory"] or "").removeprefix("-").split(" ")[0].lower()
    accelerator = {"": "host", "managed": "cuda"}.get(shown, shown)
    stated = _PLACES.search(table.command or "")
    buffers = table.buffers or (stated.groups() if stated else ())
    if not buffers or accelerator == "host":
        return accelerator
    ends = ["host" if b in ("HOST", "H") else accelerator for b in buffers]
    return " + ".join(dict.fromkeys(ends))


def _status(table: _Table, samples: tuple[Sample, ...], failed: bool) -> str:
    """The tool prints no closing line: a table is complete unless something shows that it was cut."""
    if table.failures or failed:
        return "failed"
    if table.torn or (samples and table.launcher):
        return "truncated"
    return "complete" if samples else "no_data"


def _notes(table: _Table, test: _Test | None, samples: tuple[Sample, ...], failed: bool) -> Iterator[Note]:
    yield from (Note(f.number, "osu_failure", f.text[:300]) for f in table.failures)
    yield from (Note(f.number, "launcher", f.text[:300]) for f in table.launcher)
    yield from (Note(t.number, "torn_row", f"The row is not whole and is left out: {t.text}") for t in table.torn)
    if failed:
        yield Note(table.line, "validation_failed", "The tool found wrong data, so no row of this run is to be quoted.")
    if test is None and table.header:
        text = f"What '{table.title['test']}' measures is not known here, so its rows are not read."
        yield Note(table.line, "test_unknown", text)
    elif table.unknown and table.header:
        text = f"The header has columns that are not known, so the rows are not read: {table.unknown}"
        yield Note(table.header.number, "columns_unknown", text)
    if test is None or not samples:
        return
    if test.one_rank:
        yield Note(
            table.line, "size_of_one_rank", "The size is the part of one rank, not the sum of all as in nccl-tests."
        )
    if "Min Latency(us)" in table.columns:
        yield Note(
            table.line, "extremes_of_ranks", "Minimum and maximum are those of the ranks' means, not of iterations."
        )
    if (table.pairs or 1) > 1:
        yield Note(
            table.line, "sum_of_pairs", f"Bandwidth and message rate are sums over {table.pairs} pairs of ranks."
        )
    largest = samples[-1].size_bytes
    if largest is not None and largest < test.largest and _status(table, samples, failed) == "complete":
        text = f"The table ends at {largest} bytes: a limit of the user's own (-m, -M), or a log cut short."
        yield Note(samples[-1].line, "short_table", text)
