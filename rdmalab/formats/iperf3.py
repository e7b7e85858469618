"""iperf3: the TCP and UDP baseline, as ``-J`` documents, ``--json-stream`` events or text.

    {"start": {"version": "iperf 3.12", ...}, "intervals": [...], "end": {"sum_received": {"bits_per_second": ...}}}
    [  5]   0.00-5.11   sec  43.7 MBytes  71.8 Mbits/sec                  receiver

The throughput is what the receiver got (``sum_received``, the ``receiver`` row): the sender's number counts bytes that
still lie in its own buffers. A byte stream has no message size, so none is given.
"""

import json
import re
from bisect import bisect_right
from collections.abc import Iterator
from dataclasses import dataclass, field, replace
from datetime import UTC, datetime, timedelta
from typing import Any

from rdmalab.formats import _lines
from rdmalab.formats._lines import Line
from rdmalab.model import Note, Parsed, Reading, Run, Sample
from rdmalab.sources import Text

NAME = "iperf3"
EXAMPLE = "[  5]   0.00-5.11   sec  43.7 MBytes  71.8 Mbits/sec                  receiver"
HINTS = (b"iperf", b"Connecting to host ", b"Server listening on ", b"Interval")
SIGNATURE = re.compile(
    rb'"version":\s*"iperf 3|Connecting to host [^\s,]+, port \d|Server listening on \d'
    rb"|iperf3?: (?:error|interrupt) - |\[ ID\](?:\[Role\])? Interval +Transfer +Bitrate"
)
_ANCHOR = re.compile(
    r'"start":\s*\{|"intervals":\s*\[|"end":\s*\{|\{"event":|Connecting to host |Server listening on |iperf Done'
    r"|Accepted connection from |iperf3: (?:error|interrupt) "
    r"|\[\s*(?:ID|\d+|SUM)\](?:\[\w+(?:-\w)?\])? +(?:Interval|local|\d)"
)

# src/units.c of iperf3: bits are counted in powers of 1000, bytes (-f K, M, G) in powers of 1024.
_RATE = {f"{p}bits/sec": 1000.0**n for n, p in enumerate(("", "K", "M", "G", "T"))} | {
    f"{p}Bytes/sec": 8 * 1024.0**n for n, p in enumerate(("", "K", "M", "G", "T"))
}
_ONE_STREAM = "One stream is bound by one core: its rate says little about a link of 100 Gbit/s or more."
_REVERSE = "The server sent and the client received (-R)."


def parse(text: Text) -> Parsed:
    """Every document and every text session is a run; a second direction (``--bidir``) is a run of its own."""
    streams: dict[str, list[Line]] = {}
    for line in _lines.unprefixed(text, _ANCHOR):
        streams.setdefault(line.tag, []).append(line)
    parts = [part for lines in streams.values() for part in _read(lines)]
    parts.sort(key=lambda p: p.runs[0].line or 0)
    return Parsed(
        runs=tuple(r for p in parts for r in p.runs),
        readings=tuple(r for p in parts for r in p.readings),
        notes=tuple(n for p in parts for n in p.notes),
    )


def _read(lines: list[Line]) -> Iterator[Parsed]:
    documents, rest = _split(lines)
    for line, document in documents:
        yield _cut_document(line) if document is None else _document(line, document)
    for session in _sessions(rest):
        yield _session(session)


# --- JSON ---------------------------------------------------------------------------------------------------------


def _split(lines: list[Line]) -> tuple[list[tuple[int, dict[str, Any] | None]], list[Line]]:
    """The documents with the line of their brace (None: the text ends inside one), and the lines outside of them."""
    body = "\n".join(line.text for line in lines)
    starts = [0]
    for line in lines:
        starts.append(starts[-1] + len(line.text) + 1)
    documents: list[tuple[int, dict[str, Any] | None]] = []
    rest: list[Line] = []
    index = 0
    while index < len(lines):
        found, after = _decoded(body, starts[index]) if lines[index].text.startswith("{") else (None, 0)
        if found is not None:
            _collect(documents, lines[index].number, found)
            index = max(index + 1, bisect_right(starts, after - 1))
        elif lines[index].text.rstrip() == "{":
            end = _end_of_cut(lines, index)
            if any('"iperf 3' in line.text for line in lines[index:end]):
                documents.append((lines[index].number, None))
            index = end
        else:
            rest.append(lines[index])
            index += 1
    return documents, rest


def _decoded(body: str, at: int) -> tuple[dict[str, Any] | None, int]:
    """The object that begins at *at* and the offset behind it. Repeated keys are normal here: the last one counts."""
    try:
        found, after = _DECODER.raw_decode(body, at)
    except (ValueError, RecursionError):
        return None, at
    return (found, after) if isinstance(found, dict) else (None, at)


_DECODER = json.JSONDecoder(parse_constant=lambda _: None)  # a rate of NaN or Infinity was not measured


def _end_of_cut(lines: list[Line], start: int) -> int:
    """A document is indented, so what is left of a torn one ends with the first line at the left margin."""
    end = start + 1
    while end < len(lines) and lines[end].text[:1] in ("\t", " ", "}", "]"):
        end += 1
    return end


def _collect(documents: list[tuple[int, dict[str, Any] | None]], line: int, found: dict[str, Any]) -> None:
    """Adds a document, or the event of a ``--json-stream`` (one object a line) to the document it belongs to."""
    event, data = found.get("event"), found.get("data")
    if event == "start" and isinstance(data, dict):
        documents.append((line, {"start": data, "intervals": [], "unfinished": True}))
    elif isinstance(event, str) and documents and (last := documents[-1][1]):
        if event == "interval" and isinstance(last.get("intervals"), list):
            last["intervals"].append(data)
        elif event in ("end", "error"):
            last[event] = data
            last.pop("unfinished", None)
    elif str(_at(found, "start", "version")).startswith("iperf 3"):
        documents.append((line, found))


def _cut_document(line: int) -> Parsed:
    run = Run(tool=NAME, kind="bandwidth", status="truncated", line=line, program="iperf3")
    return Parsed(runs=(run,), notes=(Note(line, "cut_document", "The JSON document ends before its closing brace."),))


def _document(line: int, document: dict[str, Any]) -> Parsed:
    """One JSON document: a run, or two with ``--bidir``; CPU use and intervals become readings."""
    base = _facts(line, document)
    notes = _error_notes(line, document) + _load_notes(line, document, base)
    directions = [""]
    if isinstance(_at(document, "end", "sum_received_bidir_reverse"), dict):
        directions.append("_bidir_reverse")
        base = replace(base, bidirectional=True)
        notes.append(Note(line, "bidirectional", "Two runs: client to server, then server to client; never their sum."))
    runs = []
    for direction in directions:
        value = _received(document, direction, base.protocol)
        samples = () if value is None else (Sample(bw_avg_gbit_s=value / 1e9),)
        runs.append(replace(base, samples=samples, status=_status(document, samples)))
        if value is None and runs[-1].status == "no_data":
            notes.append(Note(line, "not_measured", "The document does not say what the receiver got."))
    return Parsed(runs=tuple(runs), readings=(*_cpu(line, document), *_intervals(line, document)), notes=tuple(notes))


def _facts(line: int, document: dict[str, Any]) -> Run:
    start = document.get("start")
    protocol = _at(start, "test_start", "protocol")
    duration = _number(start, "test_start", "duration")
    streams = _number(start, "test_start", "num_streams")
    version = _at(start, "version")
    return _with_protocol(
        Run(
            tool=NAME, kind="bandwidth", status="complete", line=line, program="iperf3",
            tool_version=version.removeprefix("iperf ") if isinstance(version, str) else None,
            side=_side(start),
            streams=int(streams) if streams and streams < 1e9 else None,
            duration_s=duration or None,  # 0: the end was set by bytes or blocks (-n, -k), not by time
            bidirectional=False if _at(document, "end", "sum_received") else None,
        ),
        protocol if isinstance(protocol, str) else None,
    )  # fmt: skip


def _side(start: Any) -> str | None:
    if _at(start, "accepted_connection"):
        return "server"
    return "client" if _at(start, "connecting_to") else None


def _with_protocol(run: Run, protocol: str | None) -> Run:
    if protocol != "TCP":
        return replace(run, protocol=protocol)
    return replace(run, protocol=protocol, fabric="tcp", fabric_evidence="iperf3 measures the TCP stack of the kernel")


def _received(document: dict[str, Any], direction: str, protocol: str | None) -> float | None:
    """
    Bits per second that arrived, None where that was not measured.

    A TCP receiver of nothing means that the two ends could not exchange their results; of UDP it is a true 0.
    """
    value = _number(document, "end", f"sum_received{direction}", "bits_per_second")
    arrived = _number(document, "end", f"sum_received{direction}", "bytes")
    return None if not arrived and protocol != "UDP" else value


def _status(document: dict[str, Any], samples: tuple[Sample, ...]) -> str:
    if document.get("error") is not None:
        return "failed"
    if document.get("unfinished"):
        return "truncated"
    return "complete" if samples else "no_data"


def _error_notes(line: int, document: dict[str, Any]) -> list[Note]:
    error = document.get("error")
    if error is not None:
        return [Note(line, "iperf3_error", f"iperf3 failed: {error}")]
    if document.get("unfinished"):
        return [Note(line, "cut_document", "The stream of events has no end event.")]
    return []


def _load_notes(line: int, document: dict[str, Any], run: Run) -> list[Note]:
    notes = []
    if run.streams == 1 and run.protocol == "TCP":
        notes.append(Note(line, "single_stream", _ONE_STREAM))
    if _at(document, "start", "test_start", "reverse"):
        notes.append(Note(line, "reverse", _REVERSE))
    if resent := _number(document, "end", "sum_sent", "retransmits"):
        notes.append(Note(line, "retransmits", f"TCP segments sent again: {resent:.0f}."))
    if lost := _number(document, "end", "sum_received", "lost_packets"):
        share = _number(document, "end", "sum_received", "lost_percent")
        words = "" if share is None else f" ({share:.2f} %)"
        notes.append(Note(line, "udp_loss", f"UDP packets that did not arrive: {lost:.0f}{words}."))
    return notes


def _cpu(line: int, document: dict[str, Any]) -> Iterator[Reading]:
    """The CPU cost of both ends; one busy core is 100."""
    start = document.get("start")
    peer = _at(start, "connecting_to", "host") or _at(start, "accepted_connection", "host")
    for end, host in (("host", _host(start)), ("remote", peer if isinstance(peer, str) else None)):
        value = _number(document, "end", "cpu_utilization_percent", f"{end}_total")
        if value is not None:
            yield Reading(metric=f"cpu_{end}_total_pct", value=value, unit="% of one core", host=host, line=line)


def _intervals(line: int, document: dict[str, Any]) -> Iterator[Reading]:
    """
    The rate of every interval, as the end that wrote the document saw it, at the time the interval ended.

    The start is stamped in whole seconds, so the times are right among each other and late by less than a second. The
    clock of the intervals restarts after the warm-up (``-O``), whose intervals are marked ``omitted`` and left out.
    """
    began = _number(document, "start", "timestamp", "timesecs")
    omit = _number(document, "start", "test_start", "omit") or 0.0
    entries = document.get("intervals")
    for entry in entries if isinstance(entries, list) else ():
        for direction, device in (("", None), ("_bidir_reverse", "reverse")):
            total = _at(entry, f"sum{direction}")
            value = _number(total, "bits_per_second")
            if value is not None and not _at(total, "omitted"):
                at = _moment(began, omit, _number(total, "end"))
                yield Reading(
                    metric="bw_interval_gbit_s", value=value / 1e9, unit="Gbit/s", read_at=at,
                    host=_host(document.get("start")), device=device, line=line,
                )  # fmt: skip


def _moment(began: float | None, omit: float, end: float | None) -> datetime | None:
    if began is None or end is None or not 0 < began + omit + end < 1e11:
        return None
    return datetime.fromtimestamp(began, UTC) + timedelta(seconds=omit + end)


def _host(start: Any) -> str | None:
    """The second word of ``uname``: ``Linux node-b 6.1.0 ...``."""
    words = str(_at(start, "system_info") or "").split()
    return words[1] if len(words) > 1 else None


def _at(node: Any, *path: str) -> Any:
    for key in path:
        node = node.get(key) if isinstance(node, dict) else None
    return node


def _number(node: Any, *path: str) -> float | None:
    value = _at(node, *path)
    if isinstance(value, bool) or not isinstance(value, int | float) or not -1e300 < value < 1e300:
        return None
    return float(value)


# --- text ---------------------------------------------------------------------------------------------------------

_BEGIN = re.compile(r"Connecting to host (\S+), port \d+|Accepted connection from (\S+), port \d+")
_ROW = re.compile(
    r"\[\s*(\d+|SUM)\](?:\[([TR]X-[CS])\])?\s+[\d.]+-[\d.]+\s+sec\s+[\d.]+ \w+\s+([\d.]+) ([KMGT]?(?:bits|Bytes)/sec)"
    r"\s.*?\breceiver\s*$"
)
_CONNECTED = re.compile(r"\[\s*\d+\](?:\[[TR]X-[CS]\])? local \S+ port \d+ connected to ")
_FAILED = re.compile(r"iperf3: (?:error|interrupt) - (.*)")
_STARTING = re.compile(r"Starting Test: protocol: (\w+), (\d{1,9}) streams, .* (\d{1,9}) second test")
_VERSION = re.compile(r"iperf (3\.[\w.+-]+)")


@dataclass
class _Session:
    """The lines of one test in text output."""

    line: int
    facts: dict[str, Any] = field(default_factory=dict)
    connected: int = 0
    rows: dict[str, dict[str, tuple[int, float]]] = field(default_factory=dict)  # direction -> id -> line, bit/s
    reverse: bool = False
    error: tuple[int, str] | None = None
    done: bool = False


def _sessions(lines: list[Line]) -> list[_Session]:
    sessions: list[_Session] = []
    version: str | None = None
    for line in lines:
        if found := _VERSION.match(line.text):
            version = found[1]
        elif found := _BEGIN.match(line.text):
            side = "client" if found[1] else "server"
            sessions.append(_Session(line.number, {"side": side, "tool_version": version}))
        elif (found := _FAILED.match(line.text)) and (not sessions or sessions[-1].done):
            sessions.append(_Session(line.number, error=(line.number, found[1])))
        elif sessions:
            _note_line(sessions[-1], line)
    return sessions


def _note_line(session: _Session, line: Line) -> None:
    if found := _ROW.match(line.text):
        rate = float(found[3]) * _RATE[found[4]]
        session.rows.setdefault(found[2] or "", {})[found[1]] = line.number, rate
        if session.facts.get("side") == "server":  # prints no closing line: its last row closes the test
            session.done |= found[1] == "SUM" or session.connected <= 1
    elif _CONNECTED.match(line.text):
        session.connected += 1
    elif found := _STARTING.match(line.text):
        session.facts |= {"protocol": found[1], "streams": int(found[2]), "duration_s": float(found[3]) or None}
    elif line.text.startswith("[ ID]"):
        if protocol := _protocol_of(line.text):
            session.facts.setdefault("protocol", protocol)
    elif found := _FAILED.match(line.text):
        session.error = line.number, found[1]
    elif line.text.startswith("Reverse mode, "):
        session.reverse = True
    elif line.text.startswith("iperf Done"):
        session.done = True


def _protocol_of(header: str) -> str | None:
    if "Datagrams" in header:
        return "UDP"
    return "TCP" if "Retr" in header else None


def _session(session: _Session) -> Parsed:
    """The ``receiver`` rows: the ``[SUM]`` of several streams, else the only one; a row for each direction."""
    facts = dict(session.facts)
    protocol = facts.pop("protocol", None)
    directions = session.rows or {"": {}}
    if session.connected and len(directions) == 1:
        facts.setdefault("streams", session.connected)
    base = Run(tool=NAME, kind="bandwidth", status="complete", line=session.line, program="iperf3", **facts)
    base = _with_protocol(replace(base, bidirectional=len(directions) > 1 if session.rows else None), protocol)
    runs, notes = [], []
    for rows in directions.values():
        samples = _total(rows, base)
        runs.append(replace(base, samples=samples, status=_text_status(session, samples)))
    if session.error:
        notes.append(Note(session.error[0], "iperf3_error", f"iperf3 failed: {session.error[1]}"))
    elif not session.done:
        notes.append(Note(session.line, "cut_session", "The text ends before the closing line of iperf3."))
    if base.streams == 1 and protocol == "TCP":
        notes.append(Note(session.line, "single_stream", _ONE_STREAM))
    if session.reverse:
        notes.append(Note(session.line, "reverse", _REVERSE))
    return Parsed(runs=tuple(runs), notes=tuple(notes))


def _total(rows: dict[str, tuple[int, float]], run: Run) -> tuple[Sample, ...]:
    """No sum is made here: several streams without a ``[SUM]`` row were cut."""
    line, rate = rows.get("SUM") or (next(iter(rows.values())) if len(rows) == 1 else (None, None))
    if rate is None or (rate == 0 and run.protocol != "UDP") or ("SUM" not in rows and (run.streams or 1) > 1):
        return ()
    return (Sample(line=line, bw_avg_gbit_s=rate / 1e9),)


def _text_status(session: _Session, samples: tuple[Sample, ...]) -> str:
    if session.error:
        return "failed"
    if not session.done:
        return "truncated"
    return "complete" if samples else "no_data"
