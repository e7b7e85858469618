"""ucx_perftest: bandwidth and latency of UCX, as box tables or CSV (``-v``).

    |    Stage     | # iterations | 50.0%ile | average | overall |  average |  overall |  average  |  overall  |
    [thread 0]              8691      4.818    57.496    57.496        0.13       0.13       17393       17393
    Final:                 20000      4.798    41.639    48.530        0.18       0.16       24016       20606

``average`` covers the time since the last progress row, ``overall`` the run: only ``overall`` is read, and only of the
final row. MB/s are 2^20 byte/s. The client prints the table but neither the name of the test nor the message size, the
server a box with both but no number; what a log does not hold stays null. The transport is never printed.

Sources: openucx/ucx, src/tools/perf/perftest.c and perftest_run.c (what is printed, the list of tests with their
windows), lib/libperf.c (a ping-pong's latency is half of the round trip, that of get and the fetching atomics is not).
"""

import re
import shlex
from collections.abc import Iterator
from dataclasses import dataclass, field
from itertools import pairwise

from rdmalab.formats import _lines
from rdmalab.formats._lines import Line
from rdmalab.model import Note, Parsed, Run, Sample
from rdmalab.sources import Text
from rdmalab.units import MIB_S_IN_GBIT_S

NAME = "ucx-perftest"
EXAMPLE = "Final:                 20000      4.798    41.639    48.530        0.18       0.16       24016       20606"
HINTS = (b"# iterations |", b"_lat,avg_lat", b"| API:")
SIGNATURE = re.compile(
    rb"\|\s*(?:Stage|Test)?\s*\| # iterations \| +[\d.]+%ile \||\| # iterations \| typical \|"
    rb"|iterations,(?:[\d.]+_percentile|typical)_lat,avg_lat|\| API: +(?:transport|protocol) layer +\|"
)
_ANCHOR = re.compile(r"\+-{14,}|\| +(?:Stage|Test) +\| # it|\| # iterations |iterations,[\w.]+_lat,|\| (?:API|Test): ")

_COMMAND = re.compile(r"(?:^|[\s/;&+$(])ucx_perftest\s+(?!\()")
_BOX = re.compile(r"\| (API|Test|Send memory|Recv memory|Message size): +(.*?) *\|$")
_GROUPS = re.compile(r"\|(?:\s*\|)+\s*(latency|overhead) \(usec\)\s*\|\s*bandwidth \(MB/s\)\s*\|\s*message rate")
_HEADER = re.compile(r"\|\s*(?:(Stage|Test)\s*\| )?# iterations \|\s*(?:([\d.]+)%ile|typical) \| average \| overall \|")
_CSV = re.compile(r"(.*,)?iterations,(?:([\d.]+)_percentile|typical)_lat,avg_lat,overall_lat,")
_BATCH = re.compile(r"\+[\w/.-]*[A-Za-z][\w/.]*-*\+")
_ROW = re.compile(r"(?=Final:|\[thread| *[\d,']+ +[\d.]+(?: |$))(Final:|\[thread \d+\])?")
_CSV_ROW = re.compile(r"(?=\[thread|[ \d]+,)(\[thread \d+\])?")
_NUMBER = re.compile(r"\d{1,18}(?:[,']\d{1,9}){0,6}(?:\.\d+)?")
_FAILURE = re.compile(
    r"\bUCX +(?:ERROR|FATAL)\b|\bFatal: |Caught signal \d|^Aborted\b|^Segmentation fault|[Ff]ailed to run test"
)


@dataclass
class _Table:
    """What is known of one invocation: the box, the table's header, its last row, a failure."""

    line: int
    box: dict[str, str] = field(default_factory=dict)
    command: str | None = None
    server: bool = False
    word: str | None = None  # latency, overhead: what the header says is measured
    percentile: float | None = None
    stage: bool = False  # the header's first column is "Stage": rows are progress unless marked "Final:"
    width: int = 0  # of the header, 0 before it
    csv: bool = False
    batch: bool = False
    finals: list[Line] = field(default_factory=list)
    progress: int = 0
    failure: tuple[int, str] | None = None


def parse(text: Text) -> Parsed:
    """A box, a table, or a box with its table is one run."""
    tables: dict[str, list[_Table]] = {}
    for line in _lines.unprefixed(text, _ANCHOR):
        _read(tables.setdefault(line.tag, []), line)
    found = [table for stream in tables.values() for table in stream if table.box or table.width or table.failure]
    results = [_run(table) for table in sorted(found, key=lambda t: t.line)]
    return Parsed(runs=tuple(run for run, _ in results), notes=tuple(n for _, notes in results for n in notes))


def _read(tables: list[_Table], line: Line) -> None:
    """Adds one line to the table it belongs to, or begins a new one."""
    text, last = line.text.rstrip(), tables[-1] if tables else None
    if _COMMAND.search(text) and _options(text):
        tables.append(_Table(line.number, command=text.strip()))
    elif text.startswith("Accepted connection from "):
        if last is None or last.box or last.width:
            tables.append(last := _Table(line.number))
        last.server = True
    elif found := _BOX.match(text):
        if last is None or last.width or found[1] in last.box:
            tables.append(last := _Table(line.number))
        last.box[found[1]] = found[2]
    elif found := _GROUPS.match(text):
        if last is None or last.word or last.width:
            tables.append(last := _Table(line.number))
        last.word = found[1]
    elif found := (_HEADER.match(text) or _CSV.match(text)):
        if last is None or last.width:
            tables.append(last := _Table(line.number))
        _read_header(last, found)
    elif last is not None:
        _read_row(last, line)


def _read_header(table: _Table, found: re.Match[str]) -> None:
    table.csv, table.width = found.re is _CSV, len(found.string.rstrip())
    table.stage = found[1] == "Stage" or (found.re is _HEADER and found[1] is None)  # old tables mark no row
    table.batch = table.csv and found[1] is not None
    table.percentile = float(found[2]) if found[2] else None


def _read_row(table: _Table, line: Line) -> None:
    text = line.text.rstrip()
    if table.width and (found := (_CSV_ROW if table.csv else _ROW).match(text)):
        if (found[1] or "").startswith("[") or (table.stage and found[1] is None):
            table.progress += 1
        else:
            table.finals.append(line)
    elif _BATCH.match(text):
        table.batch = True
    elif _FAILURE.search(text) and table.failure is None:
        table.failure = line.number, text.strip()[:300]


def _run(table: _Table) -> tuple[Run, list[Note]]:
    name, evidence = _test(table)
    operation, kind, convention = _meaning(name, table.word)
    notes = [] if table.failure is None else [Note(table.failure[0], "ucx_failure", table.failure[1])]
    samples: tuple[Sample, ...] = ()
    size = _size(table)
    if table.batch:
        notes.append(
            Note(table.line, "batch_mode", "The rows of a batch file (-b) do not name their tests and are not read.")
        )
    elif table.csv and kind is None:
        notes += [Note(row.number, "test_unknown", _UNKNOWN_CSV) for row in table.finals]
    else:
        samples, torn = _samples(table, kind, size)
        notes += torn
    notes += _doubts(table, samples, kind, convention, size)
    memory = [table.box[k] for k in ("Send memory", "Recv memory") if k in table.box]
    fabric, fabric_evidence = _fabric(table)
    return Run(
        tool=NAME, kind=kind or "bandwidth", status=_status(table, samples), line=table.line, samples=samples,
        operation=operation, operation_evidence=evidence if operation else None, program=_program(name),
        command=table.command, side=_side(table), memory=" + ".join(dict.fromkeys(memory)) or None,
        fabric=fabric, fabric_evidence=fabric_evidence, unit_printed="MB/s" if table.width and not table.csv else None,
        latency_convention=convention if kind == "latency" else None,
    ), notes  # fmt: skip


_UNKNOWN_CSV = "The CSV does not say whether its test measures latency or bandwidth, so the row is not read."


def _program(name: str | None) -> str:
    """The program with its test in the words of its ``-t`` option; a client that prints no test has none."""
    short = {f"{k} {m}": f"{v}_{m[:3] if m == 'latency' else 'bw'}" for k, v in _VERBS.items() for m in _MEASURES}
    return " ".join(["ucx_perftest", short.get(name, name)] if name else ["ucx_perftest"])


# The words of the Test line of a server's box, and of the -t option.
_VERBS = {"tag match": "tag", "put": "put", "stream": "stream", "active message": "am"}
_MEASURES = ("latency", "bandwidth")


def _test(table: _Table) -> tuple[str | None, str | None]:
    """The name of the test and where it stands."""
    if "Test" in table.box:
        return table.box["Test"].removeprefix("UCP "), f"Test: {table.box['Test']}"
    name = _options(table.command).get("-t") if table.command else None
    return name, f"-t {name}" if name else None


def _meaning(name: str | None, word: str | None) -> tuple[str | None, str | None, str | None]:
    """
    Operation, kind and latency convention of a test.

    Tag, stream and active messages are two-sided (send); put writes and get reads. Get and the fetching atomics wait
    for the answer, one at a time, and print ``latency`` as the ping-pongs do, so this word alone shows no convention.
    """
    if not name:
        return None, {"latency": "latency", "overhead": "bandwidth"}.get(word or ""), None
    verbs = {"add": "atomic", "swap": "atomic", "get": "read", "put": "write", "tag": "send", "am_": "send"}
    verbs |= {"active message": "send", "stream": "send"}
    operation = next((verb for key, verb in verbs.items() if key in name), None)
    if name.endswith(("_lat", " latency")):
        return operation, "latency", "one_way"
    if re.fullmatch(r"(?:ucp_)?(?:get|fadd|swap|cswap)|.* latency /.*", name):
        return operation, "latency", "round_trip"
    return operation, "message_rate" if name.endswith(("_mr", "add message rate")) else "bandwidth", None


def _options(command: str) -> dict[str, str]:
    """The options of a command line with their values; empty when the line cannot be split."""
    try:
        words = shlex.split(command[_COMMAND.search(command).end() :])  # type: ignore[union-attr]
    except ValueError:
        return {}
    return {a: b for a, b in pairwise(words) if re.fullmatch(r"-\w", a)}


def _size(table: _Table) -> int | None:
    """The message size of the box, else of the command line; bandwidth over rate would give it only roughly."""
    word = table.box.get("Message size") or (_options(table.command).get("-s") if table.command else None)
    return int(word) if word and re.fullmatch(r"\d{1,18}", word) else None


def _fabric(table: _Table) -> tuple[str | None, str | None]:
    """Only UCX_TLS on the command line can show the transport; ``self`` never leaves the process."""
    found = re.search(r"\bUCX_TLS=([\w,]+)", table.command or "")
    only_tcp = found is not None and {"tcp"} <= set(found[1].split(",")) <= {"tcp", "self"}
    return ("tcp", found[0]) if found and only_tcp else (None, None)


def _side(table: _Table) -> str | None:
    """The server prints the box, the client the table; both together are one end of MPI or two merged outputs."""
    if table.box or table.server:
        return None if table.width else "server"
    return "client" if table.width else None


def _samples(table: _Table, kind: str | None, size: int | None) -> tuple[tuple[Sample, ...], list[Note]]:
    """The final row; a table has one. Of several nothing says which is the result."""
    if len(table.finals) > 1:
        return (), [
            Note(row.number, "ambiguous_row", "One of several rows without a mark: none is known to be the result.")
            for row in table.finals
        ]
    samples, notes = [], []
    for row in table.finals:
        values = _values(table, row.text.rstrip())
        if values is None:
            notes.append(
                Note(row.number, "torn_row", f"The result row is not whole and is left out: {row.text.strip()[:120]}")
            )
        else:
            samples.append(_sample(row.number, values, kind, size, table.percentile))
    return tuple(samples), notes


def _values(table: _Table, text: str) -> list[float] | None:
    """
    The numbers of a result row, None for a row that is not whole.

    A table's row is right-aligned: 2 characters shorter than its header, 3 with the four columns that several threads
    print. A row of CSV has no width; a lost digit shows as a rate that is not 1 or 1/2 (ping-pongs, by version) message
    in the overall time.
    """
    words = text.split(",") if table.csv else text.removeprefix("Final:").split()
    if not all(_NUMBER.fullmatch(word.strip()) for word in words):
        return None
    values = [float(re.sub("[,']", "", word)) for word in words]
    if values and values[0] >= 2**53:  # iterations: no tool counts so far
        return None
    if table.csv:
        whole = len(values) == 8 and (0.4 < values[7] * values[3] / 1e6 < 1.1 or values[7] < 5)
    else:
        whole = len(text) >= table.width - {8: 2, 4: 3}.get(len(values), -1000)
    return values if whole else None


def _sample(line: int, values: list[float], kind: str | None, size: int | None, percentile: float | None) -> Sample:
    """Eight columns, or four with several threads: iterations and the overall latency, bandwidth and rate."""
    iterations, latency, bandwidth, rate = values if len(values) == 4 else (values[0], values[3], values[5], values[7])
    if kind == "latency":
        ranked = {percentile: values[1]} if len(values) == 8 else {}
        return Sample(
            line=line, size_bytes=size, iterations=int(iterations), lat_avg_us=latency,
            lat_typical_us=ranked.get(50.0), lat_p99_us=ranked.get(99.0), lat_p999_us=ranked.get(99.9),
        )  # fmt: skip
    return Sample(
        line=line, size_bytes=size, iterations=int(iterations), bw_avg_gbit_s=bandwidth * MIB_S_IN_GBIT_S,
        msg_rate_mpps=rate / 1e6,
    )  # fmt: skip


def _status(table: _Table, samples: tuple[Sample, ...]) -> str:
    """A failure after the result (at tear-down) is a note; a server prints no result, whatever happened."""
    if table.failure and not samples:
        return "failed"
    if samples:
        return "complete"
    return "truncated" if table.progress and not table.finals else "no_data"


def _doubts(
    table: _Table, samples: tuple[Sample, ...], kind: str | None, convention: str | None, size: int | None
) -> Iterator[Note]:
    if samples and size is None:
        yield Note(
            table.line, "size_unknown", "The client prints no message size; the server's log or the command does."
        )
    if samples and kind == "latency" and convention is None:
        text = "The test is not named: a ping-pong prints half of the round trip, get and fetching atomics all of it."
        yield Note(table.line, "convention_unknown", text)
    if table.progress and not table.finals:
        yield Note(table.line, "no_final_row", "The table has progress rows but no final row, and so no result.")
    if table.box and not table.width:
        told = ", ".join(f"{key}: {value}" for key, value in table.box.items() if key in ("Test", "Message size"))
        yield Note(table.line, "server_box", f"The server prints no numbers, the client's log has them ({told}).")
