"""NCCL and RCCL debug logs (NCCL_DEBUG=INFO or WARN): the transport that was used, failures, versions, settings.

    node-a:2090:2648 [0] NCCL INFO Channel 00/0 : 8[0] -> 0[0] [receive] via NET/IB/4/GDRDMA
    [2026-03-03 12:11:38] node-a:185303:186751 [1] transport/net_ib.cc:2453 NCCL WARN NET/IB: Got completion from ...

Such logs reach gigabytes, so they are searched for a few literal words, and only lines that hold one are read. What is
kept are facts with their first line, never lines. A log of this kind makes no run: it explains the runs beside it.
"""

import re
from collections import Counter
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from itertools import zip_longest
from typing import Any, NamedTuple

from rdmalab.model import Evidence, Note, Parsed
from rdmalab.sources import Text
from rdmalab.transport import FALLBACK_REASONS, Communicator, Device, Facts, Failure, Hop, is_verbs, judge

NAME = "nccl-info"
EXAMPLE = "node-a:2090:2648 [0] NCCL INFO Channel 00/0 : 8[0] -> 0[0] [receive] via NET/IB/4/GDRDMA"
HINTS = (b"NCCL INFO ", b"NCCL WARN ")
SIGNATURE = re.compile(rb"(?:^|[]>:)] ?|\.cc?:\d+ )NCCL (?:INFO|WARN) ", re.M)

# Every line of interest begins a message in one of these ways or, torn or not from NCCL itself, holds one of the words.
# A pattern with a long fixed beginning passes over the rest at hundreds of megabytes a second, bytes.find at gigabytes.
_BEGINNING = re.compile(
    rb"NCCL (?:WARN |version |INFO (?:NET/g?IB|NET/OFI Sel|(?:\w+ )?comm 0x|Using network |NCCL_|[NR]CCL version"
    rb"|Call to ibv_|Failed to ))"
)
_WORDS = (b"via NET/", b"Watchdog caught ")
_LOCAL = re.compile(rb"via (?:P2P|SHM)/")

# What stands before the level: host, process, thread and device; then, depending on the version, the source file with
# its line, a function or a time.
_FRAME = re.compile(r"(?<![\w.-])([\w.-]+):(\d+):(\d+) \[-?\d+\] (?:\S+ ){0,3}$")
_LEVEL = re.compile(r"NCCL (INFO|WARN|TRACE) ")
_COLOUR = re.compile(r"\x1b\[[0-9;]*[A-Za-z]")
_STAMP = re.compile(r"\[(\d{4}-\d\d-\d\d \d\d:\d\d:\d\d(?:\.\d+)?)\] ")
_LONGEST = 16384  # characters of a line; NCCL's own limit is below
_MOST_WRITERS = 100_000  # remembered, to save reading their frames again
_MOST_NOTES = 20  # of one code; a summing-up follows
_NOBODY = "a host"  # where the line has no frame


class _Message(NamedTuple):
    """One message and who wrote it; ``process`` is ``host:pid``, empty where the line has no frame."""

    line: int
    content: str  # the whole line
    process: str
    thread: str
    level: str
    text: str
    whole: bool  # the line has an end, and no other message begins in it
    interrupted: bool  # by another message in the same line

    @property
    def evidence(self) -> Evidence:
        """The line, to be quoted."""
        return _quoted(self.line, self.content)


@dataclass
class _Local:
    """The ranks of a communicator that share a host: how many there are, and those that the log shows."""

    ranks: int = 0
    seen: set[str] = field(default_factory=set)  # processes


@dataclass
class _Reader:
    """Everything collected so far."""

    facts: Facts = field(default_factory=Facts)
    notes: list[Note] = field(default_factory=list)
    counted: Counter[str] = field(default_factory=Counter)  # notes by code, also those not kept
    writers: dict[str, tuple[str, str]] = field(default_factory=dict)  # what stands before a level -> process, thread
    once: set[tuple[str, ...]] = field(default_factory=set)  # what was noted and is not said again
    benign: dict[str, tuple[int, int]] = field(default_factory=dict)  # what it is -> number, first line
    hosts: dict[str, int] = field(default_factory=dict)  # with the first line
    pointers: dict[tuple[str, str], str] = field(default_factory=dict)  # (process, comm 0x..) -> communicator
    starting: dict[tuple[str, str], str] = field(default_factory=dict)  # (process, thread) -> communicator
    of_process: dict[str, set[str]] = field(default_factory=dict)
    gpus: dict[str, set[int]] = field(default_factory=dict)  # process -> nvmlDev: the numbers of nvidia-smi
    local: dict[str, _Local] = field(default_factory=dict)  # by host
    waiting: dict[tuple[bytes | None, ...], list[Any]] = field(default_factory=dict)  # number, first line, its bytes

    def writer(self, before: str, in_mid_line: bool) -> tuple[str, str]:
        """The process and the thread that wrote a message; a name in mid-line may be glued to what stands before it."""
        known = self.writers.get(before)
        if known is None or in_mid_line:
            found = _FRAME.search(before)
            host = found[1] if found else ""
            if in_mid_line and host not in self.hosts:
                host = next((name for name in self.hosts if host.endswith(name)), "")
            known = (f"{host}:{found[2]}", found[3]) if found and host else ("", "")
            if not in_mid_line and len(self.writers) < _MOST_WRITERS:
                self.writers[before] = known
        return known

    def connection(self, line: int, raw: bytes) -> bool:
        """Reads a connection in one step: these lines are as many as all others together. False if it is none."""
        found = _CHANNEL_LINE.fullmatch(raw)
        if found is None or raw.count(b" NCCL INFO ") != 1:
            return False
        seen = self.waiting.setdefault(found.groups(), [0, line, raw])
        seen[0] += 1
        return True

    def settle(self) -> None:
        """Counts the connections since the last message that was none: until then none changed whose they are."""
        for words, (times, line, raw) in self.waiting.items():
            process, thread, net, device, proxy, gdr, pointer = (word.decode() if word else "" for word in words)
            communicator = self.communicator_of(process, thread, pointer)
            self.count(Hop(process, communicator, net, int(device), gdr != "", proxy != ""), line, _text(raw), times)
        self.waiting.clear()

    def count(self, hop: Hop, line: int, content: str, times: int = 1) -> None:
        """Counts a connection; the first of its kind is quoted."""
        if hop not in self.facts.hops:
            self.facts.hop_lines[hop] = _quoted(line, content)
            self.met(hop.process, line)
        self.facts.hops[hop] += times

    def met(self, process: str, line: int) -> None:
        """Remembers where a host first wrote."""
        if process:
            self.hosts.setdefault(process.rpartition(":")[0], line)

    def communicator_of(self, process: str, thread: str, pointer: str) -> str | None:
        """The communicator that the line names, or that its thread is starting, or the only one of its process."""
        if pointer:
            return self.pointers.get((process, pointer))
        if starting := self.starting.get((process, thread)):
            return starting
        own = self.of_process.get(process, ())
        return next(iter(own)) if len(own) == 1 else None

    def note(self, line: int, code: str, text: str, *same: str) -> None:
        """Adds a note; with *same*, only the first of those with the same words."""
        if same:
            if (code, *same) in self.once:
                return
            self.once.add((code, *same))
        self.counted[code] += 1
        if self.counted[code] <= _MOST_NOTES:
            self.notes.append(Note(line, code, text))


def parse(text: Text) -> Parsed:
    """One pass; the verdict is judged at the end."""
    reader = _Reader()
    for number, chunk in text.chunks():
        reader.facts.local_line = reader.facts.local_line or _first_local(chunk, number)
        for line, raw, ended in _lines_of_interest(number, chunk):
            if not (ended and b"via NET/" in raw and reader.connection(line, raw)):
                reader.settle()
                for message in _messages(reader, line, _text(raw), ended):
                    _read(reader, message)
    reader.settle()
    _sum_up(reader)
    reader.notes.sort(key=lambda note: note.line or 0)
    return Parsed(notes=tuple(reader.notes), transport=judge(reader.facts))


def _lines_of_interest(number: int, chunk: bytes) -> Iterator[tuple[int, bytes, bool]]:
    """Yields (line number, line, whether it has an end) of every line with one of the words, in order."""
    lines = chunk.split(b"\n")
    hits = [at for word in _WORDS if word in chunk for at, line in enumerate(lines) if word in line]
    at = counted = 0
    for found in _BEGINNING.finditer(chunk):
        at += chunk.count(b"\n", counted, found.start())
        counted = found.start()
        hits.append(at)
    for at in sorted(set(hits)):
        yield number + at, lines[at], at < len(lines) - 1


def _host(message: _Message) -> str:
    return message.process.rpartition(":")[0] or _NOBODY


def _text(raw: bytes) -> str:
    text = raw[:_LONGEST].decode("utf-8", "replace").rstrip("\r")
    return _COLOUR.sub("", text) if "\x1b" in text else text


def _first_local(chunk: bytes, number: int) -> Evidence | None:
    """The first connection inside a node. There are too many to look at each."""
    found = _LOCAL.search(chunk)
    if found is None:
        return None
    start = chunk.rfind(b"\n", 0, found.start()) + 1
    end = chunk.find(b"\n", start)
    line = number + chunk.count(b"\n", 0, start)
    return _quoted(line, _text(chunk[start : end if end >= 0 else len(chunk)]))


def _quoted(line: int, content: str) -> Evidence:
    return Evidence(line, content.strip()[:300])


def _messages(reader: _Reader, line: int, content: str, ended: bool) -> Iterator[_Message]:
    """The messages of one line: usually one, several where processes write over each other."""
    levels = list(_LEVEL.finditer(content))
    if not levels:
        yield _Message(line, content, "", "", "", content, ended, False)
    begin = 0
    for level, after in zip_longest(levels, levels[1:]):
        process, thread = reader.writer(content[begin : level.start()], begin > 0)
        begin = level.end()
        if after is None:
            yield _Message(line, content, process, thread, level[1], content[begin:], ended, False)
        else:
            frame = _FRAME.search(content, begin, after.start())
            end = frame.start() if frame else after.start()
            yield _Message(line, content, process, thread, level[1], content[begin:end], False, True)


# --- messages -----------------------------------------------------------------------------------------------------

_VIA_NET = (
    r"(?:Channel|Ring) \d+(?:/\d+)? : \d+(?:\[\w+\])? -> \d+(?:\[\w+\])? (?:\[(?:send|receive)\] )?"
    r"via NET/([A-Za-z][\w .+-]*?)/(\d{1,9})(\(\d+\))?(/GDRDMA(?:\(\w+\))?)?(?:/Shared)?(?:/flush=\w+)?"
    r"(?: comm (0x[0-9a-f]+) nRanks \d+)?\s*"
)
_CHANNEL = re.compile(_VIA_NET)
_CHANNEL_LINE = re.compile(rb"[^\n]*?(?<![\w.-])([\w.-]+:\d+):(\d{1,9}) \[-?\d+\] NCCL INFO " + _VIA_NET.encode())
_DEVICES = re.compile(r"NET/(?!Socket)[\w ]+?: Using (\[\d+\].*)")
_DEVICE = re.compile(r"\[(\d{1,9})\](?:=\{([^}]*)\}|([\w.-]+):\d+/(\w+))")
_PORT = re.compile(r"([\w.-]+):\d+/(\w+)")
_ONE_DEVICE = re.compile(r"NET/IB ?: \[(\d{1,9})\] ([\w.-]+):\w+:\d+/(\w+) ")
_QUEUE_PAIR = re.compile(r"NET/IB ?: .*?NCCL Dev \d+ IbDev \d+ Port \d+ qp\w* \d+ .*?(?:GID (\d{1,9}) \(|LID \d+)")
_PATH_MTU = re.compile(r" mtu ([1-5]) ")  # enum ibv_mtu: 1 is 256 bytes, 5 is 4096
_PROVIDER = re.compile(r"NET/OFI Selected [Pp]rovider is ([\w;.-]+)")
_NETWORK = re.compile(r"Using network (\S.*)")
_NODES = re.compile(r"comm (0x[0-9a-f]+) rank (\d{1,9}) nRanks (\d{1,9}) nNodes (\d{1,9}) (?:localRanks (\d{1,9}))?")
_INIT = re.compile(
    r"(?:\w+ )?comm (0x[0-9a-f]+) rank (\d{1,9}) nranks (\d{1,9})"
    r" (?:.*? commId (0x[0-9a-f]+))?.*- Init (START|COMPLETE)\s*"
)
_NVML = re.compile(r" nvmlDev (\d{1,9}) ")
_SPLIT = re.compile(r" parent (0x[0-9a-f]+) splitCount (\d{1,9}) color (-?\d+)")
_SETTING = re.compile(r"(NCCL_\w+) (?:set by environment to|set to) (.*)")
_VERSION = re.compile(r"([NR]CCL) version *:? *(\d[\w.+:-]*)")
_COMPLETION = re.compile(
    r"Got completion from peer (\S+) with (?:status=|error )(?:(IBV_WC_\w+)\()?(\d{1,9})"
    r".*?vendor.err[ =](\d+)(?: \((\w+)\))?"
)
_HCA = re.compile(r" hca ([\w.-]+)")
# Seen in tens of thousands in successful MLPerf results (mlcommons/training_results_v4.1).
_BENIGN = {
    "a normal tear-down": re.compile(
        r"\[Service thread\] (?:Accept failed|Could not receive type from localRank)"
        r"|\[Proxy Service(?: \d+)?\] Failed to execute operation Close"
    ),
    "an absent feature (MSCCL++)": re.compile(r"MSCCL\+\+: Cannot enable MSCCL\+\+"),
}


def _read(reader: _Reader, message: _Message) -> None:
    """Gives a message to the readers whose word it holds, until one understands it."""
    reader.met(message.process, message.line)
    if message.interrupted:
        reader.note(
            message.line,
            "torn_row",
            "Another message begins in mid-line; the first one is read only as far as it is whole.",
        )
    for word, read in _READERS:
        if word in message.text and read(reader, message):
            return
    if message.level == "WARN":
        _warning(reader, message)


def _channel(reader: _Reader, message: _Message) -> bool:
    """A connection in a line that is not whole is not counted: its end would say whether it had GPUDirect RDMA."""
    found = _CHANNEL.fullmatch(message.text)
    if found and message.whole:
        net, device, proxy, gdr, pointer = found.groups()
        communicator = reader.communicator_of(message.process, message.thread, pointer or "")
        hop = Hop(message.process, communicator, net, int(device), gdr is not None, proxy is not None)
        reader.count(hop, message.line, message.content)
    elif not message.interrupted:
        reader.note(message.line, "torn_row", "A connection is not counted because its line is not whole.")
    return True


def _devices(reader: _Reader, message: _Message) -> bool:
    """The list of devices that a process found, or one of them (NET lines of 2.24 and newer)."""
    facts = reader.facts
    if found := _DEVICES.search(message.text):
        facts.devices[message.process] = dict(_listed(found[1]))
        facts.device_lines[message.process] = message.evidence
    elif found := _ONE_DEVICE.search(message.text):
        own = facts.devices.setdefault(message.process, {})
        own.setdefault(int(found[1]), Device(found[2], found[3]))
        facts.device_lines.setdefault(message.process, message.evidence)
    return found is not None


def _listed(text: str) -> Iterator[tuple[int, Device]]:
    """``[0]mlx5_0:1/RoCE``, or ``[0]={[0] mlx5_0:1/RoCE, [1] mlx5_1:1/RoCE}`` for ports that were merged."""
    for index, merged, name, layer in _DEVICE.findall(text):
        ports = _PORT.findall(merged) if merged else [(name, layer)]
        layers = {layer for _, layer in ports}
        yield int(index), Device("+".join(name for name, _ in ports), layers.pop() if len(layers) == 1 else "mixed")


def _provider(reader: _Reader, message: _Message) -> bool:
    if found := _PROVIDER.search(message.text):
        reader.facts.providers.setdefault(found[1], message.evidence)
    return found is not None


def _queue_pair(reader: _Reader, message: _Message) -> bool:
    """NET lines of queue pairs name a GID on Ethernet and a LID on InfiniBand."""
    found = _QUEUE_PAIR.search(message.text)
    if found:
        reader.facts.queue_pairs.setdefault("roce" if found[1] else "ib", message.evidence)
    if found and found[1]:
        words = f"GID index {found[1]} is used; whether it is RoCE v1 or v2 is not printed."
        reader.note(message.line, "gid_index", words, found[1])
    if found and (mtu := _PATH_MTU.search(found[0])):
        reader.note(message.line, "path_mtu", f"{_host(message)}: {128 << int(mtu[1])}", _host(message), mtu[1])
    return found is not None


def _network(reader: _Reader, message: _Message) -> bool:
    found = _NETWORK.search(message.text)
    if found and message.whole:
        reader.facts.networks.setdefault(found[1].strip(), message.evidence)
    return found is not None


def _nodes(reader: _Reader, message: _Message) -> bool:
    found = _NODES.search(message.text)
    if found:
        pointer, rank, ranks, nodes, here = found.groups()
        key = reader.pointers.setdefault((message.process, pointer), f"{message.process}/{pointer}")
        _join(reader, message, key, int(ranks), int(rank)).nodes = int(nodes)
        reader.facts.nodes_line = reader.facts.nodes_line or message.evidence
        local = reader.local.setdefault(_host(message), _Local())
        local.ranks = max(local.ranks, int(here or 0))
        local.seen.add(message.process)
    return found is not None


def _init(reader: _Reader, message: _Message) -> bool:
    """``Init START`` and ``Init COMPLETE``: the commId is the same on all ranks, the pointer only within a process."""
    found = _INIT.fullmatch(message.text)
    if found is None:
        return False
    pointer, rank, ranks, shared, state = found.groups()
    here, thread = (message.process, pointer), (message.process, message.thread)
    if gpu := _NVML.search(message.text):
        reader.gpus.setdefault(message.process, set()).add(int(gpu[1]))
    if split := _SPLIT.search(message.text):
        shared = f"{reader.pointers.get((message.process, split[1]), split[1])}/{split[2]}/{split[3]}"
    if state == "START":
        reader.starting[thread] = reader.pointers[here] = shared or f"{message.process}/{pointer}"
    else:
        reader.starting.pop(thread, None)
    # Before 2.16 nothing but the size tells one communicator from another.
    _join(reader, message, reader.pointers.setdefault(here, shared or f"{ranks} ranks"), int(ranks), int(rank))
    return True


def _join(reader: _Reader, message: _Message, key: str, ranks: int, rank: int) -> Communicator:
    """Adds a rank to a communicator."""
    known = reader.facts.communicators.setdefault(key, Communicator(ranks=ranks))
    known.seen.add(rank)
    known.hosts.add(message.process.rpartition(":")[0])
    reader.of_process.setdefault(message.process, set()).add(key)
    return known


def _setting(reader: _Reader, message: _Message) -> bool:
    """``NCCL_X set by environment to 1.``: numbers end in a dot, texts do not."""
    found = _SETTING.match(message.text)
    if found and message.whole:
        name, value = found[1], found[2].strip()
        value = value[:-1] if re.fullmatch(r"-?\d+\.", value) else value
        reader.note(message.line, "nccl_setting", f"{name}={value}", name, value)
        if (name, value) == ("NCCL_IB_DISABLE", "1"):
            reader.facts.fallbacks.setdefault("disabled", message.evidence)
        elif (name, value) == ("NCCL_NET", "Socket"):
            reader.facts.fallbacks.setdefault("net_socket", message.evidence)
    return found is not None


def _version(reader: _Reader, message: _Message) -> bool:
    if found := _VERSION.search(message.text):
        reader.note(message.line, "library_version", f"{found[1]} {found[2]}", found[1], found[2])
    return found is not None


def _fallback(reader: _Reader, message: _Message) -> bool:
    """Why RDMA is not used."""
    reason = next(reason for words, reason in _FALLBACKS.items() if words in message.text)
    reader.facts.fallbacks.setdefault(reason, message.evidence)
    reader.note(message.line, "rdma_not_used", f"{_host(message)}: {FALLBACK_REASONS[reason]}", _host(message), reason)
    return True


_FALLBACKS = {
    "No device found": "no_device",
    "Unable to open device": "open_failed",
    "libibverbs": "libibverbs",
    "Failed to initialize NET plugin": "plugin_failed",
}


# --- failures -----------------------------------------------------------------------------------------------------

# ibv_wc_status of libibverbs with the usual reading.
_STATUS = {
    4: ("IBV_WC_LOC_PROT_ERR", "local protection: memory registration, GPUDirect RDMA"),
    5: ("IBV_WC_WR_FLUSH_ERR", "flushed after an earlier error"),
    9: ("IBV_WC_REM_INV_REQ_ERR", "the remote end refused the request; check ACS on PCIe"),
    10: ("IBV_WC_REM_ACCESS_ERR", "remote access; check ACS on PCIe"),
    12: ("IBV_WC_RETRY_EXC_ERR", "transport retries exhausted: link, GID, PFC or a dead peer"),
    13: ("IBV_WC_RNR_RETRY_EXC_ERR", "the receiver was not ready"),
}


def _completion(reader: _Reader, message: _Message) -> bool:
    """
    A work request failed. Opcode and length are garbage on errors, so they are not read.

    Only the first status of a process tells the cause, the rest (mostly 5, flushed) follows from it.
    """
    found = _COMPLETION.search(message.text)
    if found is None:
        return False
    peer, name, status, vendor, direction = found.groups()
    hca = _HCA.search(message.text)
    known, meaning = _STATUS.get(int(status), (name or "unknown status", "see ibv_wc_status"))
    words = [f"status {status} ({name or known}): {meaning}", f"vendor error {vendor}", f"peer {peer}"]
    words += [direction] if direction else []
    words += [f"device {hca[1]}"] if hca else []
    _failed(reader, message, "ib_completion_error", "; ".join(words), message.process)
    _verbs_at_work(reader, message, hca[1] if hca else None)
    return True


def _verbs_at_work(reader: _Reader, message: _Message, device: str | int | None) -> None:
    failure = Failure(message.process, device, "localGid" in message.text or "remoteGids" in message.text)
    reader.facts.failures.setdefault(failure, message.evidence)


def _call(reader: _Reader, message: _Message) -> bool:
    """``Call to ibv_x failed``: opening a device fails before a transport is chosen, the rest shows verbs at work."""
    found = re.search(r"Call to (ibv_\w+) failed", message.text)
    if found and found[1] == "ibv_open_device":
        reader.facts.fallbacks.setdefault("open_failed", message.evidence)
        words = f"{_host(message)}: {FALLBACK_REASONS['open_failed']}"
        reader.note(message.line, "rdma_not_used", words, _host(message), "open_failed")
    elif found and message.level == "WARN":
        _verbs_at_work(reader, message, None)
        _failed(reader, message, "ib_call_failed", _shown(message), message.process, found[1])
    return found is not None


def _event(reader: _Reader, message: _Message) -> bool:
    """The link or the port changed while the job ran; with a time stamp it is the start of a fail-over."""
    device = re.search(r"([\w.-]+):\d+ Got async event", message.text)
    _verbs_at_work(reader, message, device[1] if device else None)
    event = message.text.rpartition("Got ")[2].strip()[:200]
    _failed(reader, message, "link_event", f"{message.process}: {event}", message.process, event)
    return True


def _device_failed(reader: _Reader, message: _Message) -> bool:
    if found := re.search(r"Device (\d{1,9}) marked as failed", message.text):
        _verbs_at_work(reader, message, int(found[1]))
        _failed(reader, message, "port_failover", _shown(message))
    return found is not None


def _noted(code: str) -> "_Read":
    """A reader of failures that is content with the words of the line, once for each process."""

    def read(reader: _Reader, message: _Message) -> bool:
        _failed(reader, message, code, _shown(message), message.process)
        return True

    return read


def _watchdog(reader: _Reader, message: _Message) -> bool:
    """PyTorch's watchdog: a collective hung. Each rank says so several times."""
    if found := re.search(r"(?:\[Rank (\d+)\] )?Watchdog caught (.*)", message.text):
        rank = f"rank {found[1]}: " if found[1] else ""
        reader.note(message.line, "watchdog_timeout", f"{rank}{found[2].strip()[:240]}", found[1] or "")
    return found is not None


def _warning(reader: _Reader, message: _Message) -> None:
    """A WARN line without a reading of its own. Those of a normal tear-down are only counted."""
    if kind := next((kind for kind, pattern in _BENIGN.items() if pattern.match(message.text)), None):
        number, line = reader.benign.get(kind, (0, message.line))
        reader.benign[kind] = number + 1, line
    else:
        _failed(reader, message, "nccl_warning", _shown(message), re.sub(r"\d+", "", message.text)[:120])


def _failed(reader: _Reader, message: _Message, code: str, words: str, *same: str) -> None:
    stamp = _STAMP.search(message.content)
    reader.note(message.line, code, f"{stamp[1]} {words}" if stamp else words, *same)


def _shown(message: _Message) -> str:
    return message.text.strip()[:240]


# The order matters: the first word that a message holds decides who reads it.
_Read = Callable[[_Reader, _Message], bool]
_READERS: tuple[tuple[str, _Read], ...] = (
    ("via NET/", _channel),
    (" - Init ", _init),
    (" nNodes ", _nodes),
    ("Got completion from peer", _completion),
    *((words, _fallback) for words in _FALLBACKS),
    ("async event", _event),
    ("marked as failed", _device_failed),
    ("Port recovery succeeded", _noted("port_recovered")),
    # The TCP bootstrap, not the network under test: a peer died or a firewall is in the way.
    ("exceeded error retry count", _noted("bootstrap_failed")),
    ("exceeded retries", _noted("bootstrap_failed")),
    ("Call to ibv_", _call),
    ("NET/OFI", _provider),
    ("NET/", _devices),
    ("NET/", _queue_pair),
    ("Using network ", _network),
    ("NCCL_", _setting),
    ("CCL version", _version),
    ("Watchdog caught ", _watchdog),
)


def _sum_up(reader: _Reader) -> None:
    """Notes on the log as a whole."""
    for kind, (number, line) in reader.benign.items():
        words = f"Warnings of {kind}, alone no sign of failure: {number}."
        reader.notes.append(Note(line, "benign_warnings", words))
    for line, code, words, *same in (*_devices_found(reader.facts), *_devices_used(reader)):
        reader.note(line, code, words, *same)
    for code, count in reader.counted.items():
        if count > _MOST_NOTES:
            reader.notes.append(Note(None, code, f"There are {count} of these; the first {_MOST_NOTES} are listed."))
    if reader.hosts:
        names, more = list(reader.hosts), len(reader.hosts) - _MOST_NOTES
        shown = ", ".join(names[:_MOST_NOTES]) + (f" and {more} more" if more > 0 else "")
        reader.notes.append(Note(reader.hosts[names[0]], "hosts", shown))
    reader.notes += _connections(reader.facts)
    reader.notes += _single_devices(reader.facts)


def _single_devices(facts: Facts) -> Iterator[Note]:
    """The hosts whose connections all use one device that the log names: what they measured is this rail."""
    used: dict[str, dict[tuple[str, int], int]] = {}  # host -> device -> line
    for hop in facts.hops:
        lines = used.setdefault(hop.process.rpartition(":")[0], {})
        device = facts.device_list(hop.process).get(hop.device) if is_verbs(hop.net) else None
        lines.setdefault((device.name if device else "", hop.device), facts.hop_lines[hop].line)
    for host, lines in used.items():
        (name, _), line = next(iter(lines.items()))
        if host and name and len(lines) == 1:
            yield Note(line, "single_device", f"All connections of {host} use {name}.")


def _connections(facts: Facts) -> Iterator[Note]:
    """How many connections there are of each net, with and without GPUDirect RDMA."""
    lines: dict[tuple[str, bool], int] = {}
    counts: Counter[tuple[str, bool]] = Counter()
    for hop, count in facts.hops.items():
        lines.setdefault((hop.net, hop.gdr), facts.hop_lines[hop].line)
        counts[hop.net, hop.gdr] += count
    for (net, gdr), count in counts.items():
        words = f"Connections via NET/{net} {'with' if gdr else 'without'} GPUDirect RDMA: {count}."
        yield Note(lines[net, gdr], "net_connections", words)


def _devices_found(facts: Facts) -> Iterator[tuple[int, str, str, str]]:
    """
    ``node-a: mlx5_0/RoCE, mlx5_1/RoCE``: the RDMA devices of each host, once where its processes agree.

    Only the line that lists all of them says so: of lines for one device each, some may be missing.
    """
    for process, devices in facts.devices.items():
        if "Using [" not in facts.device_lines[process].text:
            continue
        names = ", ".join(f"{device.name}/{device.layer}" for _, device in sorted(devices.items()))
        words = f"{process.rpartition(':')[0] or _NOBODY}: {names}"
        yield facts.device_lines[process].line, "rdma_devices", words, words


def _devices_used(reader: _Reader) -> Iterator[tuple[int, str, str, str]]:
    """
    Which devices the connections of a host name, and which the process of each GPU does.

    A connection through the device of another rank (PXN) says nothing about the GPU of its own.
    """
    used: dict[str, dict[str, int]] = {}
    for hop in reader.facts.hops:
        device = reader.facts.device_list(hop.process).get(hop.device)
        if device is None or not is_verbs(hop.net):
            continue
        host, line = hop.process.rpartition(":")[0] or _NOBODY, reader.facts.hop_lines[hop].line
        used.setdefault(host, {}).setdefault(device.name, line)
        if len(gpus := reader.gpus.get(hop.process, ())) == 1 and not hop.relayed:
            words = f"{host}: GPU {next(iter(gpus))} over {device.name}"
            yield line, "gpu_device", words, words
    for host, lines in used.items():
        local = reader.local.get(host)
        if local and local.ranks:
            words = f"{host}: {len(local.seen)} of {local.ranks} local ranks, over {', '.join(lines)}"
            yield min(lines.values()), "rdma_devices_used", words, words
