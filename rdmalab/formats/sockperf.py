"""sockperf: latency (ping-pong, under-load, playback) and throughput of TCP and UDP sockets.

    sockperf: ====> avg-latency=6.900 (std-dev=6.750)
    sockperf: ---> percentile 99.000 =    7.641
    sockperf: Summary: BandWidth is 577.547 MBps (4620.372 Mbps)

A latency is half of the round trip unless ``--full-rtt`` was given (``avg-rtt``, ``Round trip is``). ``MBps`` are 2^20
byte/s and ``Mbps`` eight times that, which the text proves: over the message rate they give a whole message size.
The throughput is what the client sent. The full log (``--full-log``) repeats the statistics above a table of packets.

Source: Mellanox/sockperf, src/client.cpp (client_statistics, stream_statistics, dumpFullLog), src/defs.h.
"""

import re
from dataclasses import dataclass, field
from math import ceil, floor
from typing import Any

from rdmalab.formats import _lines
from rdmalab.formats._lines import Line
from rdmalab.model import Note, Parsed, Reading, Run, Sample
from rdmalab.sources import Text

NAME = "sockperf"
EXAMPLE = "sockperf: ====> avg-latency=6.900 (std-dev=6.750)"
HINTS = (b"sockperf", b"packet, txTime(sec)")
SIGNATURE = re.compile(
    rb"sockperf(?:\[(?:CLIENT|SERVER)\] |: (?:\x1b\[[\d;]*m)?(?:== version #|\[Total Run\]|\[Valid Duration\]|Summary: "
    rb"|====> avg-|ERROR: |Starting test|No ))|packet, txTime\(sec\), rxTime\(sec\), "
)
_ANCHOR = re.compile(
    r"sockperf(?:\[(?:CLIENT|SERVER)\] |: (?:== version|\[|Summary:|--->|====|Starting test|Test end|# dropped))"
)

_COMMAND = re.compile(r"(?:^|[\s/;&+$(])(sockperf +(ping-pong|pp|under-load|ul|throughput|tp|playback|pb)(?:\s.*)?)$")
_MODES = {"pp": "ping-pong", "ul": "under-load", "tp": "throughput", "pb": "playback"}
_VERSION = re.compile(r"sockperf: == version #(\S+) ==")
_END = re.compile(r"sockperf\[(CLIENT|SERVER)\] ")
_ADDRESS = re.compile(r"\[ *\d+\] IP = .* # (TCP|UDP)$")
_PARAMETERS = re.compile(r"test was performed using the following parameters: (--.*)")
_TOTAL = re.compile(r"sockperf: \[Total Run\] RunTime=(\d{1,12}\.\d{3}) sec;")
_VALID = re.compile(
    r"sockperf: \[Valid Duration\] RunTime=(\d{1,12}\.\d{3}) sec; SentMessages=(\d{1,18}); ReceivedMessages=(\d{1,18})$"
)
_SERVER = re.compile(r"sockperf: =+ Printing statistics for Server No: \d+")
_AVERAGE = re.compile(
    r"sockperf: ====> avg-(lat|latency|rtt)= *(\d{1,12}\.\d{3}) \(std-dev= *(\d{1,12}\.\d{3})(?:, .*\])?\)\s*$"
)
_OBSERVATIONS = re.compile(r"sockperf: Total (\d{1,18}) observations; ")
_RANK = re.compile(r"sockperf: ---> (?:<(MAX|MIN)> observation|percentile +(\d{1,12}\.\d+)) = +(\d{1,12}\.\d{3})$")
_BURST = re.compile(r"sockperf: Summary: (?:Latency|Round trip) of burst of (\d{1,18}) messages")
_DROPPED = re.compile(
    r"sockperf: # dropped messages = (\d{1,18}); # duplicated messages = (\d{1,18});"
    r" # out-of-order messages = (\d{1,18})"
)
_USED_SIZE = re.compile(r"sockperf: NOTE: test was performed, using msg-size=(\d{1,18})\D")
_RATE = re.compile(r"sockperf: Summary: Message Rate is (\d{1,18}) \[msg/sec\]")
_BANDWIDTH = re.compile(r"sockperf: Summary: BandWidth is \d+\.\d+ ([MG])Bps \((\d{1,18})\.(\d{1,18}) [MG]bps\)$")
_FAILURE = re.compile(
    r"(?:sockperf: )?ERROR: .*"
    r"|sockperf: (?:No messages were |No valid observations |Test end before test start|Test ends uncompleted).*"
)
_BYPASS = re.compile(r"\b(?:VMA|XLIO) +(?:INFO|DETAILS|WARNING|ERROR)\b|lib(?:vma|xlio)\.so")
_PACKETS = re.compile(r"packet, txTime\(sec\), rxTime\(sec\), (?:latency|rtt)\(usec\)$")
_PACKET = re.compile(r"\d+, (\d{1,18})\.(\d{9}), (\d{1,18})\.(\d{9}), -?\d+\.\d{3}$")

_FIELDS = {
    "MAX": "lat_max_us", "MIN": "lat_min_us", "50.000": "lat_typical_us", "99.000": "lat_p99_us",
    "99.900": "lat_p999_us", "50.00": "lat_typical_us", "99.00": "lat_p99_us", "99.90": "lat_p999_us",
}  # fmt: skip
_TCP = "sockperf --tcp measures the TCP stack of the kernel"


@dataclass
class _Statistics:
    """What the client prints of one server."""

    line: int = 0  # of the average, 0 before it
    values: dict[str, Any] = field(default_factory=dict)
    round_trip: bool = False
    observations: int | None = None
    seconds: float | None = None
    sent: int = 0
    received: int = 0
    dropped: int | None = None
    whole: bool = False


@dataclass
class _Session:
    """What one invocation printed."""

    line: int
    command: str | None = None
    mode: str | None = None
    facts: dict[str, str] = field(default_factory=dict)  # version, end, protocol, parameters
    total_s: float | None = None
    burst: int = 1
    servers: list[_Statistics] = field(default_factory=list)
    size: int | None = None
    rate: tuple[int, int] | None = None  # line, messages/s
    bandwidth: tuple[int, re.Match[str]] | None = None
    failures: list[Line] = field(default_factory=list)
    bypass: bool = False
    packets: int | None = None  # rows of the full log; None without one
    longest: tuple[int, int] = (0, 0)  # ns between sending and receiving, line
    notes: list[Note] = field(default_factory=list)


def parse(text: Text) -> Parsed:
    """Every invocation is a run; a full log is one too."""
    sessions: dict[str, list[_Session]] = {}
    for line in _lines.unprefixed(text, _ANCHOR):
        _read(sessions.setdefault(line.tag, []), line)
    found = [
        s for stream in sessions.values() for s in stream if s.facts or s.servers or s.failures or s.rate or s.bandwidth
    ]
    parts = [_run(session) for session in sorted(found, key=lambda s: s.line)]
    return Parsed(
        runs=tuple(run for run, _, _ in parts),
        readings=tuple(r for _, readings, _ in parts for r in readings),
        notes=tuple(n for _, _, notes in parts for n in notes),
    )


# --- reading ------------------------------------------------------------------------------------------------------


def _read(sessions: list[_Session], line: Line) -> None:
    """Adds one line to the invocation it belongs to, or begins a new one."""
    last = sessions[-1] if sessions else None
    if last is not None and last.packets is not None and line.text[:1].isdigit():
        _read_packet(last, line)
        return
    line = line._replace(text=line.text.strip())
    if found := _COMMAND.search(line.text):
        sessions.append(_Session(line.number, command=found[1], mode=_MODES.get(found[2], found[2])))
    else:
        if _begins(line.text, last):
            sessions.append(last := _Session(line.number))
        if last is not None:
            _read_fact(last, line)


def _begins(text: str, last: _Session | None) -> bool:
    """Whether a line is the first of an invocation: each key stands once in one."""
    if last is None:
        return (
            any(p.match(text) for p in _FIRST)
            or bool(_BYPASS.search(text))
            or (text.startswith("sockperf: ") and bool(_FAILURE.match(text)))
        )
    if _BYPASS.search(text):  # the library greets before the tool does
        return bool(last.servers or last.bandwidth or last.failures)
    if _VERSION.match(text):
        return bool(last.facts or last.failures)
    if _END.match(text):
        return "end" in last.facts
    if _PARAMETERS.match(text):
        return "parameters" in last.facts or bool(last.servers)
    return bool(_TOTAL.match(text)) and last.total_s is not None


_FIRST = (_VERSION, _END, _PARAMETERS, _TOTAL, _SERVER, _AVERAGE, _RATE, _BANDWIDTH)


def _read_fact(session: _Session, line: Line) -> None:
    text = line.text
    for key, pattern in (("version", _VERSION), ("end", _END), ("protocol", _ADDRESS), ("parameters", _PARAMETERS)):
        if found := pattern.match(text):
            session.facts.setdefault(key, found[1])
            return
    if found := _TOTAL.match(text):
        session.total_s = float(found[1])
    elif found := _USED_SIZE.match(text):
        session.size = int(found[1])
    elif found := _RATE.match(text):
        session.rate = line.number, int(found[1])
    elif found := _BANDWIDTH.match(text):
        session.bandwidth = line.number, found
    elif found := _BURST.match(text):
        session.burst = int(found[1])
    elif _FAILURE.match(text):
        session.failures.append(line)
    elif _PACKETS.match(text):
        session.packets = 0
    elif _BYPASS.search(text):
        session.bypass = True
    else:
        _read_statistics(session, line)


def _read_statistics(session: _Session, line: Line) -> None:
    if _SERVER.match(line.text):
        session.servers.append(_Statistics())
        return
    if not session.servers:
        if not _AVERAGE.match(line.text):
            return
        session.servers.append(_Statistics())
    server = session.servers[-1]
    if found := _VALID.match(line.text):
        server.seconds, server.sent, server.received = float(found[1]), int(found[2]), int(found[3])
    elif found := _AVERAGE.match(line.text):
        server.line, server.round_trip = line.number, found[1] == "rtt"
        server.values |= {"lat_avg_us": float(found[2]), "lat_stdev_us": float(found[3])}
    elif found := _OBSERVATIONS.match(line.text):
        server.observations = int(found[1])
    elif found := _DROPPED.match(line.text):
        server.dropped = int(found[1])
        if any(int(number) for number in found.groups()):
            text = f"Messages dropped: {found[1]}, duplicated: {found[2]}, out of order: {found[3]}."
            session.notes.append(Note(line.number, "message_loss", text))
    elif (found := _RANK.match(line.text)) and (name := _FIELDS.get(found[1] or found[2])):
        server.values[name] = float(found[3])
        server.whole |= found[1] == "MIN"
    elif line.text.startswith(("sockperf: --->", "sockperf: ====>")) and not found:
        session.notes.append(Note(line.number, "torn_row", f"The line is not whole and is left out: {line.text}"))


def _read_packet(session: _Session, line: Line) -> None:
    found = _PACKET.match(line.text)
    if not found:
        text = f"The packet's row is not whole and is left out: {line.text[:80]}"
        session.notes.append(Note(line.number, "torn_row", text))
        return
    session.packets = (session.packets or 0) + 1
    gap = int(found[3] + found[4]) - int(found[1] + found[2])
    if gap > session.longest[0]:
        session.longest = gap, line.number


# --- judging ------------------------------------------------------------------------------------------------------


def _run(session: _Session) -> tuple[Run, tuple[Reading, ...], list[Note]]:
    throughput = session.rate is not None or session.bandwidth is not None or session.mode == "throughput"
    notes = [Note(f.number, "sockperf_failure", f.text[:300]) for f in session.failures] + session.notes
    protocol = _protocol(session)
    readings: list[Reading] = []
    if throughput:
        samples, readings, doubts = _throughput(session, protocol)
    else:
        samples, doubts = _latencies(session)
    notes += doubts + _remarks(session, throughput, samples)
    whole = session.bandwidth is not None if throughput else all(s.whole for s in session.servers)
    mode, evidence = ("throughput", None) if throughput else _mode(session)
    if evidence:
        notes.append(Note(samples[0].line if samples else session.line, "mode_inferred", evidence))
    tcp = protocol == "TCP" and not session.bypass
    unit = f"{session.bandwidth[1][1]}Bps" if session.bandwidth else None
    run = Run(
        tool=NAME, kind="bandwidth" if throughput else "latency", status=_status(session, samples, readings, whole),
        line=session.line, samples=samples, program=f"sockperf {mode}" if mode else "sockperf",
        tool_version=session.facts.get("version"), command=session.command, side=_side(session), memory="host",
        protocol=protocol, fabric="tcp" if tcp else None, fabric_evidence=_TCP if tcp else None,
        latency_convention=None if throughput else _convention(session), unit_printed=unit,
        duration_s=session.total_s,
    )  # fmt: skip
    return run, (*readings, *_full_log(session)), notes


def _protocol(session: _Session) -> str | None:
    """TCP or UDP where it is printed; without ``--tcp`` a command is UDP."""
    if "protocol" in session.facts or session.command is None:
        return session.facts.get("protocol")
    return "TCP" if re.search(r"\s--tcp\b", session.command) else None if _reads_a_file(session.command) else "UDP"


def _reads_a_file(command: str) -> bool:
    """Addresses of a feed file (``-f``) name their own protocol."""
    return bool(re.search(r"\s(?:-f|--file)\b", command))


def _side(session: _Session) -> str | None:
    if "end" in session.facts:
        return session.facts["end"].lower()
    return "client" if session.servers or session.rate or session.packets is not None else None


def _convention(session: _Session) -> str | None:
    """From the average's own word; half of the round trip is one way."""
    words = {s.round_trip for s in session.servers if s.line}
    if len(words) != 1:
        return None
    return "round_trip" if words.pop() else "one_way"


def _mode(session: _Session) -> tuple[str | None, str | None]:
    """
    The kind of latency test, and the evidence where it is inferred: only the command names it.

    Ping-pong waits for each reply, so one reply to each message and round trips that fill the run are its mark. Many
    messages to a reply are none of ping-pong; playback, unlike under-load, cuts no warm-up off.
    """
    first = session.servers[0] if session.servers else _Statistics()
    if session.mode or not first.line or not first.seconds or not first.received or first.dropped:
        return session.mode, None
    round_trip_us = first.values["lat_avg_us"] * (1 if first.round_trip else 2)
    filled = first.received * round_trip_us / 1e6 / first.seconds
    if first.sent == first.received and session.burst == 1 and 0.95 <= filled <= 1.005:
        return (
            "ping-pong",
            f"Ping-pong is inferred: every message has its reply, and waiting fills {filled:.1%} of the run.",
        )
    if first.sent >= 2 * first.received and (session.total_s or 0) - first.seconds > 0.3:
        return "under-load", "Under-load is inferred: several messages were sent for each reply."
    return None, None


def _latencies(session: _Session) -> tuple[tuple[Sample, ...], list[Note]]:
    """One sample for each server."""
    size = session.size or _stated_size(session)
    samples = tuple(
        Sample(line=s.line, size_bytes=size, iterations=s.observations, **s.values) for s in session.servers if s.line
    )
    notes = []
    if samples and size is None:
        text = "A latency test prints no message size; the command and the full log do."
        notes.append(Note(samples[0].line, "size_unknown", text))
    if session.burst > 1:
        text = f"Messages were sent in bursts of {session.burst}: the latency is not that of a single message."
        notes.append(Note(session.line, "burst", text))
    return samples, notes


def _stated_size(session: _Session) -> int | None:
    """``-m N``, ``--msg-size=N``; none where the sizes vary (``-r``, ``--range``)."""
    stated = f" {session.facts.get('parameters', '')} {session.command or ''} "
    found = re.search(r"\s(?:-m|--msg-size)[ =]*(\d{1,18})\s", stated)
    varied = re.search(r"\s(?:-r|--range)[ =]*\d", session.command or "")
    return int(found[1]) if found and not varied else None


def _throughput(session: _Session, protocol: str | None) -> tuple[tuple[Sample, ...], list[Reading], list[Note]]:
    """
    The rate that was sent: of TCP also what arrived, since nothing is lost, of UDP only a Reading.

    The bandwidth is refused where it is no whole message size times the message rate.
    """
    if session.rate is None or session.bandwidth is None:
        return (), [], []
    line, found = session.bandwidth
    size, doubt = _size(session, found)
    if doubt:
        return (), [], [Note(line, *doubt)]
    sent = _mbps(found) * 2**20 / 1e9
    rate, notes = session.rate[1] / 1e6, []
    if session.size is None and _stated_size(session) is None and size is not None:
        notes.append(
            Note(line, "size_computed", f"The message size of {size} bytes is the bandwidth over the message rate.")
        )
    if protocol == "TCP":
        sample = Sample(line=session.rate[0], size_bytes=size, bw_avg_gbit_s=sent, msg_rate_mpps=rate)
        return (sample,), [], notes
    text = "The client counts what it sent; how much of it arrived over UDP is not printed."
    readings = [
        Reading(metric="bw_sent_gbit_s", value=sent, unit="Gbit/s", line=line),
        Reading(metric="msg_rate_sent_mpps", value=rate, unit="10^6 messages/s", line=session.rate[0]),
    ]
    return (), readings, [*notes, Note(line, "sent_not_received", text)]


def _mbps(found: re.Match[str]) -> float:
    """The number in brackets, in 2^20 bit/s; GBps are MBps over 1000."""
    return float(f"{found[2]}.{found[3]}") * (1000 if found[1] == "G" else 1)


def _size(session: _Session, found: re.Match[str]) -> tuple[int | None, tuple[str, str] | None]:
    """The whole sizes that fit bandwidth and rate: the stated one, the only one, or none, which is a contradiction."""
    rate = session.rate[1] if session.rate else 0
    half = 0.51 * 10 ** -len(found[3]) * (1000 if found[1] == "G" else 1)
    if not rate:
        return session.size, None
    low, high = ((_mbps(found) + side) / 8 * 2**20 / rate for side in (-half, half))
    stated = session.size or _stated_size(session)
    if ceil(low) > floor(high) or (stated is not None and not low <= stated <= high):
        text = "Bandwidth over message rate is no message size that the text allows, so neither is read."
        return None, ("contradiction", text)
    return stated or (ceil(low) if ceil(low) == floor(high) else None), None


def _full_log(session: _Session) -> tuple[Reading, ...]:
    if session.packets is None:
        return ()
    longest, line = session.longest
    packets = Reading(metric="full_log_packets", value=float(session.packets), unit="packets", line=session.line)
    if not line:
        return (packets,)
    return packets, Reading(metric="full_log_longest_rtt_us", value=longest / 1000, unit="us", line=line)


def _remarks(session: _Session, throughput: bool, samples: tuple[Sample, ...]) -> list[Note]:
    notes = []
    if session.packets is not None:
        text = (
            "The full log repeats the statistics that the console shows: where both are kept, one of them is a copy."
            " Its longest time from sending to receiving is a reading; whether it is a gap depends on the event."
        )
        notes.append(Note(session.line, "full_log", text))
    if session.bypass:
        text = "VMA or XLIO took the sockets past the kernel, so what carried them is not known."
        notes.append(Note(session.line, "kernel_bypass", text))
    if not samples and session.facts.get("end") == "SERVER":
        notes.append(Note(session.line, "server_log", "The server prints no result, the client's log has it."))
    return notes


def _status(session: _Session, samples: tuple[Sample, ...], readings: list[Reading], whole: bool) -> str:
    """A failure after the results is a note. The last line of a result is ``<MIN> observation``, or the bandwidth."""
    if session.failures and not ((samples or readings) and whole):
        return "failed"
    if samples or readings:
        return "complete" if whole else "truncated"
    return "truncated" if session.servers or session.rate or session.bandwidth else "no_data"
