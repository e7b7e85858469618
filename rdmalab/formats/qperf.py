"""qperf: one block for each test, and for each value of a loop (``-oo msg_size:1:64K:*16``).

    tcp_lat:
        latency   =  7.4 us
        msg_size  =    4 KiB (4,096)

Bandwidths and rates are in powers of 1000, sizes in powers of 1024 only where the letter says so (``KiB``) and the
number is given in full; ``KB`` is a rounded power of 1000. ``latency`` is the time over the messages that both ends
received, which is one way in a ping-pong and a whole round trip for an RDMA read.

Source: linux-rdma/qperf, src/qperf.c (calc_results, view_band, view_size, place_val), src/rdma.c, src/socket.c.
"""

import re
from dataclasses import dataclass, field

from rdmalab.formats import _lines
from rdmalab.formats._lines import Line
from rdmalab.model import Note, Parsed, Run, Sample
from rdmalab.sources import Text

NAME = "qperf"
EXAMPLE = "    latency   =  7.4 us"
_TESTS = (
    r"(?:tcp|udp|sctp|sdp|rds)_(?:bw|lat)|(?:x?rc|uc|ud)_(?:bi_bw|bw|lat|rdma_(?:read|write)_(?:bw|lat)"
    r"|rdma_write_poll_lat)|(?:ver_)?rc_(?:compare_swap|fetch_add)(?:_mr)?"
)
_ENDS = (b"bw", b"lat", b"mr", b"swap", b"add")
HINTS = tuple(b"_" + end + b":" + line_end for end in _ENDS for line_end in (b"\n", b"\r"))
SIGNATURE = re.compile(rb"(?<![\w.-])(?:" + _TESTS.encode() + rb"):[\r\n]")
_ANCHOR = re.compile(rf"(?<![\w.-])(?:{_TESTS}):[ \r]*$| {{4}}(?:latency|bw|send_bw|recv_bw|msg_rate) +=  ", re.M)

_BLOCK = re.compile(rf"({_TESTS}):\s*$")
_VALUE = re.compile(r"\s+(\w+) +=  +([\d.,]+)(?: ([^\s()]+))?(?: \(([\d,]+)\))?\s*$")
_TORN = re.compile(r"\s+(latency|bw|send_bw|recv_bw|msg_rate|msg_size)\s+=")
_FAILURE = re.compile(
    r"\s*(?:server: )?(?:failed|unable|cannot|could not|mismatch|no|not|bad|timed out|connection refused)\b.*"
)

# Integers, so that a conversion rounds once: bit/s, messages/s and ns in one unit as printed, and the way to ours.
_LETTERS = ("", "K", "M", "G", "T")
_BITS = {"bits/sec": 1, "bytes/sec": 8} | {
    f"{p}{letter}/sec": bits * 1000**n for n, p in enumerate(_LETTERS) if p for letter, bits in (("b", 1), ("B", 8))
}
_MESSAGES = {f"{p}/sec": 1000**n for n, p in enumerate(_LETTERS)}
_NS = {"ns": 1, "us": 1000, "ms": 1000**2, "sec": 1000**3}
_SCALES = {
    "latency": (_NS, 1e3), "bw": (_BITS, 1e9), "recv_bw": (_BITS, 1e9), "send_bw": (_BITS, 1e9),
    "msg_rate": (_MESSAGES, 1e6),
}  # fmt: skip
_VERBS = {"read": "read", "write": "write", "compare": "atomic", "fetch": "atomic"}
_TCP = "qperf tcp tests measure the TCP stack of the kernel"


@dataclass
class _Block:
    """The lines of one test: each value with its line, unit, and the full number where it stands in brackets."""

    line: int
    test: str | None
    values: dict[str, tuple[int, str, str | None, str | None]] = field(default_factory=dict)
    torn: list[Line] = field(default_factory=list)
    failure: Line | None = None


def parse(text: Text) -> Parsed:
    """Every block is a run: repeats of one test count as such."""
    streams: dict[str, list[Line]] = {}
    for line in _lines.unprefixed(text, _ANCHOR):
        streams.setdefault(line.tag, []).append(line)
    blocks = [block for lines in streams.values() for block in _blocks(lines)]
    results = [_run(block) for block in sorted(blocks, key=lambda b: b.line)]
    return Parsed(runs=tuple(run for run, _ in results), notes=tuple(n for _, notes in results for n in notes))


def _blocks(lines: list[Line]) -> list[_Block]:
    """
    The tests of one stream.

    qperf ends at its first failure, whose text may stand before the name of the test: it belongs to the empty block.
    """
    blocks: list[_Block] = []
    pending: list[Line] = []
    for line in lines:
        if found := _BLOCK.match(line.text):
            blocks.append(_Block(line.number, found[1]))
        elif blocks and (found := _VALUE.match(line.text)):
            blocks[-1].values.setdefault(found[1], (line.number, found[2], found[3], found[4]))
        elif blocks and _TORN.match(line.text):
            blocks[-1].torn.append(line)
        elif _FAILURE.match(line.text):
            pending.append(line)
    empty = [b for b in blocks if not b.values and not b.torn]
    for failure in pending if blocks else ():
        target = empty.pop(0) if empty else _Block(failure.number, None)
        target.failure = failure
        blocks += [target] if target.test is None else []
    return blocks


def _run(block: _Block) -> tuple[Run, list[Note]]:
    test = block.test or ""
    samples, notes = _samples(block)
    verb = next((v for word, v in _VERBS.items() if word in test), None)
    transport = test.removeprefix("ver_").split("_")[0]
    rdma = transport in ("rc", "xrc", "uc", "ud")
    operation = (verb or "send") if rdma else None
    kind = "latency" if test.endswith("lat") else "bandwidth" if test.endswith("bw") or not test else "message_rate"
    return Run(
        tool=NAME, kind=kind, status=_status(block, samples, notes), line=block.line, samples=samples,
        program=f"qperf {test}".strip(), operation=operation, operation_evidence="test name" if operation else None,
        latency_convention=("round_trip" if verb == "read" else "one_way") if kind == "latency" else None,
        connection=transport.upper() if rdma else None, protocol=None if rdma or not test else transport.upper(),
        bidirectional="_bi_" in test if kind == "bandwidth" and test else None, duration_s=_seconds(block),
        memory="host" if rdma else None, unit_printed=_unit(block),
        fabric="tcp" if transport == "tcp" else None, fabric_evidence=_TCP if transport == "tcp" else None,
    ), notes  # fmt: skip


def _samples(block: _Block) -> tuple[tuple[Sample, ...], list[Note]]:
    notes = [
        Note(t.number, "torn_row", f"The value is not whole and is left out: {t.text.strip()}") for t in block.torn
    ]
    if block.failure:
        notes.append(Note(block.failure.number, "qperf_failure", block.failure.text.strip()[:300]))
    values: dict[str, float] = {}
    for name, (units, per) in _SCALES.items():
        if name in block.values:
            line, number, unit, _ = block.values[name]
            value = _number(number)
            if value is None or (unit or "") not in units:
                notes.append(Note(line, "torn_row", f"{name} = {number} {unit or ''} has no unit known to be its own."))
            elif name == "latency" and value == 0:
                notes.append(Note(line, "not_measured", "A latency of 0 means that no message was received."))
            else:
                values[name] = value * units[unit or ""] / per
    main = _main(block, values)
    if main is None:
        return (), notes
    size, doubts = _size(block)
    sample = Sample(
        line=block.values[main][0], size_bytes=size, lat_avg_us=values.get("latency"),
        bw_avg_gbit_s=values.get("recv_bw", values.get("bw")), msg_rate_mpps=values.get("msg_rate"),
    )  # fmt: skip
    return (sample,), notes + doubts


def _main(block: _Block, values: dict[str, float]) -> str | None:
    """The value that the test is about. ``send_bw`` is none: what was sent need not have arrived."""
    test = block.test or ""
    wanted = ("latency",) if test.endswith("lat") else ("recv_bw", "bw") if test.endswith("bw") else ("msg_rate",)
    return next((name for name in wanted if name in values), None)


def _size(block: _Block) -> tuple[int | None, list[Note]]:
    """The message size, where it is printed (``-vu``) and not rounded (``1.47 KB``)."""
    if "msg_size" not in block.values:
        text = "qperf prints the message size only with -vu or -v and a size of the user's own."
        return None, [Note(block.line, "size_unknown", text)]
    line, number, unit, full = block.values["msg_size"]
    value = _number(full or number)
    if value is not None and value < 2**53 and (full or unit == "bytes"):
        return int(value), []
    return None, [Note(line, "size_rounded", f"The message size is printed rounded: {number} {unit or ''}.")]


def _seconds(block: _Block) -> float | None:
    """How long the test was asked to last (``-t``)."""
    _, number, unit, _ = block.values.get("time", (0, "", None, None))
    value = _number(number)
    return None if value is None or unit not in _NS else value * _NS[unit] / 1e9


def _unit(block: _Block) -> str | None:
    return next((block.values[n][2] for n in ("recv_bw", "bw") if n in block.values), None)


def _number(text: str) -> float | None:
    """A number without the commas between its thousands; None for anything else."""
    return float(text.replace(",", "")) if re.fullmatch(r"\d{1,18}(?:,\d{3}){0,5}(?:\.\d+)?", text) else None


def _status(block: _Block, samples: tuple[Sample, ...], notes: list[Note]) -> str:
    if block.failure:
        return "failed"
    if samples:
        return "complete"
    return "truncated" if (block.torn or block.values) and "not_measured" not in {n.code for n in notes} else "no_data"
