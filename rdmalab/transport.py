"""Which transport really carried the traffic of an NCCL or RCCL job: facts of a log in, a verdict out.

The proof is a connection (``Channel 03/0 : 8[0] -> 0[0] [receive] via NET/IB/4/GDRDMA``). ``Using network X`` only
names what would be used between nodes, and a list of devices only what was found. InfiniBand and RoCE share the name
``IB``: the link layer of exactly the device that a connection names decides, in the list of the same process.
"""

import re
from collections import Counter
from collections.abc import Iterable
from dataclasses import dataclass, field
from typing import Any, NamedTuple

from rdmalab.model import Evidence, Transport

# Why RDMA was not used, root cause first; the words are the reason that a reader is given.
FALLBACK_REASONS = {
    "disabled": "NCCL_IB_DISABLE=1",
    "net_socket": "NCCL_NET=Socket",
    "libibverbs": "libibverbs was not found",
    "open_failed": "ibv_open_device failed",
    "plugin_failed": "the network plugin failed to initialize",
    "no_device": "NET/IB found no device",
}
_TCP_NETS = ("Socket", "FastSocket", "FasTrak", "GPUDirectTCPX")
_VERBS_NETS = re.compile(r"(?:g?IB|IBext\w*|NCCL RDMA Plugin.*|UCX\w*)$")
_LAYERS = {"IB": "ib", "RoCE": "roce"}
_MOST_EVIDENCE = 6


def is_verbs(net: str) -> bool:
    """Whether a net speaks verbs, so that its device numbers are those of the list of RDMA devices."""
    return bool(_VERBS_NETS.match(net))


class Hop(NamedTuple):
    """A kind of connection that one process opened: through which net and device, with GPUDirect RDMA or without."""

    process: str  # host:pid
    communicator: str | None
    net: str  # IB, NCCL RDMA Plugin v9, AWS Libfabric, Socket, ...
    device: int
    gdr: bool
    relayed: bool = False  # through the device of another rank of the node (PXN)


class Device(NamedTuple):
    """A network device of a process; ``layer`` as printed: IB, RoCE, UNSPECIFIED."""

    name: str
    layer: str


class Failure(NamedTuple):
    """An error that shows verbs at work: on which device, if named, and whether it carried RoCE addresses (GIDs)."""

    process: str
    device: str | int | None
    gids: bool


@dataclass
class Communicator:
    """What is known of one communicator."""

    ranks: int | None = None
    nodes: int | None = None
    seen: set[int] = field(default_factory=set)  # ranks with a line in the log
    hosts: set[str] = field(default_factory=set)

    @property
    def on_one_node(self) -> bool:
        """Said by the log (``nNodes 1``), else shown by all ranks having written from one host."""
        if self.nodes is not None:
            return self.nodes == 1
        return len(self.hosts) == 1 and self.ranks is not None and len(self.seen) == self.ranks


@dataclass
class Facts:
    """
    What the lines of one log say, each with the first line that says it.

    It grows with the processes of a job, not with the lines of its log.
    """

    hops: Counter[Hop] = field(default_factory=Counter)
    hop_lines: dict[Hop, Evidence] = field(default_factory=dict)
    devices: dict[str, dict[int, Device]] = field(default_factory=dict)
    device_lines: dict[str, Evidence] = field(default_factory=dict)
    communicators: dict[str, Communicator] = field(default_factory=dict)
    networks: dict[str, Evidence] = field(default_factory=dict)  # Using network X
    providers: dict[str, Evidence] = field(default_factory=dict)  # of libfabric
    fallbacks: dict[str, Evidence] = field(default_factory=dict)  # keys of FALLBACK_REASONS
    queue_pairs: dict[str, Evidence] = field(default_factory=dict)  # link layer by GID or LID: roce, ib
    failures: dict[Failure, Evidence] = field(default_factory=dict)
    nodes_line: Evidence | None = None  # comm ... nNodes
    local_line: Evidence | None = None  # via P2P, via SHM

    def device_list(self, process: str) -> dict[int, Device]:
        """The devices of *process*; of all processes where its own list is not in the log and all lists agree."""
        if process in self.devices:
            return self.devices[process]
        lists = list(self.devices.values())
        return lists[0] if lists and all(one == lists[0] for one in lists) else {}


def judge(facts: Facts) -> Transport:
    """The verdict, from the strongest proof that the log holds; ``unknown`` where it holds none."""
    kinds: dict[str, list[Hop]] = {}
    for hop in facts.hops:
        kinds.setdefault(_kind(facts, hop), []).append(hop)
    if kinds:
        return _by_connections(facts, kinds)
    if _on_one_node(facts):
        return Transport(verdict="intra_node", evidence=_evidence([facts.nodes_line, facts.local_line]))
    if "Socket" in facts.networks and "no_device" in facts.fallbacks:
        lines = [*facts.fallbacks.values(), facts.networks["Socket"]]
        return Transport(verdict="socket", fallback=True, fallback_reason=_reason(facts), evidence=_evidence(lines))
    if facts.queue_pairs:
        verdict = next(iter(facts.queue_pairs)) if len(facts.queue_pairs) == 1 else "rdma_unspecified"
        return Transport(verdict=verdict, evidence=_evidence(facts.queue_pairs.values()))
    if facts.failures:
        return _by_failures(facts)
    return Transport(verdict="unknown")


def _by_connections(facts: Facts, kinds: dict[str, list[Hop]]) -> Transport:
    """The kind with the most connections; the others stay visible as evidence and in the communicators."""
    verdict = max(kinds, key=lambda kind: sum(facts.hops[hop] for hop in kinds[kind]))
    fallback = (
        verdict == "socket"
        and bool(facts.fallbacks)
        and all(hop.net == "Socket" for hop in kinds[verdict])
        and not _on_one_node(facts)
    )
    provider = " + ".join(facts.providers) or None if verdict == "ofi" else None
    lines = [facts.hop_lines[kinds[verdict][0]]]
    if verdict in ("ib", "roce"):
        own = facts.device_lines.get(kinds[verdict][0].process)
        lines += [own] if own else list(facts.device_lines.values())[:1]
    lines += facts.providers.values() if verdict == "ofi" else ()
    lines += facts.fallbacks.values() if fallback else ()
    lines += [facts.hop_lines[hops[0]] for kind, hops in kinds.items() if kind != verdict]
    return Transport(
        verdict=verdict, gdr=_gdr(facts.hops), fallback=fallback, fallback_reason=_reason(facts) if fallback else None,
        provider=provider, evidence=_evidence(lines), communicators=_communicators(facts),
    )  # fmt: skip


def _by_failures(facts: Facts) -> Transport:
    """
    An error of a queue pair shows verbs; its device or its addresses may show the link layer.

    NCCL prints GIDs with an error only where the link layer is Ethernet (transport/net_ib.cc).
    """
    layers = {failure: _failed_layer(facts, failure) for failure in facts.failures}
    known = set(layers.values()) - {None}
    verdict = known.pop() if len(known) == 1 else None
    telling = sorted(facts.failures, key=lambda failure: layers[failure] is None)
    return Transport(
        verdict=verdict or "rdma_unspecified", evidence=_evidence(facts.failures[failure] for failure in telling)
    )


def _failed_layer(facts: Facts, failure: Failure) -> str | None:
    if failure.gids:
        return "roce"
    devices = facts.device_list(failure.process)
    for index, device in devices.items():
        if failure.device in (index, device.name):
            return _LAYERS.get(device.layer)
    return None


def _kind(facts: Facts, hop: Hop) -> str:
    """The verdict that one connection alone would give."""
    if "Libfabric" in hop.net:
        return "ofi"
    if hop.net.startswith(_TCP_NETS):
        return "socket"
    if is_verbs(hop.net):
        return _layer_of(facts, hop)
    return "rdma_unspecified" if hop.gdr else "unknown"


def _layer_of(facts: Facts, hop: Hop) -> str:
    """
    The link layer of the device that the connection names.

    A device that the list does not hold was made later, of several ports (2.24 and newer): the common layer, if any.
    """
    devices = facts.device_list(hop.process)
    named = [devices[hop.device]] if hop.device in devices else list(devices.values())
    layers = {_LAYERS.get(d.layer) if not d.name.startswith("hfi1") else None for d in named}  # hfi1 is Omni-Path
    only = layers.pop() if len(layers) == 1 else None
    return only or "rdma_unspecified"


def _on_one_node(facts: Facts) -> bool:
    return bool(facts.communicators) and all(c.on_one_node for c in facts.communicators.values())


def _gdr(hops: Iterable[Hop]) -> str | None:
    return {(True,): "all", (False,): "none", (False, True): "mixed"}.get(tuple(sorted({hop.gdr for hop in hops})))


def _reason(facts: Facts) -> str:
    return "; ".join(words for key, words in FALLBACK_REASONS.items() if key in facts.fallbacks)


def _evidence(lines: Iterable[Evidence | None]) -> tuple[Evidence, ...]:
    return tuple(dict.fromkeys(line for line in lines if line is not None))[:_MOST_EVIDENCE]


def _communicators(facts: Facts) -> tuple[dict[str, Any], ...]:
    """Communicators by size, transport and GPUDirect RDMA; empty where all of them are alike."""
    groups: Counter[tuple[int | None, int | None, str, str | None]] = Counter()
    connections: Counter[tuple[int | None, int | None, str, str | None]] = Counter()
    by_communicator: dict[str | None, list[Hop]] = {}
    for hop in facts.hops:
        by_communicator.setdefault(hop.communicator, []).append(hop)
    for key, communicator in facts.communicators.items():
        hops = by_communicator.get(key, [])
        found = Counter[str]()
        for hop in hops:
            found[_kind(facts, hop)] += facts.hops[hop]
        verdict = found.most_common(1)[0][0] if found else "intra_node" if communicator.on_one_node else None
        if verdict:
            group = communicator.ranks, communicator.nodes, verdict, _gdr(hops)
            groups[group] += 1
            connections[group] += sum(found.values())
    if len({(verdict, gdr) for _, _, verdict, gdr in groups}) < 2:
        return ()
    words = ("ranks", "nodes", "verdict", "gdr")
    return tuple(
        {**dict(zip(words, group, strict=True)), "communicators": number, "connections": connections[group]}
        for group, number in groups.items()
    )
