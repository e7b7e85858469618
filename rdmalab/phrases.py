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

    yield from _outcomes(_)
    yield from _of_claims(_)
    # whether a dearer fabric pays: rdmalab.price
    yield r"the readings disagree", _("the readings disagree")
    yield r"an interval holds what it costs", _("an interval holds what it costs")
    yield r"too few runs for an interval", _("too few runs for an interval")
    yield (
        r"(?P<name>.*): (?P<n>\d+) B lie outside what (?P<fabric>.*) measured",
        _("{name}: {n} B lie outside what {fabric} measured"),
    )
    yield (
        r"(?P<name>.*): no (?P<operation>\w+) was measured on two fabrics",
        _("{name}: no {operation} was measured on two fabrics"),
    )


def _of_claims(_: Translate) -> Iterator[tuple[str, str]]:
    """What a check of a claim found, and in which reading: rdmalab.claims. What a fact says stays as it was written."""
    number = r"-?[\d.e+-]+"
    yield (
        r"what the text says settles it neither way: a log is needed",
        _("what the text says settles it neither way: a log is needed"),
    )
    yield rf"(?P<a>{number}) against at least (?P<b>[^;]+)", _("{a} against at least {b}")
    yield rf"(?P<a>{number}) against at most (?P<b>[^;,]+)", _("{a} against at most {b}")
    yield rf"(?P<a>{number}) against (?P<b>{number}) to (?P<c>[^;]+)", _("{a} against {b} to {c}")
    yield rf"(?P<a>{number}) against (?P<b>{number}[^;,]*)", _("{a} against {b}")
    yield rf"(?P<reason>{number} against [^;]+); (?P<how>.*)", _("{reason}; reading: {how}")
    yield (
        rf"(?P<n>{number}) times apart from (?P<id>\S+) \((?P<said>.*)\), scope unstated",
        _("{n} times apart from {id} ({said}), scope unstated"),
    )
    between = rf"(?P<low>{number}) to (?P<high>{number}) us"
    yield f"as in public tests, {between}", _("as in public tests, {low} to {high} us")
    yield f"slower than public tests, {between}", _("slower than public tests, {low} to {high} us")
    yield f"faster than public tests, {between}", _("faster than public tests, {low} to {high} us")
    yield rf"the model of NCCL gives (?P<n>{number}) us", _("the model of NCCL gives {n} us")
    yield (
        rf"the model of NCCL gives (?P<n>{number}) us, more than three times as long",
        _("the model of NCCL gives {n} us, more than three times as long"),
    )
    yield rf"above the bound of (?P<n>{number}) (?P<unit>\S+)", _("above the bound of {n} {unit}")
    yield rf"within the bound of (?P<n>{number}) (?P<unit>\S+)", _("within the bound of {n} {unit}")
    yield r"as declared", _("as declared")
    yield r"as declared, (?P<how>.*)", _("as declared, {how}")
    yield r"a rule of the specification", _("a rule of the specification")
    yield r"message, collective or request: not stated", _("message, collective or request: not stated")
    yield r"both directions summed", _("both directions summed")
    yield r"bits for bytes", _("bits for bytes")
    yield r"one message, one-way", _("one message, one way")
    yield r"one collective over all ranks", _("one collective over all ranks")
    yield r"busbw against the line rate of the ports", _("busbw against the line rate of the ports")


def _outcomes(_: Translate) -> Iterator[tuple[str, str]]:
    """Why a limit of a contract has its outcome: rdmalab.acceptance."""
    number = r"-?[\d.e+-]+"
    between = rf"median of (?P<n>\d+) runs?, interval \[(?P<low>{number}), (?P<high>{number})\] (?P<unit>\S+)"
    yield between, _("median of {n} runs, interval [{low}, {high}] {unit}")
    yield f"{between} holds the limit", _("median of {n} runs, interval [{low}, {high}] {unit} holds the limit")
    yield (
        rf"measured (?P<value>{number}) (?P<unit>\S+) is (?P<word>above|below) the physical bound of "
        rf"(?P<bound>{number}) \S+: (?P<reason>.*)",
        _("measured {value} {unit} is beyond the physical bound of {bound} {unit}: {reason}"),
    )
    yield r"(?P<n>\d+) runs?: no interval, (?P<m>\d+) runs give one", _("{n} runs: no interval, {m} runs give one")
    yield r"(?P<n>\d+) runs?, (?P<m>\d+) are asked", _("{n} runs, {m} are asked")
    yield r"(?P<n>\d+) runs?: (?P<q>p\d+) wants (?P<m>\d+)", _("{n} runs: {q} wants {m}")
    yield r"(?P<k>\d+) of (?P<n>\d+) runs? keep it", _("{k} of {n} runs keep it")
    yield r"(?P<q>min|max|p\d+) of (?P<n>\d+) runs?", _("{q} of {n} runs")
    yield (
        r"worst of (?P<m>\d+) pairs: (?P<where>.*), median of (?P<n>\d+) runs?",
        _("worst of {m} pairs: {where}, median of {n} runs"),
    )
    yield (
        r"worst of (?P<m>\d+) nodes: (?P<where>.*), median of (?P<n>\d+) runs?",
        _("worst of {m} nodes: {where}, median of {n} runs"),
    )
    yield (
        rf"(?P<m>\d+) pairs from (?P<low>{number}) to (?P<high>{number}) GB/s",
        _("{m} pairs from {low} to {high} GB/s"),
    )
    yield r"one pair of hosts: there is nothing between pairs", _("one pair of hosts: there is nothing between pairs")
    yield r"no run of a pair of hosts that its log names", _("no run of a pair of hosts that its log names")
    yield (
        rf"(?P<bus>{number}) over (?P<alg>{number}) GB/s implies (?P<m>{number}) ranks, declared are (?P<n>\d+) "
        r"\((?P<run>.*)\)",
        _("{bus} over {alg} GB/s implies {m} ranks, declared are {n} ({run})"),
    )
    yield r"bus and algorithm bandwidth do not say the ranks", _("bus and algorithm bandwidth do not say the ranks")
    yield r"(?P<k>\d+) rows of (?P<n>\d+) runs? agree", _("{k} rows of {n} runs agree")
    yield (
        r"no run of (?P<test>\S+); what is there cannot be quoted: (?P<reason>.*)",
        _("no run of {test}; what is there cannot be quoted: {reason}"),
    )
    yield r"no run of a collective", _("no run of a collective")
    yield r"no run of (?P<test>\S+)", _("no run of {test}")
    yield (
        r"measured from (?P<low>[^,]*) to (?P<high>[^,]*), asked is (?P<asked>.*)",
        _("measured from {low} to {high}, asked is {asked}"),
    )
    yield r"no run has (?P<fields>.*) together", _("no run has {fields} together")
    yield r"the logs print no (?P<metric>\S+)", _("the logs print no {metric}")
    yield (
        r"a drop of (?P<metric>\S+) is held against a golden value: state golden in the limit",
        _("a drop of {metric} is held against a golden value: state golden in the limit"),
    )
    yield (
        r"at least (?P<asked>.*) is above the physical bound of (?P<bound>\S+ \S+): (?P<reason>.*)",
        _("at least {asked} is above the physical bound of {bound}: {reason}"),
    )
    yield (
        r"at most (?P<asked>.*) is below the physical bound of (?P<bound>\S+ \S+): (?P<reason>.*)",
        _("at most {asked} is below the physical bound of {bound}: {reason}"),
    )
    yield r"one traversal of an adapter", _("one traversal of an adapter")
    yield r"no run is above its limit", _("no run is above its limit")


def _parts(_: Translate) -> Iterator[tuple[str, str]]:
    """(pattern of a part, message)."""
    # in what runs are not what a limit is for, and what they prove: rdmalab.acceptance
    yield (
        r"(?P<field>[a-z]\w*) (?P<asked>[^;,]+) is asked, measured is (?P<seen>[^;]+)",
        _("{field} {asked} is asked, measured is {seen}"),
    )
    yield (
        r"(?P<field>[a-z]\w*) (?P<asked>[^;,]+) is asked, that of the fabric is (?P<seen>[^;]+)",
        _("{field} {asked} is asked, that of the fabric is {seen}"),
    )
    yield r"(?P<word>not proved|\w+): (?P<n>\d+) runs?(?=, |$)", _("{word}: {n} runs")
    yield r"not proved", _("not proved")
    yield r"not stated", _("not stated")
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
    # what a limit rests on: rdmalab.limits
    yield r"the least traffic that the operation needs", _("the least traffic that the operation needs")
    yield r"the link rate itself", _("the link rate itself")
