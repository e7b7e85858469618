"""Rules on what carried the traffic of NCCL, and on the settings that decide it."""

import re
from collections.abc import Iterator

from rdmalab.language import marked as _
from rdmalab.rules._base import (
    CHECK,
    NCCL,
    NCCL_IB,
    NOTE,
    RDMA,
    SOCKETS,
    WRONG,
    Facts,
    Hit,
    Line,
    Log,
    Noted,
    Rule,
    rule,
    tested,
)

RULES: list[Rule] = []
_OVER_RDMA = ("ib", "roce", "ofi", "rdma_unspecified")
_INFO = _("NCCL lines of these runs: NCCL_DEBUG=INFO NCCL_DEBUG_SUBSYS=INIT,ENV,NET")


@rule(
    RULES, "sockets-on-rdma-fabric", WRONG,
    title=_("TCP sockets on a fabric that promises RDMA"), source=NCCL_IB, needs=_INFO,
    remedy=_("Make the RDMA devices visible to the job (container, driver, NCCL_IB_HCA) and run again until the "
             "connections read via NET/IB; the run counts for nothing until then."),
)  # fmt: skip
def _sockets_on_rdma_fabric(facts: Facts) -> list[Hit] | None:
    told = [log for log in _judged(facts) if log.family in RDMA]
    what = _("NCCL moved the data over TCP sockets ({reason}).")
    return tested(
        told,
        (
            Hit(what=what, numbers={"reason": log.reason or _NO_REASON}, lines=log.evidence, log=log)
            for log in told
            if log.verdict == "socket" and log.evidence
        ),
    )


_NO_REASON = _("no RDMA device used")


@rule(
    RULES, "sockets-beside-hcas", WRONG,
    title=_("TCP sockets although RDMA devices were found"), source=NCCL_IB, needs=_INFO,
    remedy=_("Unset NCCL_NET and NCCL_IB_DISABLE, look for the line that says why NET/IB was left, and run again."),
)  # fmt: skip
def _sockets_beside_hcas(facts: Facts) -> list[Hit] | None:
    told = [log for log in _judged(facts) if log.family is None]
    listed = {note.log.log_id: note for note in facts.noted("rdma_devices")}
    what = _("NCCL moved the data over TCP sockets, and the same log lists RDMA devices ({devices}).")
    return tested(
        told,
        (
            Hit(what=what, numbers={"devices": note.of_host[1]}, lines=(log.evidence[0], note.at), log=log)
            for log in told
            if log.verdict == "socket" and log.evidence and (note := listed.get(log.log_id))
        ),
    )


@rule(
    RULES, "sockets-where-others-find-hcas", CHECK,
    title=_("TCP sockets on a host on which another log shows RDMA devices"), source=NCCL_IB, needs=_INFO,
    remedy=_("Compare the environment of both jobs: container devices, plugin path (libnccl-net.so), NCCL_IB_HCA."),
)  # fmt: skip
def _sockets_where_others_find_hcas(facts: Facts) -> list[Hit] | None:
    told = [log for log in _judged(facts) if log.family is None]
    shown = {**_provided(facts), **{note.of_host[0]: note.at for note in facts.noted("rdma_devices")}}
    what = _("On {host} NCCL found no RDMA device and used TCP sockets; another log of this campaign shows some there.")
    hits = [
        Hit(what=what, numbers={"host": host}, lines=(note.at, note.log.evidence[0], line), log=note.log)
        for note in _without_device(facts)
        if note.log in told and note.log.verdict == "socket" and note.log.evidence
        if (line := shown.get(host := note.of_host[0])) and line.log_id != note.log.log_id
    ]
    return tested(told, hits)


def _without_device(facts: Facts) -> list[Noted]:
    return [note for note in facts.noted("rdma_not_used") if note.text.endswith("found no device")]


def _provided(facts: Facts) -> dict[str, Line]:
    """Hosts on which libfabric found RDMA devices, with the line that says so."""
    lines = [line for log in facts.logs if log.verdict == "ofi" for line in log.evidence]
    return {
        found[1]: line
        for line in lines
        if (found := re.search(r"([\w.-]+):\d+:\d+ \[-?\d+\] .*Selected [Pp]rovider is", line.text))
    }


@rule(
    RULES, "hca-not-opened", WRONG,
    title=_("An RDMA device that could not be opened"), source="NVIDIA/nccl: src/misc/ibvwrap.cc",
    needs=_INFO,
    remedy=_("Give the job access to /dev/infiniband (container devices, permissions, memlock limit)."),
)  # fmt: skip
def _hca_not_opened(facts: Facts) -> list[Hit] | None:
    what = _("NCCL found an RDMA device and could not open it.")
    return tested(
        _judged(facts),
        (
            Hit(what=what, lines=(note.at,), log=note.log)
            for note in facts.noted("rdma_not_used")
            if note.text.endswith("ibv_open_device failed") and note.log.verdict == "socket"
            if note.log.family not in SOCKETS
        ),
    )


# --- settings -------------------------------------------------------------------------------------------------------

_ENV = _("NCCL lines with the settings of these runs: NCCL_DEBUG=INFO NCCL_DEBUG_SUBSYS=INIT,ENV,NET")


def _settings(facts: Facts, pattern: str) -> list[Noted]:
    return [note for note in facts.noted("nccl_setting") if re.fullmatch(pattern, note.text, re.IGNORECASE)]


def _set(facts: Facts, pattern: str, what: str, severity: str | None = None) -> list[Hit] | None:
    """A hit for each setting that matches; untested where no log could show a setting."""
    hits = [
        Hit(what=what, numbers={"setting": note.text}, lines=(note.at,), log=note.log, severity=severity)
        for note in _settings(facts, pattern)
    ]
    return tested(_judged(facts) or facts.noted("nccl_setting"), hits)


@rule(
    RULES, "sockets-forced", WRONG,
    title=_("A setting that turns RDMA off"), source=NCCL, needs=_ENV,
    remedy=_("Unset NCCL_IB_DISABLE and NCCL_NET; a TCP baseline belongs in a fabric of the family tcp."),
)  # fmt: skip
def _sockets_forced(facts: Facts) -> list[Hit] | None:
    hits = _set(facts, r"NCCL_IB_DISABLE=1|NCCL_NET=Socket", _("{setting} is set: NCCL may only use TCP sockets."))
    return hits if hits is None else [
        Hit(what=h.what, numbers=h.numbers, lines=h.lines, log=h.log, severity=WRONG if h.log.family in RDMA else CHECK)
        for h in hits
        if h.log.family not in SOCKETS and h.log.verdict != "intra_node"
    ]  # fmt: skip


@rule(
    RULES, "algorithm-forced", CHECK,
    title=_("The algorithm or protocol of NCCL is forced"), source=NCCL, needs=_ENV,
    remedy=_("Unset it unless the test is about it: NCCL chooses per size, and a value that suits one size costs at "
             "others. Since 2.24 a function that is left without an algorithm fails."),
)  # fmt: skip
def _algorithm_forced(facts: Facts) -> list[Hit] | None:
    return _set(facts, r"NCCL_(?:ALGO|PROTO)=.+", _("{setting} is forced."))


@rule(
    RULES, "local-path-off", CHECK,
    title=_("A path inside the node is switched off"), source=NCCL, needs=_ENV,
    remedy=_("Unset it unless a defect of the platform is worked around; say so in the campaign notes then."),
)  # fmt: skip
def _local_path_off(facts: Facts) -> list[Hit] | None:
    return _set(facts, r"NCCL_(?:P2P|SHM)_DISABLE=1", _("{setting} is set: ranks of one node reach each other slower."))


@rule(
    RULES, "nvls-off", NOTE,
    title=_("NVLink SHARP is switched off"), source=NCCL, needs=_ENV,
    remedy=_("Unset NCCL_NVLS_ENABLE where all-reduce inside an NVSwitch domain is judged against a limit with NVLS."),
)  # fmt: skip
def _nvls_off(facts: Facts) -> list[Hit] | None:
    return _set(facts, r"NCCL_NVLS_ENABLE=0", _("{setting} is set: all-reduce inside a node is bound by rings."))


# --- GPUDirect RDMA and devices ---------------------------------------------------------------------------------------

_COUNTED = re.compile(r"Connections via NET/(.*) (with|without) GPUDirect RDMA: (\d+)\.")


@rule(
    RULES, "no-gpudirect", CHECK,
    title=_("RDMA without GPUDirect RDMA"), source=NCCL_IB, needs=_INFO,
    remedy=_("Load nvidia-peermem or use DMA-BUF, let NCCL_NET_GDR_LEVEL reach the device, disable ACS on bare metal; "
             "some GPUs and instances have none."),
)  # fmt: skip
def _no_gpudirect(facts: Facts) -> list[Hit] | None:
    told = [log for log in _judged(facts) if log.verdict in _OVER_RDMA and log.gdr]
    what = _("No connection over NET/{net} has GPUDirect RDMA: the data takes the way through host memory.")
    return tested(
        told,
        (
            Hit(what=what, numbers={"net": net}, lines=(at,), log=log)
            for log in told
            if log.gdr == "none"
            for net, at in _connections(facts, log)["without"]
        ),
    )


@rule(
    RULES, "mixed-gpudirect", CHECK,
    title=_("GPUDirect RDMA on a part of the connections"), source=NCCL_IB, needs=_INFO,
    remedy=_("Look which communicators go without (rdmalab parse --json lists them): a GPU far from its device, or a "
             "small group that NCCL routes through host memory."),
)  # fmt: skip
def _mixed_gpudirect(facts: Facts) -> list[Hit] | None:
    told = [log for log in _judged(facts) if log.verdict in _OVER_RDMA and log.gdr]
    what = _("Some connections over RDMA have GPUDirect RDMA, others have not.")
    return tested(
        told,
        (
            Hit(
                what=what, lines=tuple(at for words in _connections(facts, log).values() for _net, at in words), log=log
            )
            for log in told
            if log.gdr == "mixed"
        ),
    )


def _connections(facts: Facts, log: Log) -> dict[str, list[tuple[str, Line]]]:
    """(net, first line) of the connections of a log, by ``with`` and ``without``."""
    found: dict[str, list[tuple[str, Line]]] = {"without": [], "with": []}
    for note in facts.noted("net_connections", log):
        if said := _COUNTED.fullmatch(note.text):
            found[said[2]].append((said[1], note.at))
    return found


@rule(
    RULES, "one-of-several-hcas", CHECK,
    title=_("One RDMA device of several in use"), source=NCCL_IB,
    needs=_("NCCL lines of every rank of a node, NCCL 2.20 or newer: NCCL_DEBUG=INFO on all ranks"),
    remedy=_("Let NCCL_IB_HCA name all devices of the compute network, and check that NCCL sees the real PCIe topology "
             "(NCCL_TOPO_FILE in virtual machines)."),
)  # fmt: skip
def _one_of_several_hcas(facts: Facts) -> list[Hit] | None:
    hits = []
    listed = {(note.log.log_id, note.of_host[0]): note for note in facts.noted("rdma_devices")}
    told = [note for note in facts.noted("rdma_devices_used") if _USED.fullmatch(note.text)]
    for note in told:
        host, seen, ranks, names = _USED.fullmatch(note.text).groups()  # type: ignore[union-attr]
        own = listed.get((note.log.log_id, host))
        if own is None or seen != ranks or int(ranks) < 2 or ", " in names:
            continue
        alike = _alike(own.of_host[1], names)
        if len(alike) > 1:
            hits.append(
                Hit(
                    what=_("All {ranks} ranks of a node use {device}, and NCCL found {found} such devices."),
                    numbers={"ranks": int(ranks), "device": names, "found": len(alike)},
                    lines=(own.at, note.at),
                    log=note.log,
                )
            )
    return tested(told, hits)


_USED = re.compile(r"(\S+): (\d+) of (\d+) local ranks, over (.*)")


def _alike(listing: str, name: str) -> list[str]:
    """The devices of a listing that have the link layer of the one named."""
    layers = dict(item.rpartition("/")[::2] for item in listing.split(", "))
    return [device for device, layer in layers.items() if layer == layers.get(name)]


@rule(
    RULES, "fewer-hcas-than-ports", CHECK,
    title=_("Fewer RDMA ports found than the campaign file states"), source=NCCL_IB,
    needs=_("NCCL lines of a fabric whose ports_per_node is stated: NCCL_DEBUG=INFO"),
    remedy=_("Correct ports_per_node, or give NCCL the missing devices (NCCL_IB_HCA, container, link state)."),
)  # fmt: skip
def _fewer_hcas_than_ports(facts: Facts) -> list[Hit] | None:
    told = [n for n in facts.noted("rdma_devices") if n.log.fabric and n.log.fabric.ports_per_node]
    hits = []
    for note in told:
        stated = note.log.fabric.ports_per_node  # type: ignore[union-attr]
        ports = len(re.split(r"\+|, ", note.of_host[1]))
        if stated and ports < stated and note.log.family in RDMA:
            what = _("NCCL found {ports} RDMA ports on a node, the campaign file states {stated}.")
            hits.append(Hit(what=what, numbers={"ports": ports, "stated": stated}, lines=(note.at,), log=note.log))
    return tested(told, hits)


# --- versions -------------------------------------------------------------------------------------------------------


@rule(
    RULES, "versions-differ", CHECK,
    title=_("The sides of the campaign ran different versions of NCCL"), source="NVIDIA/nccl: src/graph/tuning.cc",
    needs=_("NCCL version lines of at least two fabrics of a campaign file"),
    remedy=_("Measure all fabrics with one version: the choice of algorithm and its cost model change between "
             "versions."),
)  # fmt: skip
def _versions_differ(facts: Facts) -> list[Hit] | None:
    first: dict[str, dict[str, tuple[Log, Line]]] = {}
    for log, line, version in _versions(facts):
        if log.fabric:
            first.setdefault(log.fabric.name, {}).setdefault(version, (log, line))
    if len(first) < 2:
        return None
    if len({frozenset(versions) for versions in first.values()}) == 1:
        return []
    sides = "; ".join(f"{fabric}: {', '.join(sorted(versions))}" for fabric, versions in first.items())
    places = [place for versions in first.values() for place in versions.values()]
    return [
        Hit(
            what=_("NCCL versions: {sides}."), numbers={"sides": sides}, lines=tuple(line for _log, line in places),
            log=places[0][0]._replace(fabric=None),
        )
    ]  # fmt: skip


def _versions(facts: Facts) -> Iterator[tuple[Log, Line, str]]:
    for note in facts.noted("library_version"):
        if found := re.match(r"[NR]CCL (\d+\.\d+\.\d+)", note.text):
            yield note.log, note.at, found[1]
    for test in facts.tests:
        if test.library_version and test.line:
            text = f"NCCL {test.library_version}"
            yield test.log, Line(test.log.log_id, test.log.path, test.line, text), test.library_version


def _judged(facts: Facts) -> list[Log]:
    """The logs whose NCCL lines show a transport."""
    return [log for log in facts.logs if log.verdict not in (None, "unknown", "intra_node")]
