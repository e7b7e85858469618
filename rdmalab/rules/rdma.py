"""Rules on the RDMA port: its MTU and its GIDs."""

import re
from collections.abc import Iterator

from rdmalab.language import marked as _
from rdmalab.rules._base import CHECK, NCCL, NOTE, WRONG, Facts, Hit, Line, Log, Read, Rule, Test, rule, tested

RULES: list[Rule] = []
_VERBS = ("infiniband", "roce", "softroce")  # iWARP and EFA have packets of their own
_PERFTEST = "linux-rdma/perftest: src/perftest_parameters.c (Mtu); linux-rdma/rdma-core: libibverbs, enum ibv_mtu"


@rule(
    RULES, "mtu-below-declared", WRONG,
    title=_("RDMA MTU below that of the path"), source=_PERFTEST,
    needs=_("perftest logs, or NCCL lines with NCCL_DEBUG_SUBSYS=NET, of a fabric whose mtu_bytes is stated"),
    remedy=_("Raise the MTU of the interface (RoCE: 4200 or more gives 4096) or drop --mtu; on the switches too."),
)  # fmt: skip
def _mtu_below_declared(facts: Facts) -> list[Hit] | None:
    what = _("The test ran at an RDMA MTU of {mtu} bytes, the campaign file states {path} for this fabric.")
    told = [(log, mtu, line) for log, mtu, line in _mtus(facts) if log.family in _VERBS and _declared(log)]
    return tested(
        told,
        (
            Hit(what=what, numbers={"mtu": mtu, "path": _declared(log)}, lines=(line,), log=log)
            for log, mtu, line in told
            if mtu < _declared(log)
        ),
    )


def _mtus(facts: Facts) -> Iterator[tuple[Log, int, Line]]:
    for test in facts.tests:
        if test.mtu_bytes and test.line:
            yield test.log, test.mtu_bytes, test.at("Mtu", test.mtu_bytes)
    for note in facts.noted("path_mtu"):
        yield note.log, int(note.of_host[1]), note.at


def _declared(log: Log) -> int:
    return (log.fabric.mtu_bytes if log.fabric else None) or 0


@rule(
    RULES, "mtu-below-others", CHECK,
    title=_("RDMA MTU below that of other tests over the same kind of port"), source=_PERFTEST,
    needs=_("perftest logs of both ends, or several of one fabric of a campaign file"),
    remedy=_("State mtu_bytes in the campaign file; raise the MTU of the narrow end, or drop --mtu."),
)  # fmt: skip
def _mtu_below_others(facts: Facts) -> list[Hit] | None:
    groups: dict[str, list[Test]] = {}
    for test in facts.tests:
        if test.mtu_bytes and test.line and not _declared(test.log) and (key := _same_port(test)):
            groups.setdefault(key, []).append(test)
    several = [tests for tests in groups.values() if len(tests) > 1]
    what = _("The test over {device} ran at an RDMA MTU of {mtu} bytes, others at {path}.")
    hits = []
    for tests in several:
        widest = max(tests, key=lambda t: t.mtu_bytes or 0)
        hits += [
            Hit(
                what=what,
                numbers={"mtu": test.mtu_bytes, "path": widest.mtu_bytes, "device": test.device or "?"},
                lines=(test.at("Mtu", test.mtu_bytes), widest.at("Mtu", widest.mtu_bytes)),
                log=test.log,
            )
            for test in tests
            if (test.mtu_bytes or 0) < (widest.mtu_bytes or 0)
        ]
    return tested(several, hits)


def _same_port(test: Test) -> str | None:
    """Tests of one declared fabric over devices of one name; of others, only the two ends of one test."""
    if test.log.fabric:
        return f"{test.log.fabric.name} {test.device}" if test.log.family in _VERBS else None
    return test.pair


@rule(
    RULES, "active-mtu-below-max", CHECK,
    title=_("A port in use has a small active MTU"), source=_PERFTEST,
    needs=_("ibv_devinfo of a port that the tests of a campaign file use"),
    remedy=_("Raise the MTU of the interface and of the switch: an interface MTU of 1500 leaves RDMA with 1024."),
)  # fmt: skip
def _active_mtu(facts: Facts) -> list[Hit] | None:
    """Only up to 1024 bytes, and only of ports in use: a management port may stay as it is."""
    used = _devices_in_use(facts) if facts.fabrics else set()
    ports: dict[tuple[str, str], dict[str, Read]] = {}
    for read in facts.readings:
        if read.metric in ("active_mtu", "max_mtu") and (read.device or "").partition("/")[0] in used:
            ports.setdefault((read.log.log_id, read.device or ""), {}).setdefault(read.metric, read)
    told = [(port["active_mtu"], port["max_mtu"]) for port in ports.values() if len(port) == 2]
    what = _("The port {device} runs at an active MTU of {mtu} bytes, it can do {most}.")
    return tested(
        told,
        (
            Hit(
                what=what,
                numbers={"device": active.device, "mtu": int(active.value), "most": int(most.value)},
                lines=(most.at, active.at),
                log=active.log,
            )
            for active, most in told
            if active.value <= min(1024, most.value - 1)
        ),
    )


def _devices_in_use(facts: Facts) -> set[str]:
    """The names of the devices that tests or connections of NCCL name."""
    names = {test.device for test in facts.tests if test.device}
    for note in facts.noted("rdma_devices_used"):
        names |= set(re.split(r"\+|, ", note.text.partition(" over ")[2]))
    return names


# --- GIDs -----------------------------------------------------------------------------------------------------------


@rule(
    RULES, "roce-v1", WRONG,
    title=_("RoCE v1 instead of RoCE v2"), source=f"{NCCL} (NCCL_IB_ROCE_VERSION_NUM); sysfs gid_attrs/types",
    needs=_("the GID index of a test (perftest, NCCL_DEBUG_SUBSYS=NET) and the table of GIDs beside it: show_gids, or "
            "grep over /sys/class/infiniband/*/ports/*/gid_attrs/types/*"),
    remedy=_("Choose a GID index whose type is RoCE v2, or leave the choice to NCCL 2.21 and newer."),
)  # fmt: skip
def _roce_v1(facts: Facts) -> list[Hit] | None:
    versions = [n for n in facts.noted("nccl_setting") if n.text.startswith("NCCL_IB_ROCE_VERSION_NUM=")]
    forced = _("{setting} is set: RoCE v1 is not routed.")
    hits = [
        Hit(what=forced, numbers={"setting": note.text}, lines=(note.at,), log=note.log)
        for note in versions
        if note.text.endswith("=1")
    ]
    table: dict[tuple[str, int], dict[int, Line]] = {}  # (device, index) -> version -> where
    for read in facts.readings:
        if read.metric == "roce_version" and (found := _GID.fullmatch(read.device or "")):
            table.setdefault((found[1], int(found[2])), {}).setdefault(int(read.value), read.at)
    told = [test for test in facts.tests if facts.fabrics and (test.device, test.gid_index) in table]
    for test in told:
        versions_there = table[test.device or "", test.gid_index or 0]
        if list(versions_there) == [1]:
            what = _("The test used GID index {index} of {device}, which is RoCE v1.")
            numbers = {"index": test.gid_index, "device": test.device}
            lines = (test.at("GID index", test.gid_index), versions_there[1])
            hits.append(Hit(what=what, numbers=numbers, lines=lines, log=test.log))
    return tested([*versions, *told], hits)


_GID = re.compile(r"(\S+)/\d+/gids/(\d+)")


@rule(
    RULES, "gid-index-pinned", NOTE,
    title=_("The GID index is pinned"), source=NCCL,
    needs=_("NCCL lines with the version and the settings: NCCL_DEBUG=INFO NCCL_DEBUG_SUBSYS=INIT,ENV,NET"),
    remedy=_("Unset NCCL_IB_GID_INDEX: from 2.21 NCCL finds the RoCE v2 index itself, and a fixed one breaks when "
             "addresses change."),
)  # fmt: skip
def _gid_index_pinned(facts: Facts) -> list[Hit] | None:
    versions: dict[str, tuple[int, int]] = {}
    for note in facts.noted("library_version"):
        if found := re.match(r"NCCL (\d+)\.(\d+)", note.text):
            versions[note.log.log_id] = int(found[1]), int(found[2])
    what = _("{setting} is set, which NCCL {version} does not need.")
    return tested(
        versions,
        (
            Hit(what=what, numbers={"setting": note.text, "version": "{}.{}".format(*version)}, lines=(note.at,),
                log=note.log)
            for note in facts.noted("nccl_setting")
            if note.text.startswith("NCCL_IB_GID_INDEX=") and not note.text.endswith("=-1")
            if (version := versions.get(note.log.log_id, (0, 0))) >= (2, 21)
        ),
    )  # fmt: skip
