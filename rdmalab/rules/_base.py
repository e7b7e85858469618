"""What a rule of the configuration audit is made of: facts of one campaign in, findings with their lines out."""

from collections.abc import Callable, Collection, Iterable, Mapping
from dataclasses import dataclass, field
from functools import cached_property
from typing import Any, NamedTuple

WRONG, CHECK, NOTE = "wrong", "check", "note"
SEVERITIES = (WRONG, CHECK, NOTE)
RDMA = ("roce", "infiniband", "softroce", "iwarp", "efa", "slingshot")  # families that promise RDMA
SOCKETS = ("tcp", "ethernet")  # families on which sockets are what was meant

NCCL = "NVIDIA/nccl: docs/userguide/source/env.rst"
NCCL_IB = "NVIDIA/nccl: src/transport/net_ib/init.cc, src/transport/net.cc"
MLX5 = "torvalds/linux: Documentation/networking/device_drivers/ethernet/mellanox/mlx5/counters.rst"
SYSFS = "torvalds/linux: Documentation/ABI/stable/sysfs-class-infiniband"


class Line(NamedTuple):
    """
    A line of a log that shows something; ``text`` is the literal line once the log was read again.

    Where only the beginning of a test is known, ``seek`` is a word of the line that is meant, soon below it.
    """

    log_id: str
    path: str
    line: int | None
    text: str
    seek: str | None = None


class Fabric(NamedTuple):
    """What the campaign file says of a fabric; None where it says nothing."""

    name: str
    family: str
    mtu_bytes: int | None
    ports_per_node: int | None


class Log(NamedTuple):
    """A log of the campaign, with what its NCCL lines prove; ``fabric`` only where the campaign file claims it."""

    log_id: str
    path: str
    fabric: Fabric | None
    verdict: str | None
    gdr: str | None
    reason: str | None  # why sockets were used
    evidence: tuple[Line, ...]

    @property
    def family(self) -> str | None:
        """The family that the campaign file declares."""
        return self.fabric.family if self.fabric else None


class Noted(NamedTuple):
    """A note of a log."""

    log: Log
    line: int | None
    code: str
    text: str

    @property
    def at(self) -> Line:
        """Its line."""
        return Line(self.log.log_id, self.log.path, self.line, self.text)

    @property
    def of_host(self) -> tuple[str, str]:
        """(host, what is said of it) of a text ``node-a: mlx5_0/RoCE``."""
        host, _, said = self.text.partition(": ")
        return host, said


class Test(NamedTuple):
    """A run, as far as rules look at runs."""

    log: Log
    line: int | None
    run_id: str
    device: str | None
    mtu_bytes: int | None
    gid_index: int | None
    pair: str | None  # the same for both ends of one point-to-point test
    library_version: str | None

    def at(self, word: str, value: object) -> Line:
        """The line of its banner that holds *word* and *value*."""
        return Line(self.log.log_id, self.log.path, self.line, f"{word}: {value}", seek=word)


class Read(NamedTuple):
    """A reading."""

    log: Log
    line: int | None
    host: str | None
    device: str | None
    metric: str
    value: float

    @property
    def at(self) -> Line:
        """Its line."""
        return Line(self.log.log_id, self.log.path, self.line, f"{self.metric} {self.value:g}")


@dataclass(frozen=True, kw_only=True)
class Facts:
    """All that rules look at. ``differences`` are the rows of :func:`rdmalab.counters.differences`."""

    fabrics: Mapping[str, Fabric] = field(default_factory=dict)
    logs: tuple[Log, ...] = ()
    notes: tuple[Noted, ...] = ()
    tests: tuple[Test, ...] = ()
    readings: tuple[Read, ...] = ()
    differences: tuple[Mapping[str, Any], ...] = ()

    def noted(self, code: str, log: Log | None = None) -> list[Noted]:
        """The notes of a code that have a line, of all logs or of one."""
        return self._noted.get((code, log.log_id if log else ""), [])

    def log_at(self, path: str) -> Log | None:
        """The log at a path."""
        return self._at.get(path)

    @cached_property
    def _noted(self) -> dict[tuple[str, str], list[Noted]]:
        found: dict[tuple[str, str], list[Noted]] = {}
        for note in self.notes:
            if note.line is not None:
                for log_id in (note.log.log_id, ""):
                    found.setdefault((note.code, log_id), []).append(note)
        return found

    @cached_property
    def _at(self) -> dict[str, Log]:
        return {log.path: log for log in self.logs}


@dataclass(frozen=True, kw_only=True)
class Hit:
    """
    One place where a rule applies.

    Attributes:
        what: A sentence with places for the numbers, in English; marked for translation.
        numbers: What stands in those places; hits that agree in all of them are one finding.
        lines: The lines that show it; never empty.
        log: The first of their logs.
        severity: Where it is not that of the rule.
    """

    what: str
    lines: tuple[Line, ...]
    log: Log
    numbers: Mapping[str, Any] = field(default_factory=dict)
    severity: str | None = None


# None: nothing in the campaign could have shown it, so that its absence says nothing.
Find = Callable[[Facts], list[Hit] | None]


@dataclass(frozen=True, kw_only=True)
class Rule:
    """One rule. ``needs`` says which log it takes to test it; ``source`` is a public document."""

    id: str
    severity: str
    title: str
    source: str
    remedy: str
    needs: str
    find: Find


def tested(by: Collection[object], hits: Iterable[Hit]) -> list[Hit] | None:
    """The hits where something could have shown them, else None."""
    return list(hits) if by else None


def rule(into: list[Rule], id: str, severity: str, **texts: str) -> Callable[[Find], Find]:  # noqa: A002
    """Makes the function below it a rule."""

    def register(find: Find) -> Find:
        into.append(Rule(id=id, severity=severity, find=find, **texts))
        return find

    return register
