"""port-counters: the counters of a port at one moment, as ``ethtool``, ``rdma``, ``perfquery`` or sysfs print them.

         rx_prio3_pause: 42                                                     ethtool -S, cut by grep or not
    /sys/class/infiniband/mlx5_0/ports/1/hw_counters/np_cnp_sent:1333           grep "" .../hw_counters/*
    [{"ifname":"mlx5_0","port":1,"out_of_sequence":0,...}]                      rdma statistic -j
    link mlx5_0/1 out_of_sequence 0 ...                                         rdma statistic
    PortXmitData:....................9049592493976                              perfquery

A counter is a total since some start, so that only the difference of two snapshots says anything; none is taken here.
Both snapshots of a file are kept, in order. What is not listed is not known: mlx5 lists the pauses of a priority only
where flow control is on, which is no 0.
"""

import re
from collections.abc import Iterator
from dataclasses import dataclass, field
from functools import lru_cache
from typing import Any

from rdmalab.formats._json import documents
from rdmalab.formats._lines import Line, unprefixed
from rdmalab.formats._telemetry import Found, quoted
from rdmalab.model import Parsed, Reading
from rdmalab.sources import Text

NAME = "port-counters"
EXAMPLE = "     rx_prio3_pause: 42"

# Names that show what a list without any header is. Those of RDMA: torvalds/linux Documentation/ABI/stable/
# sysfs-class-infiniband and the hw_counters of mlx5 and rxe.
_RDMA_NAMES = (
    "port_xmit_data", "port_rcv_data", "port_xmit_wait", "port_xmit_discards", "port_rcv_errors", "symbol_error",
    "link_downed", "lifespan", "out_of_sequence", "out_of_buffer", "out_of_seq_request", "duplicate_request",
    "packet_seq_err", "implied_nak_seq_err", "local_ack_timeout_err", "rnr_nak_retry_err", "np_cnp_sent",
    "np_ecn_marked_roce_packets", "rp_cnp_handled", "rp_cnp_ignored", "rx_write_requests", "rx_read_requests",
    "sent_pkts", "rcvd_pkts",
)  # fmt: skip
_NIC_WORDS = (
    "bytes", "packets", "pkts", "frames", "octets", "errors", "errs", "discards", "drops", "dropped", "pause",
    "duration", "phy",
)  # fmt: skip


def _behind(words: tuple[str, ...], end: str) -> str:
    return "|".join(f"(?<={word}{end})" for word in words)


# Every branch begins with one of three characters and looks back from there: a log of another kind is passed over at
# the speed of a search for those.
_AT_A_COLON = (
    r"(?= ?\d+[ \t\r]*$)(?:" + _behind(_NIC_WORDS + _RDMA_NAMES, ":") + ")",
    r'(?<=":)(?=\s*\d)(?:' + _behind(_RDMA_NAMES, '":') + ")",
    r"(?<=NIC statistics:)",
    r"(?<=# Port counters:)|(?<=# Port extended counters:)",
)
HINTS = tuple(
    hint.encode() for hint in ("counters", "statistics", "link ", *(f"{word}:" for word in _NIC_WORDS), *_RDMA_NAMES)
)
SIGNATURE = re.compile(
    f":(?:{'|'.join(_AT_A_COLON)})".encode()
    + rb"|/(?:counters|hw_counters|statistics)/\w+:\d"
    + rb"|link \S+/\d+ [a-z]\w+ \d+ [a-z]\w+ \d|duplicate_request \d+[ \t\r]*$",
    re.M,
)
_ANCHOR = re.compile(r"NIC statistics:$|# Port (?:extended )?counters: |link [\w.-]+/\d+ \w+ \d|/sys/class/\w+/", re.M)

_ECHO = re.compile(r"(?:^|.*[\s/])ethtool (?:-S|--statistics) ([\w.@-]+)")
_PROMPT = re.compile(r".*?[\w.-]+@([A-Za-z][\w.-]*)[^\w.-].*?[#$%>] ?\S")
_PERFQUERY = re.compile(r"# Port (?:extended )?counters: ([^(]*)")
_LINK = re.compile(r"link (\S+/\d+)(?:\s+(.*))?$")
_SYSFS = re.compile(r"(?:\S*/)?([\w.-]+)/ports/(\d+)/(?:(?:hw_)?counters/|(?=rate:))([\w.]+):(.*)$")
_NETDEV = re.compile(r"\S*/net/([^/\s]+)/statistics/(\w+):(.*)$")
_RATE = re.compile(r"(\d+(?:\.\d+)?) (Gb/sec)\b")

_UNDER_HEADER = re.compile(r"\s*(\S.*?):\s*(\d++)\s*$")  # names may hold blanks and brackets: [0]: rx_ucast_packets
_UNDER_LINK = re.compile(r"\s+(\w+) (\d++)\s*$")
_UNDER_PERFQUERY = re.compile(r"(\w+):\.+(\w+)\s*$")
_BARE = {sep: re.compile(rf"\s*([A-Za-z][\w.-]*){sep}(\d++)\s*$") for sep in (": ", " ", ":")}
_SURE = re.compile(rf"(?:rx|tx)[\w.-]*(?:{'|'.join(_NIC_WORDS)})|{'|'.join(_RDMA_NAMES)}")
_HALF_A_ROW = re.compile(r"\s+[\w.\[\]-]+(?::.*)?$|\w[\w.]*:[.\s]*$")
_NO_COUNTERS = {"PortSelect", "CounterSelect", "CounterSelect2", "ifindex", "ifname", "port"}
_OBJECTS = {"cntn", "lqpn", "mrn", "cqn"}  # rdma lists the counters of single queue pairs and regions too
_OBJECT_COUNTERS = "Counters of single queue pairs or memory regions are left out: only those of a port are read."
_LONGEST = 5000  # rows that may wait for a name; the longest lists of a NIC have about 2000


def parse(text: Text) -> Parsed:
    """Every counter of every snapshot is a reading, as printed."""
    found = Found()
    readers: dict[str, _Reader] = {}
    for line in unprefixed(text, _ANCHOR):
        if line.tag not in readers:
            readers[line.tag] = _Reader(found, _host(line.tag))
        readers[line.tag].read(line)
    if any(b'"ifname"' in chunk for _, chunk in text.chunks()):
        for number, document in documents(((n, t) for n, _, t in unprefixed(text, _ANCHOR)), '"ifname"'):
            _rdma_document(found, number, document)
        found.readings.sort(key=lambda r: r.line or 0)
    return found.parsed(text)


@lru_cache(maxsize=4096)
def unit_of(counter: str) -> str | None:
    """The unit that the name of a counter says, None where it says none."""
    if re.fullmatch(r"port_(?:xmit|rcv)_data(?:_64)?|(?:Port)?(?:Xmi?t|Rcv)Data", counter):
        return "4-byte words"
    if re.fullmatch(r"(?:rx|tx)_(?:\d+_(?:to_)?)?(?:\d+|max)_bytes(?:_phy)?", counter):
        return "packets"  # of that size
    if re.search(r"(?:^|[_.])bytes(?:_phy|_nic)?$", counter):
        return "bytes"
    if re.search(r"(?:^|[_.])(?:packets|pkts)(?:_phy|_nic)?$|Pkts$", counter):
        return "packets"
    if counter.endswith(("_pause_duration", "_us")):
        return "us"
    return "bits" if counter.endswith("_bits_phy") else "ms" if counter == "lifespan" else None


def _host(tag: str) -> str | None:
    """``node-7:`` of pdsh and clush names a host, ``0:`` of srun does not."""
    return tag[:-1] if re.fullmatch(r"[A-Za-z][\w.-]*:", tag) else None


@dataclass
class _Block:
    """Rows that follow each other, and whose they are. Without a header they wait until a name shows what they are."""

    row: re.Pattern[str]
    device: str | None = None
    sure: bool = True
    fresh: bool = True
    waiting: list[tuple[int, str, str]] = field(default_factory=list)


class _Reader:
    """Reads the lines of one stream."""

    def __init__(self, found: Found, host: str | None) -> None:
        self.found, self.host = found, host
        self.block: _Block | None = None

    def read(self, line: Line) -> None:
        if not line.text.strip():
            return
        if "@" in line.text and (prompt := _PROMPT.match(line.text)):
            self.host = prompt[1]  # of a shell: what follows was typed there
        if self._header(line.text) or self._path(line) or self._link(line):
            return
        if self.block is None or not self._row(self.block, line):
            self.block = None
            self._bare(line)

    def _header(self, text: str) -> bool:
        """The lines that open a block: they say whose the counters are."""
        if "ethtool" in text and (echo := _ECHO.match(text)):
            self.block = _Block(_UNDER_HEADER, echo[1])
        elif "NIC statistics:" in text:
            if not (self.block and self.block.sure and self.block.fresh):  # the echo above it names the device
                self.block = _Block(_UNDER_HEADER)
        elif port := _PERFQUERY.match(text):
            self.block = _Block(_UNDER_PERFQUERY, port[1].strip())
        else:
            return False
        return True

    def _path(self, line: Line) -> bool:
        """``path:value``, where the path names device, port and counter."""
        if "/" not in line.text:
            return False
        if port := _SYSFS.match(line.text):
            device, counter, value = f"{port[1]}/{port[2]}", port[3], port[4].strip()
        elif netdev := _NETDEV.match(line.text):
            device, counter, value = netdev[1], netdev[2], netdev[3].strip()
        else:
            return False
        self.block = None
        if counter == "rate" and (rate := _RATE.match(value)):
            self._reading(line.number, "rate", float(rate[1]), device, rate[2])
        elif value.isascii() and value.isdigit():
            self._counter(line.number, counter, value, device)
        elif value.startswith("N/A"):
            self._reading(line.number, counter, None, device)
        else:
            self.found.torn(line.number, line.text)
        return True

    def _link(self, line: Line) -> bool:
        """``link mlx5_0/1 name value name value ...``, or with ``-p`` a line each below."""
        if not line.text.startswith("link ") or not (link := _LINK.match(line.text)):
            return False
        self.block = None
        words = (link[2] or "").split()
        values = words[1::2]
        if not words:
            self.block = _Block(_UNDER_LINK, link[1])
        elif words[0] in _OBJECTS:
            self.found.note(line.number, "object_counters", _OBJECT_COUNTERS)
        elif len(words) % 2 or not all(v.isascii() and v.isdigit() for v in values):
            if len(words) > 1 and words[1].isdigit():  # else the state of a link
                self.found.torn(line.number, line.text)
        else:
            for counter, value in zip(words[0::2], values, strict=True):
                self._counter(line.number, counter, value, link[1])
        return True

    def _row(self, block: _Block, line: Line) -> bool:
        """Whether *line* belongs to the block."""
        row = block.row.match(line.text)
        if not row:
            torn = block.sure and not block.fresh and _HALF_A_ROW.match(line.text)
            if torn:
                self.found.torn(line.number, line.text)
            return bool(torn)
        block.fresh = False
        block.waiting.append((line.number, row[1], row[2]))
        block.sure = block.sure or bool(_SURE.fullmatch(row[1]))
        if block.sure:
            for number, counter, value in block.waiting:
                self._counter(number, counter, value, block.device)
            block.waiting = []
        return len(block.waiting) < _LONGEST

    def _bare(self, line: Line) -> None:
        """A row without any header above it."""
        for row in _BARE.values():
            if row.match(line.text):
                self.block = _Block(row, sure=False)
                self._row(self.block, line)
                return

    def _counter(self, line: int, counter: str, digits: str, device: str | None) -> None:
        if counter in _NO_COUNTERS:
            return
        if digits.isascii() and digits.isdigit():
            _add(self.found, line, counter, digits, device, self.host)
        else:
            self.found.torn(line, f"{counter} {digits}")

    def _reading(self, line: int, metric: str, value: float | None, device: str, unit: str | None = None) -> None:
        self.found.readings.append(
            Reading(
                metric=metric, value=value, unit=unit or unit_of(metric), host=self.host, device=device, line=line
            )
        )  # fmt: skip


def _add(found: Found, line: int, counter: str, digits: str, device: str | None, host: str | None = None) -> None:
    """Adds a counter. No counter has more than 64 bits, and above 2^53 not every one of them is a float."""
    if len(digits) > 20 or int(digits) >= 2**64:
        found.note(line, "no_counter", f"{counter} has more than 64 bits and is left out: {quoted(digits)}")
        return
    value = float(int(digits))
    if int(value) != int(digits):
        found.note(line, "precision", f"{counter} is {digits}; the nearest number that is stored is {int(value)}.")
    found.readings.append(
        Reading(metric=counter, value=value, unit=unit_of(counter), host=host, device=device, line=line)
    )


def _rdma_document(found: Found, line: int, document: Any) -> None:
    """``rdma statistic -j``: a list with an object for each port."""
    if document is None:
        found.note(line, "cut_document", "The JSON document ends before its closing bracket.")
    for port in document if isinstance(document, list) else ():
        if not isinstance(port, dict) or not {"ifname", "port"} <= port.keys():
            continue
        if port.keys() & _OBJECTS:
            found.note(line, "object_counters", _OBJECT_COUNTERS)
            continue
        for counter, value in _counters(port):
            _add(found, line, counter, str(value), f"{port['ifname']}/{port['port']}")


def _counters(port: dict[str, Any]) -> Iterator[tuple[str, int]]:
    for counter, value in port.items():
        if counter not in _NO_COUNTERS and isinstance(value, int) and not isinstance(value, bool) and value >= 0:
            yield counter, value
