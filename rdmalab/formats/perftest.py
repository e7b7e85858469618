"""perftest: the tables of ib_write_bw, ib_read_bw, ib_send_bw, ib_atomic_bw, the ``_lat`` programs and raw_ethernet_*.

     #bytes     #iterations    BW peak[Gb/sec]    BW average[Gb/sec]   MsgRate[Mpps]
     65536      5000             111.72             111.71             0.213070

The header of a table decides its columns and its unit. A title opens a test, a rule of dashes after a row closes it.
Texts as in linux-rdma/perftest: src/perftest_parameters.h (tables), src/perftest_parameters.c (banner).
"""

import re
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, field
from functools import lru_cache
from typing import Any

from rdmalab.formats._lines import Line, plain_lines, unprefixed
from rdmalab.formats._perftest import (
    OPERATIONS,
    UNITS,
    Remarks,
    Title,
    bandwidth_sample,
    convention_of,
    facts_to_fields,
    latency_sample,
    program_of,
    side_by_depth,
    table,
    title_of,
)
from rdmalab.model import Note, Parsed, Run, Sample, Samples
from rdmalab.sources import Text

NAME = "perftest"
EXAMPLE = " 65536      5000             111.72             111.71             0.213070"
HINTS = (
    b"#bytes", b"Test", b"Infiniband/RoCE device", b"Failed to negotiate parameters", b"Waiting for client to connect",
    b"Unable to init the socket connection", b"Did not detect devices", b"for socket connection",
)  # fmt: skip
SIGNATURE = re.compile(
    rb"#bytes[ \t]+#(?!elem_count)|Test(?<=BW Test|cy Test|st Test|ng Test)|Infiniband/RoCE device"
    rb"|Failed to negotiate parameters|Waiting for client to connect|Unable to init the socket connection"
    rb"|Did not detect devices|for socket connection"
)
# Failures that no other program words like this: they are a run of their own even in a log without any other sign.
_OWN_FAILURE = re.compile(
    r"IB device|Unable to find the Infiniband|Failed to negotiate parameters|Unable to init the socket connection"
    r"|Did not detect devices|Unable to open file descriptor for socket connection"
)
_GPU = re.compile(r".*device name = \[([^\]]+)\]|Using ROCm Device with ID: \d+, Name: ([^,]+)")

# The beginning of lines that only perftest prints: what stands before them is a launcher's prefix. Every alternative
# begins with a literal, so that a search skips quickly over all other text.
_TEST = r"[\w ]*(?:BW|Latency)[\w ]* Test[ \t\r]*$"
_ANCHOR = re.compile(
    rf"#bytes[ \t]+#|RDMA_\w+ {_TEST}|Send\w* {_TEST}|Atomic \w+ {_TEST}|\* Waiting for client"
    r"|IB device \S+ not found|Unable to find the Infiniband|Failed to negotiate parameters|Couldn't connect to \S+:\d",
    re.MULTILINE,
)
_RULES = (66, 87, 163)  # until 2012, since, and --report-per-port

# Columns by the words of the header without blanks.
_COLUMNS = {
    "#bytes": "size_bytes", "#iterations": "iterations", "#sl": "service_level",
    "BWpeak": "peak", "BWaverage": "average", "MsgRate": "rate", "CPU_Util": "cpu",
    "BWPort1": "port1_bw", "MsgRatePort1": "port1_rate", "BWPort2": "port2_bw", "MsgRatePort2": "port2_rate",
    "t_min": "lat_min_us", "t_max": "lat_max_us", "t_typical": "lat_typical_us", "t_avg": "lat_avg_us",
    "t_stdev": "lat_stdev_us", "99%percentile": "lat_p99_us", "99.9%percentile": "lat_p999_us", "tpsaverage": "tps",
}  # fmt: skip
_COLUMN = re.compile("(" + "|".join(map(re.escape, sorted(_COLUMNS, key=len, reverse=True))) + r")(?:\[([^\]]+)\])?")

_FACT_KEYS = {
    name: name.replace(" ", "_").replace("Gid", "GID")
    for name in (
        "Device", "Number of qps", "Transport type", "Connection type", "TX depth", "RX depth", "Mtu", "Link type",
        "GID index", "Gid index", "Use ROCm memory", "Use MUSA memory",
    )
}  # fmt: skip
_FACT = re.compile(rf"({'|'.join(_FACT_KEYS)})\s*:\s*(\S+)")
_ADDRESS = re.compile(r"(local|remote) address:\s*LID (\S+) QPN (\S+) PSN (\S+)")
_GID = re.compile(r"M?GID:\s*([0-9:]+)$")
_COMMAND = re.compile(
    r"\b(ib_(?:write|read|send|atomic)_(?:bw|lat)|raw_ethernet_(?:bw|lat|burst_lat|fs_rate))"
    r"((?=\s+-)\s.*|\s+[\w.:-]*\s*&?\s*|)$"
)
# ``user@host:~$ ``, ``[root@host ~]# ``: perftest names no host, the shell before it does. A command that takes the
# test elsewhere (ssh, a launcher) leaves the host open.
_PROMPT = re.compile(r"[\[(]?(?:[\w.-]+\)\s?)?[\w.-]+@([A-Za-z][\w.-]*)[: ][^$#%>]*[$#%>]\s(.*)")
_ELSEWHERE = re.compile(r"\b(?:ssh|pdsh|clush|srun|mpirun|mpiexec|docker|kubectl|podman|ip netns)\b")
_MASTER = re.compile(
    # before the banner: the program never came to a test
    r"(?P<early>Did not detect devices|No IB devices found|IB device \S+ not found|Unable to find the Infiniband"
    r"|Port number \d+ state is|Couldn't set the link layer|Couldn't get context for the device|Couldn't connect to "
    r"|Unable to open file descriptor for socket|Unable to init the socket connection|Couldn't listen to port"
    r"|Problem in resolving basic address|Invalid source address|\w+ mismatch: local=|Failed to negotiate parameters"
    r"|Received 10 times ADDR_ERROR|rdma_resolve_addr failed|Function rdma_connect failed|[Uu]nexpected CM event"
    r"|Unable to connect \(retries|Unable to perform rdma_client|Couldn't allocate MR|[Ff]ailed to create [Mm][Rr]"
    r"|Couldn't create IB resources|Failed to allocate hugepages|Unable to create QP|Failed to create QP"
    r"|Parser function exited with Error|Invalid Command or flag|Duration mode currently doesn't support"
    r"|please check that DURATION|Current implementation is not compatible with versions older)"
    # after it
    r"|(?P<late>Failed to modify QP|Unable to Connect the HCA|Found Incompatibility issue with GID types"
    r"|Failed to exchange data between|ethernet_read_keys: Couldn't read|Unable to read from socket|Couldn't parse line"
    r"|Completion with error at|Failed status|Failed to complete run_iter|Completion with wc_flags mismatch"
    r"|Couldn't post send|poll CQ failed|Did not get Message for|Problems with warm up|Test exited with Error"
    r"|Error occurred while running infinitely|Failed: margin is not long enough|VALIDATION: FAILED)"
    r"|(?P<teardown_error>Failed to close connection between|Failed to destroy resources|Failed to deregister MR)"
    r"|(?P<limit_missed>Error: BW result is below|Error: Msg rate\s+is below)"
    r"|(?P<not_validated>VALIDATION: WARNING)"
    r"|(?P<stopped>User stopped traffic|Client closed connection)"
    r"|(?P<cpu_frequency>Conflicting CPU frequency values)"
    r"|(?P<clock>Correlation coefficient r\^2)"
    r"|(?P<cuda>initializing CUDA|Picking device No\.|Perftest doesn't supports CUDA|.*CUDA_MEM_|\[pid = \d+, dev = )"
    r"|(?P<rocm>Using ROCm Device)"
    r"|(?P<harmless>WARNING: BW peak|Disabling dynamic polling|Increasing CQE polling|libibverbs: Warning|[sr]cnt=\d"
    r"|Total Received=|VALIDATION: PASSED)"
)
# stderr is not buffered and may land inside a line of stdout: a row or the header goes on behind it.
_SPLICE = re.compile(
    r"(.*?\S.*?)(Correlation coefficient r\^2: [0-9.]+ < 0\.9"
    r"|Conflicting CPU frequency values detected: [0-9.]+ != [0-9.]+\. CPU Frequency is not max\.)"
)
_BELOW_HEADER = re.compile(r"\s*(?:[0-9]+\s+[0-9]|#|--)")
_CYCLES = re.compile(r"\s-\w*C\b|--report-cycles")
_ROW_LIKE = re.compile(r"[0-9]+\s+[0-9]+(?:\s+-?[0-9]+\.[0-9]+){2}")
_SWITCHES = frozenset("abeghCFHNOPRUVzZ")  # short options of perftest that take no value


# Without one of these nothing is to be mended: a wrapped rule, a warning inside a line.
_MENDED = (b"-\n-", b"Correlation", b"Conflicting")


def parse(text: Text) -> Parsed:
    """Reads all tests of a log; every stream of a launcher is read by itself."""
    readers: dict[str, _Reader] = {}
    lines = plain_lines(text, _ANCHOR)
    if lines and text.held and not any(sign in text.held for sign in _MENDED):
        readers[""] = _Reader("")
        _read_plain(readers[""], lines)
    else:
        _read_marked(readers, _mended(unprefixed(text, _ANCHOR)))
    for reader in readers.values():
        reader.end()
    runs = sorted((r for reader in readers.values() for r in reader.runs), key=lambda r: r.line or 0)
    notes = sorted((n for reader in readers.values() for n in reader.notes), key=lambda n: n.line or 0)
    return Parsed(runs=tuple(runs), notes=tuple(notes))


def _read_marked(readers: "dict[str, _Reader]", lines: Iterable[Line]) -> None:
    for number, tag, line in lines:
        reader = readers.get(tag)
        if reader is None:
            reader = readers[tag] = _Reader(tag)
        reader.take(number, line)


def _read_plain(reader: "_Reader", lines: list[str]) -> None:
    """The lines of one stream of which none is to be mended: rows are read a table at a time."""
    at = 0
    while at < len(lines):
        done = reader.take_rows(lines, at)
        if not done:
            reader.take(at + 1, lines[at])
        at += done or 1


def _mended(lines: Iterable[Line]) -> Iterator[Line]:
    """Joins lines that a narrow terminal wrapped or that a warning was written into.

    A wrapped rule shows the width of the terminal: its two parts make up a whole rule. From there on a line of just
    that width goes on in the next one.
    """
    width = 0
    held: dict[str, Line] = {}
    before = Line(0, "", "")
    for line in lines:
        fills = len(line.text) == width
        if held and line.tag in held:
            start = held.pop(line.tag)
            if "#bytes" in start.text and _BELOW_HEADER.match(line.text):  # a header that just fills its line
                yield start
            else:
                line = Line(start.number, line.tag, start.text + line.text)
        text = line.text
        if text[:1] == "-" and not width and _wraps(before.text, text) and before.tag == line.tag:
            width = len(before.text)
            line = Line(before.number, line.tag, before.text + text)
        elif fills and width:
            held[line.tag] = line
            continue
        elif ("Correlation" in text or "Conflicting" in text) and (found := _SPLICE.match(text)):
            held[line.tag] = line._replace(text=found[1])
            line = line._replace(text=found[2])
        yield line
        before = line
    yield from held.values()


def _wraps(first: str, second: str) -> bool:
    """Whether two lines of dashes are one rule; a rule ends in no blank."""
    return len(first) + len(second) in _RULES and not (first + second).strip("-")


@dataclass(frozen=True, slots=True)
class _Layout:
    """A table as its header describes it. ``row`` has a group for each column that is kept."""

    kind: str
    unit: str
    row: re.Pattern[str]


@lru_cache(maxsize=64)
def _layout(header: str) -> _Layout | None:
    """The layout that a header line describes, or None when it is no whole header of a known table."""
    squeezed = re.sub(r"\s+", "", header)
    names, units, at = [], set(), 0
    while found := _COLUMN.match(squeezed, at):
        names.append(found[1])
        at = found.end()
        if found[2] not in (None, "Mpps", "%"):
            units.add(found[2])
    if at < len(squeezed) or len(set(names)) < len(names) or "#iterations" not in names or len(units) != 1:
        return None
    unit = units.pop()
    if "BWaverage" in names and unit in UNITS:
        return _Layout("bandwidth", unit, _row_pattern(names))
    if unit == "usec" and {"t_avg", "t_typical"} & set(names):
        return _Layout("latency", unit, _row_pattern(names))
    return None


def _row_pattern(names: list[str]) -> re.Pattern[str]:
    """A number with fewer decimals than perftest prints was cut: that can only be the last one of a line."""
    last = "{6}" if names[-1].startswith("MsgRate") else "{2}(?:[0-9]{4})?"
    patterns = []
    for at, name in enumerate(names):
        decimals = last if at == len(names) - 1 else "+"
        number = "[0-9]{1,12}" if name == "#bytes" else "[0-9]{1,20}" if name[0] == "#" else ""
        number = number or rf"-?(?:[0-9]+\.[0-9]{decimals}|nan|inf)"
        patterns.append(f"(?P<{_COLUMNS[name]}>{number})" if _COLUMNS[name] else number)
    return re.compile(r"\s*" + r"\s+".join(patterns) + r"(?!\S)")


@dataclass(slots=True)
class _Process:
    """One program that printed a title, and what its banner said."""

    line: int
    title: Title | None
    server: bool = False
    facts: dict[str, str] = field(default_factory=dict)
    ends: dict[str, list[str]] = field(default_factory=lambda: {"local": [], "remote": []})  # an address a queue pair
    rule_after_ends: bool = False
    samples: Sequence[Sample] = ()
    rows: dict[int | None, int] = field(default_factory=dict)  # by size, on a shared terminal

    def add(self, sample: Sample) -> None:
        if not isinstance(self.samples, list):
            self.samples = list(self.samples)
        self.samples.append(sample)

    def add_table(self, samples: Samples) -> None:
        self.samples = [*self.samples, *samples] if self.samples else samples


@dataclass(slots=True)
class _Before:
    """What stood before a title and speaks of the test that follows."""

    commands: list[str] = field(default_factory=list)
    host: str | None = None  # where the newest command was typed
    waiting: int | None = None  # line of the star box that only a server prints
    memory: str | None = None
    calibrated: bool = True
    failed: int | None = None  # line of the first failure text
    late: bool = False  # a failure that a program meets only after its banner
    certain: bool = False  # a failure that only perftest words like this
    gpu: str | None = None
    remarks: Remarks = field(default_factory=Remarks)

    @property
    def command(self) -> str | None:
        """The command of the test; None where several were given and which one is meant is not known."""
        return self.commands[0] if len(self.commands) == 1 else None


@dataclass(slots=True)
class _Test:
    """A test being read. It has several processes where programs write to one terminal line by line."""

    processes: list[_Process]
    before: _Before
    layout: _Layout | None = None
    unit: str | None = None
    kind: str | None = None
    headers: int = 0
    attempts: int = 0  # rows seen, also refused and torn ones
    rules: int = 0  # after the first row: each process prints one
    dump: str = ""  # usec or cycles, while single samples of -H or -U are listed
    cycles: bool = False
    directions: bool = False  # the tables behind the result of --report-both
    end: str = "local"

    @property
    def newest(self) -> _Process:
        return self.processes[-1]

    @property
    def shared(self) -> bool:
        return len(self.processes) > 1 and self.headers > 1

    @property
    def quoted(self) -> bool:
        """Whether nothing but a header and rows stands there: no banner, rule or command says that a program ran."""
        return self.newest.title is None and not self.rules and self.before.command is None

    @property
    def closed(self) -> bool:
        return self.rules >= (len(self.processes) if self.shared else 1)


class _Reader:
    """Reads the lines of one stream; ``runs`` and ``notes`` hold what is finished."""

    def __init__(self, tag: str) -> None:
        host = re.fullmatch(r"([A-Za-z][\w.-]*):", tag)
        self.hosts = (host[1],) if host else ()
        self.runs: list[Run] = []
        self.notes: list[Note] = []
        self.version: str | None = None
        self.test: _Test | None = None
        self.before = _Before()
        self.after_rule = False

    def take(self, number: int, text: str) -> None:
        """Reads one line. Rows come first: they are the most."""
        test = self.test
        if test and test.layout and self._rows(test, test.layout, number, text):
            return
        bare = text.strip()
        if not bare:
            return
        first, after_rule = bare[0], self.after_rule
        self.after_rule = first == "-" and len(bare) in _RULES and not bare.strip("-")
        if self.after_rule:
            if test:
                _rule(test)
        elif first == "#" and self._heading(number, bare):
            pass
        elif bare.endswith("Test") and (title := title_of(bare)):
            if test and test.rules and after_rule:  # that rule opened this banner and closed nothing
                test.rules -= 1
            self._title(number, title)
        elif first == "*" and bare.startswith("* Waiting for client to connect"):
            self._finish()
            if self.before.failed and not self.before.late:
                self._failed_alone()
            self.before.waiting = number
        elif not (test and not test.headers and ":" in bare and _banner(test, bare)):
            self._other(number, bare)

    def take_rows(self, lines: list[str], first: int) -> int:
        """Reads the rows that stand from *first* on at once, where they can only be those of one program. How many?"""
        test = self.test
        if test is None or test.layout is None or test.shared or not test.before.calibrated:
            return 0
        layout, rows = test.layout, []
        for at in range(first, len(lines)):
            row = layout.row.match(lines[at])
            if not row or row.end() < len(lines[at]):
                break
            rows.append(row.groups())
        if len(rows) < 2:
            return 0
        columns = dict(zip(layout.row.groupindex, zip(*rows, strict=True), strict=True))
        samples = table(range(first + 1, first + 1 + len(rows)), columns, layout.unit, layout.kind)
        if samples is None:
            for at in range(first, first + len(rows)):
                self.take(at + 1, lines[at])
        else:
            test.attempts += len(rows)
            test.newest.add_table(samples)
        return len(rows)

    def end(self) -> None:
        """The stream is at its end."""
        self._finish()
        if self.before.failed:
            self._failed_alone()
        elif self.before.waiting:
            self.before.remarks.add("never_connected", self.before.waiting)
        if self.runs or self.before.waiting:
            self.notes += self.before.remarks.notes()

    def _title(self, number: int, title: Title) -> None:
        """Opens a test, or adds a process where one banner begins inside another."""
        test = self.test
        if test and not test.headers and not test.newest.ends["local"] and not test.before.failed:
            test.processes.append(_Process(number, title))
            return
        self._finish()
        if self.before.failed and not self.before.late:
            self._failed_alone()
        self.test = _Test([_Process(number, title, server=self.before.waiting is not None)], self.before)
        self.before = _Before()

    def _heading(self, number: int, bare: str) -> bool:
        """A header, or the line that heads a dump of single samples; False when it is neither."""
        test = self.test
        if bare.startswith("#, ") and test and test.layout:
            test.dump = bare[3:].strip()
            test.cycles = test.cycles or test.dump == "cycles"
            return True
        if not bare.startswith(("#bytes", "#flows")):
            return False
        layout = _layout(bare)
        if layout is None:
            self._remarks().add("unknown_header", number, _quoted(bare))
            if test:
                test.layout = None
        elif not (test and test.directions):
            self._open_table(number, layout)
        return True

    def _open_table(self, number: int, layout: _Layout) -> None:
        """The table of the open test, else a table whose banner is not in the log: its operation is not known."""
        test = self.test
        known = {p.title.kind for p in test.processes if p.title} if test else set()
        done = test is not None and (test.closed or (test.attempts > 0 and test.headers >= len(test.processes)))
        if test is None or done or (known and layout.kind not in known):
            self._finish()
            test = self.test = _Test([_Process(number, None)], self.before)
            self.before = _Before()
        test.layout, test.unit, test.kind, test.dump = layout, layout.unit, layout.kind, ""
        test.headers += 1

    def _rows(self, test: _Test, layout: _Layout, number: int, text: str) -> bool:
        """Reads the rows of a line: one, or several where programs share a terminal. False when it is no row."""
        at = 0
        while found := layout.row.match(text, at):
            _row(test, layout, number, found)
            at = found.end()
            if at == len(text):
                return True
        rest = text[at:].strip()
        if at and rest and "=" not in rest:  # --report-counters appends name=delta
            test.before.remarks.add("torn_row", number, _quoted(rest))
        return at > 0

    def _other(self, number: int, bare: str) -> None:
        """Failures, warnings, commands, and what is none of these."""
        found = _MASTER.match(bare)
        if found:
            self._event(number, found.lastgroup or "", bare)
            return
        if ("ib_" in bare or "raw_ethernet_" in bare) and (command := _COMMAND.search(bare)):
            self._command(command[0].strip().rstrip("& "), _host_of(bare[: command.start()]))
        elif bare.startswith("Version: ") and self.before.commands:
            self._version(bare)
        elif self.test:
            self._inside(self.test, number, bare)

    def _command(self, command: str, host: str | None) -> None:
        """A command speaks of what follows; an open table may still go on below it."""
        if self.test and not self.test.layout:
            self._finish()
        if self.before.failed:
            self._failed_alone()
        self.before.commands.append(command)
        self.before.host = host

    def _version(self, bare: str) -> None:
        """What ``--version`` prints; it holds for all tests below."""
        if re.search(r"-V|--version", self.before.commands[-1]):
            self.version = bare.split()[1]
            self.before.commands.pop()

    def _inside(self, test: _Test, number: int, bare: str) -> None:
        """A line of a test that is no row, no rule and no known text."""
        remarks, digits = test.before.remarks, bare[0].isdigit()
        if bare in ("Local results:", "Remote results:"):
            test.directions, test.layout = True, None
        elif test.directions and digits:
            remarks.add("direction_rows", number)
        elif test.layout and not (test.dump and digits):
            test.attempts += digits
            remarks.add("torn_row" if digits else "not_understood", number, _quoted(bare))
        elif _ROW_LIKE.match(bare):
            remarks.add("stray_row", number, _quoted(bare))

    def _event(self, number: int, name: str, bare: str) -> None:
        """A text that the program prints for a reason. What comes before its time speaks of the next test."""
        test = self.test
        if name in ("early", "late"):
            self._failure(number, bare, late=name == "late")
        elif name in ("cuda", "rocm"):
            before = test.before if test and not test.headers else self.before
            before.memory = name
            if gpu := _GPU.match(bare):
                before.gpu = gpu[1] or gpu[2]
        elif name in ("clock", "cpu_frequency"):
            before = test.before if test and not test.closed else self.before
            before.calibrated = before.calibrated and name != "clock"
            if name == "cpu_frequency":
                before.remarks.add(name, number, _quoted(bare))
        elif name == "teardown_error" and not (test and test.attempts):
            self._failure(number, bare, late=True)
        elif name != "harmless":
            self._remarks().add(name, number, _quoted(bare))

    def _failure(self, number: int, bare: str, *, late: bool) -> None:
        """The open test failed, unless the text can only come from a program that reached no test."""
        if self.test and "stopped" in self.test.before.remarks:
            self._remarks().add("teardown_error", number, _quoted(bare))
            return
        if self.test and self.test.headers and (not late or self.before.commands):
            self._finish()
        before = self.test.before if self.test else self.before
        before.failed = before.failed or number
        before.late = before.late or late
        before.certain = before.certain or bool(_OWN_FAILURE.match(bare))
        before.remarks.add("failed", number, _quoted(bare))

    def _failed_alone(self) -> None:
        """A failure without any test around it is a run of its own, where it is perftest that failed."""
        before, self.before = self.before, _Before()
        if not (before.certain or before.commands or before.waiting or self.runs):
            return
        program = before.command.split()[0] if before.command else None
        operation = program.split("_")[1] if program and program.startswith("ib_") else None
        self.runs.append(
            Run(
                tool=NAME, kind="latency" if program and program.endswith("_lat") else "bandwidth", status="failed",
                line=before.failed, program=program, operation=operation, command=before.command,
                hosts=self._hosts(before), peer=_peer(before.command),
                operation_evidence="command line" if operation else None, tool_version=self.version,
                side="server" if before.waiting else None, memory=_memory(before, {}), gpu_model=before.gpu,
            )
        )  # fmt: skip
        self.notes += before.remarks.notes()

    def _hosts(self, before: _Before) -> tuple[str, ...]:
        """The host that ran a test: as a launcher's prefix says, else the prompt of its only command."""
        return self.hosts or ((before.host,) if before.host and before.command else ())

    def _remarks(self) -> Remarks:
        return self.test.before.remarks if self.test else self.before.remarks

    def _finish(self) -> None:
        """Turns the open test into runs."""
        test, self.test = self.test, None
        if test is None:
            return
        if test.quoted:
            test.before.remarks.add("lone_table", test.newest.line)
            self.notes += test.before.remarks.notes()
            return
        if test.shared:
            test.before.remarks.add("interleaved", test.processes[0].line)
            _share(test)
        for index, process in enumerate(test.processes):
            fields = _fields(test, process)
            self.runs.append(
                Run(
                    tool=NAME, line=process.line, tool_version=self.version,
                    hosts=self.hosts if test.shared else self._hosts(test.before),
                    status=_status(test, index, fields["side"]), samples=_samples(test, process), **fields,
                )
            )  # fmt: skip
        _one_sided(test, self.runs[-1])
        self.notes += test.before.remarks.notes()


def _banner(test: _Test, bare: str) -> bool:
    """Takes the facts of a banner or address line; False when it holds none."""
    process = test.newest
    if "address:" in bare and (found := _ADDRESS.match(bare)):
        test.end = found[1]
        address = _address(found[2], found[3], found[4])
        process.ends[test.end].append(address)
        if address:
            process.facts.setdefault("LID", found[2])
        return True
    if "GID:" in bare and (found := _GID.match(bare)):
        if len(process.ends[test.end]) == 1 and process.ends[test.end][0]:
            process.ends[test.end][0] += f" GID {found[1]}"
        return True
    facts = _FACT.findall(bare)
    for key, value in facts:
        key = _FACT_KEYS[key]
        if process.facts.setdefault(key, value) != value:  # two programs on one terminal disagree
            process.facts[key] = ""
    return bool(facts)


def _address(lid: str, qpn: str, psn: str) -> str:
    """The address of a queue pair as perftest writes it; empty when its author masked it (``0xxxxx``)."""
    try:
        return f"LID {_hex(lid, 4)} QPN {_hex(qpn, 6)} PSN {_hex(psn, 6)}"
    except ValueError:
        return ""


def _hex(text: str, width: int) -> str:
    """Like C's ``%#0*x``, which writes a zero without ``0x``; versions differ in their widths."""
    number = int(text, 16)
    return f"{number:#0{width}x}" if number else "0" * width


def _rule(test: _Test) -> None:
    """After a row a rule closes the table; before one it only separates."""
    test.dump = ""
    if test.attempts:
        test.rules += 1
        if test.closed:
            test.layout = None
    elif test.newest.ends["remote"]:
        test.newest.rule_after_ends = True


def _row(test: _Test, layout: _Layout, number: int, found: re.Match[str]) -> None:
    """Adds a row to the process that has the fewest of its size: whose it is cannot be told on a shared terminal."""
    test.attempts += 1
    row = found.groupdict()
    before = test.before
    if layout.kind == "bandwidth":
        sample = bandwidth_sample(number, row, layout.unit, before.remarks, calibrated=before.calibrated)
    else:
        sample = latency_sample(number, row, before.remarks, calibrated=before.calibrated)
    if sample is not None:
        process = test.processes[-1]
        if test.shared:
            size = sample.size_bytes
            process = min(test.processes, key=lambda p: p.rows.get(size, 0))
            process.rows[size] = process.rows.get(size, 0) + 1
        process.add(sample)


def _share(test: _Test) -> None:
    """On a shared terminal only what all banners agree on is known of each process."""
    merged: dict[str, str] = {}
    for process in test.processes:
        for key, value in process.facts.items():
            merged[key] = value if merged.setdefault(key, value) == value else ""
    ends = {k: [e.split(" GID")[0] for p in test.processes for e in p.ends[k]] for k in ("local", "remote")}
    pair = len(test.processes) == 2 and set(ends["local"]) == set(ends["remote"]) and len(set(ends["local"])) == 2
    for index, process in enumerate(test.processes):
        process.facts = merged
        # the two ends of one test: each is the remote end of the other
        process.ends = {k: [ends["local"][i]] for k, i in (("local", index), ("remote", 1 - index))} if pair else {}


def _fields(test: _Test, process: _Process) -> dict[str, Any]:
    """The fields of a Run that banner, command and table tell."""
    title, facts = process.title, process.facts
    command = None if test.shared else test.before.command
    fields = facts_to_fields(facts) | {
        "kind": title.kind if title else test.kind or "bandwidth",
        "unit_printed": test.unit if process is test.newest or test.shared else None,
        "memory": _memory(test.before, facts),
        "gpu_model": test.before.gpu,
        "command": command,
        "peer": _peer(command),
        "duration_s": _duration(command),
        "side": _side(test, process, command),
        "local_address": _first(process.ends.get("local")),
        "remote_address": _first(process.ends.get("remote")),
    }
    if title is None:
        return fields | {"operation_candidates": OPERATIONS}
    raw = facts.get("Connection_type") == "RawEth"
    return fields | {
        "operation": title.operation,
        "operation_evidence": "title line",
        "program": command.split()[0] if raw and command else program_of(title, raw),
        "bidirectional": title.bidirectional,
        "latency_convention": convention_of(title),
    }


def _first(addresses: list[str] | None) -> str | None:
    return (addresses[0] or None) if addresses else None


def _memory(before: _Before, facts: dict[str, str]) -> str:
    """Where the buffers lie: upstream's banner tells of ROCm and MUSA only, CUDA shows in the lines before it."""
    for name in ("ROCm", "MUSA"):
        if facts.get(f"Use_{name}_memory") == "ON":
            return name.lower()
    asked = re.search(r"--use_(cuda|rocm|neuron|hl|mlu|musa|opencl)\b", before.command or "")
    return before.memory or (asked[1] if asked else "host")


def _side(test: _Test, process: _Process, command: str | None) -> str | None:
    """Client or server, from the surest sign to the weakest; None on a shared terminal."""
    if test.shared:
        return None
    if process.server:
        return "server"
    asked = re.search(r"--(server|client)\b", command or "")
    if asked or process.title is None or process.facts.get("Connection_type") == "RawEth":
        return asked[1] if asked else None
    if not process.title.bidirectional:
        return side_by_depth(process.facts)
    # both ends of a bidirectional test print both depths; since 2013 every server prints the star box
    return "server" if command and _names_no_host(command) else "client"


def _names_no_host(command: str) -> bool:
    """Whether the last word is an option or the value of one: only a client is given a host, as its last word."""
    *before, last = command.split()
    value = bool(before) and len(before[-1]) == 2 and before[-1][0] == "-" and before[-1][1] not in _SWITCHES
    return not before or value or last.startswith("-") or last.isdigit()


def _host_of(before: str) -> str | None:
    """The host of the prompt that stands before a command; None without one, or where the command runs elsewhere."""
    found = _PROMPT.fullmatch(before)
    return found[1] if found and not _ELSEWHERE.search(found[2]) else None


def _peer(command: str | None) -> str | None:
    """The host that a client's command names, as typed; a variable of the shell names none."""
    if command is None or _names_no_host(command) or not re.fullmatch(r"[\w.:-]+", last := command.split()[-1]):
        return None
    return last


def _duration(command: str | None) -> float | None:
    """Seconds of ``-D 10``, ``-D10`` or ``--duration=10``."""
    found = re.search(r"\s(?:-\w*D\s*|--duration[= ])([0-9]{1,9})\b", command or "")
    return float(found[1]) if found else None


def _status(test: _Test, index: int, side: str | None) -> str:
    """See the words of model.STATUSES; a server of read or atomic latency prints no table."""
    process = test.processes[index]
    last = process is test.newest or test.shared
    if test.before.failed and last:
        return "failed"
    closed = test.rules > (index if test.shared else 0)
    if process.samples:
        return "complete" if closed else "truncated"
    title = process.title
    if title and title.kind == "latency" and title.operation in ("read", "atomic") and side == "server":
        return "complete" if process.rule_after_ends and not (test.headers and last) else "no_data"
    return "truncated" if last and "torn_row" in test.before.remarks and not closed else "no_data"


def _samples(test: _Test, process: _Process) -> Sequence[Sample]:
    """The rows of a process, without what the whole test shows not to be measured."""
    samples, remarks = Samples.of(process.samples), test.before.remarks
    if test.kind == "latency" and (test.cycles or any(map(_CYCLES.search, test.before.commands))):
        remarks.add("cycles", samples[0].line if samples else process.line)
        return tuple(Sample(s.line, s.size_bytes, iterations=s.iterations, tps=s.tps) for s in samples)
    cpu = samples.column("cpu_util_pct")
    if 0 in cpu and _endless(test, samples):
        for line in (line for line, used in zip(samples.column("line"), cpu, strict=True) if used == 0):
            remarks.add("cpu_not_measured", line)
        return Samples(samples.columns | {"cpu_util_pct": [used or None for used in cpu]})
    return samples


def _endless(test: _Test, samples: Sequence[Sample]) -> bool:
    """Whether --run_infinitely was given: rows of one size again and again, an end by hand or none."""
    repeats = len({s.size_bytes for s in samples}) < len(samples)
    return repeats or not test.rules or "stopped" in test.before.remarks or "--run_inf" in (test.before.command or "")


def _one_sided(test: _Test, run: Run) -> None:
    """In a bidirectional test of some seconds the summed rate counts twice the messages of this end.

    Where it counts them once, the other end was started without ``-b``. The window is the duration without a margin
    at either end (``-f``, by default a quarter of the duration in whole seconds).
    """
    if not (run.bidirectional and run.duration_s and run.kind == "bandwidth" and run.operation != "send"):
        return
    margin = re.search(r"\s-f\s*([0-9]{1,9})\b", run.command or "")
    window = run.duration_s - 2 * (int(margin[1]) if margin else run.duration_s // 4)
    for sample in run.samples:
        if sample.iterations and sample.msg_rate_mpps:
            seconds = sample.iterations / sample.msg_rate_mpps / 1e6
            if abs(seconds - window) < 0.05 * window:
                test.before.remarks.add("one_sided_sum", sample.line)


def _quoted(text: str) -> str:
    """A line as a note shows it: short enough to read."""
    return f"'{text[:80]}'"
