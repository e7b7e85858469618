"""fi_pingpong: latency over libfabric, one row for each message size.

    bytes   #sent   #ack     total       time     MB/sec    usec/xfer   Mxfers/sec
    64k     500     =500     62m         0.23s    284.92     230.01       0.00

A message goes there and back and counts as two transfers, so ``usec/xfer`` is one way. ``MB/sec`` (10^6) is the size
over ``usec/xfer``. ``bytes`` is cut to a letter of base 1024, so that ``64k`` may stand for 65536 to 66559: the size is
taken where the tool chose it, the command states it or the other columns leave no other. Both ends print the table,
neither says which end it is, and without ``-v`` none names the provider.

Source: ofiwg/libfabric, util/pingpong.c (size_str, cnt_str, show_perf, generate_test_sizes).
"""

import re
from dataclasses import dataclass, field
from math import ceil, floor

from rdmalab.formats import _lines
from rdmalab.formats._lines import Line
from rdmalab.model import Note, Parsed, Run, Sample
from rdmalab.sources import Text

NAME = "fi-pingpong"
EXAMPLE = "64k     500     =500     62m         0.23s    284.92     230.01       0.00"
HINTS = (b"usec/xfer", b"util/pingpong.c:")
SIGNATURE = re.compile(rb"#sent +#ack +total +time +MB/sec +usec/xfer|util/pingpong\.c:\d+ *[:,]")
_ANCHOR = re.compile(r"bytes +#sent +#ack |\[(?:error|debug)\] \S*util/pingpong\.c:|\w+\(\): \S*util/pingpong\.c:")

_COMMAND = re.compile(r"(?:^|[\s/;&+$(])(fi_pingpong(?:\s.*)?)$")
_HEADER = re.compile(r"bytes +#sent +#ack +total +time +MB/sec +usec/xfer +Mxfers/sec$")
_ROW = re.compile(
    r"(?P<size>\d{1,15}(?:\.\d)?)(?P<letter>[kmg]?) +(?P<sent>\d{1,18})(?P<rounded>[kmb]?) +(?P<ack>[=+-]\d+[kmb]?)"
    r" +[\d.]+[kmg]? +\d+\.\d\ds +(?P<rate>\d{1,12}\.\d\d) +(?P<latency>\d{1,12}\.\d\d) +\d+\.\d\d$"
)
_LIKE_A_ROW = re.compile(r"\d+(?:\.\d)?[kmg]?(?: +\d+[kmb]?(?: +[=+-].*)?)?$")
_FAILURE = re.compile(
    r"\[error\] \S*util/pingpong\.c:\d+.*|\w+\(\): \S*util/pingpong\.c:\d+ *, ret=.*|\d+s timeout expired$"
    r"|Error at iteration=\d+ size=.*"
)
_PROVIDER = re.compile(r"util/pingpong\.c:\d+ *: Running pingpong test with the \S+ endpoint trough an? (\S+) provider")
_UNIT = {"": 1, "k": 1 << 10, "m": 1 << 20, "g": 1 << 30}
# Providers with one wire only; verbs runs on InfiniBand, RoCE and iWARP.
_FAMILY = {"tcp": "tcp", "sockets": "tcp", "efa": "efa", "cxi": "slingshot"}


@dataclass
class _Table:
    """What one invocation printed."""

    line: int
    command: str | None = None
    provider: str | None = None
    header: bool = False
    rows: list[tuple[int, re.Match[str]]] = field(default_factory=list)
    torn: list[Line] = field(default_factory=list)
    failures: list[Line] = field(default_factory=list)


def parse(text: Text) -> Parsed:
    """One run for each table, and for each failure without one."""
    tables: dict[str, list[_Table]] = {}
    for line in _lines.unprefixed(text, _ANCHOR):
        _read(tables.setdefault(line.tag, []), line)
    found = [t for stream in tables.values() for t in stream if t.header or t.failures]
    results = [_run(table) for table in sorted(found, key=lambda t: t.line)]
    return Parsed(runs=tuple(run for run, _ in results), notes=tuple(n for _, notes in results for n in notes))


def _read(tables: list[_Table], line: Line) -> None:
    """Adds one line to the invocation it belongs to, or begins a new one."""
    text, last = line.text.strip(), tables[-1] if tables else None
    if found := _COMMAND.search(text):
        tables.append(_Table(line.number, command=found[1]))
    elif _HEADER.match(text):
        if last is None or last.header or last.failures:
            tables.append(last := _Table(line.number))
        last.header = True
    elif _FAILURE.match(text):
        if last is None:
            tables.append(last := _Table(line.number))
        last.failures.append(Line(line.number, line.tag, text))
    elif found := _PROVIDER.search(text):
        if last is None or last.header:
            tables.append(last := _Table(line.number))
        last.provider = found[1]
    elif last is not None and last.header:
        _read_row(last, line, text)


def _read_row(table: _Table, line: Line, text: str) -> None:
    if found := _ROW.match(text):
        table.rows.append((line.number, found))
    elif _LIKE_A_ROW.match(text):
        table.torn.append(line)


def _run(table: _Table) -> tuple[Run, list[Note]]:
    notes = [Note(line.number, "fi_pingpong_failure", line.text[:300]) for line in table.failures]
    notes += [Note(t.number, "torn_row", f"The row is not whole and is left out: {t.text.strip()}") for t in table.torn]
    samples = []
    for line, row in table.rows:
        sample, doubts = _sample(line, row, len(table.rows) > 1, table.command)
        samples += [sample] if sample else []
        notes += doubts
    if samples:
        notes.append(Note(table.line, "ping_pong", _PING_PONG))
    provider, evidence = _provider(table)
    family = _FAMILY.get(provider or "")
    return Run(
        tool=NAME, kind="latency", status=_status(table, samples), line=table.line, samples=tuple(samples),
        program="fi_pingpong", command=table.command, memory="host", latency_convention="one_way",
        unit_printed="MB/sec" if table.header else None,
        fabric=family, fabric_evidence=evidence if family else None,
    ), notes  # fmt: skip


_PING_PONG = (
    "One message is under way at a time, so MB/sec is its size over its latency and not the bandwidth of the link;"
    " both ends print the same table."
)


def _sample(line: int, row: re.Match[str], chosen: bool, command: str | None) -> tuple[Sample | None, list[Note]]:
    """
    One row; None where its columns contradict each other, as those of a torn or edited row do.

    Args:
        chosen: The table has several rows, so the sizes are the tool's own, which its letters show exactly.
    """
    printed = f"{row['size']}{row['letter']}"
    first, last = _sizes(row)
    if first > last:
        return None, [Note(line, "contradiction", f"Size, rate and time of the row of {printed} do not agree.")]
    stated = re.search(r"\s-S +(\d{1,15})\b", command or "")
    size = _size(first, last, int(float(row["size"]) * _UNIT[row["letter"]]) if chosen else stated and int(stated[1]))
    notes = []
    if row["ack"][0] != "=":
        notes.append(Note(line, "lost_acks", f"The row of {printed} has messages without an answer: {row['ack']}."))
    if size is None:
        notes.append(Note(line, "size_rounded", f"The size is printed as {printed}, which more than one size fits."))
    return Sample(
        line=line, size_bytes=size, iterations=None if row["rounded"] else int(row["sent"]),
        lat_avg_us=float(row["latency"]), bw_avg_gbit_s=float(row["rate"]) / 125,
    ), notes  # fmt: skip


def _sizes(row: re.Match[str]) -> tuple[int, int]:
    """The first and last size that fits the printed one and ``MB/sec`` times ``usec/xfer``, of two decimals each."""
    unit, rate, latency = _UNIT[row["letter"]], float(row["rate"]), float(row["latency"])
    least = float(row["size"]) * unit
    step = unit if least >= 10 * unit else unit / 10  # below 10 the tool prints a decimal, unless it is 0
    most = least if unit == 1 else ceil(least + step) - 1
    low, high = max(0.0, rate - 0.0051) * max(0.0, latency - 0.0051), (rate + 0.0051) * (latency + 0.0051)
    return ceil(max(least, low)), floor(min(most, high))


def _size(first: int, last: int, told: int | None) -> int | None:
    """The size that was told, where it fits; else the only one that does."""
    if told is not None:
        return told if first <= told <= last else None
    return first if first == last else None


def _provider(table: _Table) -> tuple[str | None, str | None]:
    if table.provider:
        return table.provider.split(";")[0], f"provider {table.provider}"
    found = re.search(r"\s-p +(\S+)", table.command or "")
    return (found[1].split(";")[0], found[0].strip()) if found else (None, None)


def _status(table: _Table, samples: list[Sample]) -> str:
    """The tool prints no closing line: a table is complete unless something went wrong in it."""
    if table.failures:
        return "failed"
    if table.torn:
        return "truncated"
    return "complete" if samples else "no_data"
