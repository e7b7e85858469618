"""What lower rooms say in English for the store (why a run is left out, how a limit was found), for other languages.

The store keeps one wording, so that a query finds it; only a report is translated, here, phrase by phrase. Names and
numbers stay as they are, and a text that nobody knows stays whole.
"""

import re
from collections.abc import Callable, Iterator

Translate = Callable[[str], str]


def translated(text: str, _: Translate) -> str:
    """A reason, a missing fact or a formula in the language of *_*."""
    for pattern, template in _sentences(_):
        if found := re.fullmatch(pattern, text, re.DOTALL):
            # what is inside a reason has phrases of its own; names have none
            parts = {k: translated(v, _) if k == "reason" else v for k, v in found.groupdict().items()}
            return template.format(**parts)
    for pattern, template in _parts(_):
        text = re.sub(pattern, lambda m, t=template: t.format(**m.groupdict()), text)  # type: ignore[misc]
    return text


def _sentences(_: Translate) -> Iterator[tuple[str, str]]:
    """(pattern of a whole text, message)."""
    # why a run is left out: rdmalab.store, rdmalab.membership
    yield r"number of ranks not known", _("number of ranks not known")
    yield r"one rank: no fabric was measured", _("one rank: no fabric was measured")
    yield r"fell back to sockets: (?P<reason>.*)", _("fell back to sockets: {reason}")
    yield r"claimed by several fabrics: (?P<names>.*)", _("claimed by several fabrics: {names}")
    yield (
        r"the log shows that all ranks share a node, the campaign file says (?P<stated>.*)",
        _("the log shows that all ranks share a node, the campaign file says {stated}"),
    )
    yield (
        r"the log shows (?P<shown>.*), the campaign file says (?P<stated>.*)",
        _("the log shows {shown}, the campaign file says {stated}"),
    )
    # warnings that are none: rdmalab.formats.nccl_info
    yield (
        r"Warnings of a normal tear-down, alone no sign of failure: (?P<n>\d+)\.",
        _("Warnings of a normal tear-down, alone no sign of failure: {n}."),
    )
    yield (
        r"Warnings of an absent feature \(MSCCL\+\+\), alone no sign of failure: (?P<n>\d+)\.",
        _("Warnings of an absent feature (MSCCL++), alone no sign of failure: {n}."),
    )
    # why there is no limit: rdmalab.limits, rdmalab.membership, rdmalab.compare
    yield r"one rank measures no fabric", _("one rank measures no fabric")
    yield r"equal domains", _("equal domains")
    yield r"a bound of (?P<operation>\w+)", _("a bound of {operation}")
    yield r"a bound of (?P<operation>\w+) across domains", _("a bound of {operation} across domains")
    yield r"a latency has no bandwidth limit", _("a latency has no bandwidth limit")
    yield r"which ranks form a communicator", _("which ranks form a communicator")
    yield r"the runs have different limits", _("the runs have different limits")


def _parts(_: Translate) -> Iterator[tuple[str, str]]:
    """(pattern of a part, message)."""
    # why RDMA was not used: rdmalab.transport
    yield r"libibverbs was not found", _("libibverbs was not found")
    yield r"ibv_open_device failed", _("ibv_open_device failed")
    yield r"the network plugin failed to initialize", _("the network plugin failed to initialize")
    yield r"NET/IB found no device", _("NET/IB found no device")
    yield r"no RDMA device used", _("no RDMA device used")
    # how a limit was found: rdmalab.limits
    yield r"B = (?P<rate>[\d.e+]+ GB/s) per GPU and direction", _("B = {rate} per GPU and direction")
    yield r"NVLink SHARP: ", _("NVLink SHARP: ")
    yield r"in-network reduction: ", _("in-network reduction: ")
    yield r"(?P<used>\d+) of (?P<all>\d+) links x ", _("{used} of {all} links x ")
    yield r"PCIe (?P<slot>Gen\d x\d+), ", _("PCIe {slot}, ")
    yield r"(?P<n>\d+) ports x ", _("{n} ports x ")
    yield r"2 directions x ", _("2 directions x ")
    yield r", the ports of the crossing rank", _(", the ports of the crossing rank")
    yield (
        r", above (?P<bound>B \+ R / g = \S+ GB/s \+ \S+ GB/s / \d+) as NVLink SHARP may have reduced in switches",
        _(", above {bound} as NVLink SHARP may have reduced in switches"),
    )
    yield (
        r", above (?P<bound>B \+ R / g = \S+ GB/s \+ \S+ GB/s / \d+) as the network may have reduced in switches",
        _(", above {bound} as the network may have reduced in switches"),
    )
    yield r", MTU not known: the largest", _(", MTU not known: the largest")
    yield r", MTU not known", _(", MTU not known")
    yield r", headers not known", _(", headers not known")
    yield r"; ", _("; ")
