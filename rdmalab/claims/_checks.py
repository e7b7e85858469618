"""The checks C1 to C6 and C8: each looks at one claim and yields what it found."""

import math
import re
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, replace
from functools import cache
from itertools import islice, product
from typing import Any

from rdmalab import limits
from rdmalab.claims._records import (
    BYTES,
    CONFUSED,
    CONSISTENT,
    CONTRADICTED,
    GBYTE_S,
    IMPLAUSIBLE,
    IMPOSSIBLE,
    MISLEADING,
    OPEN,
    PRICES,
    SCALE_UP,
    TIME_US,
    WRONG,
    Call,
    Claim,
    Document,
    Finding,
)
from rdmalab.expression import ExpressionError, Value, evaluate, names
from rdmalab.units import parse_size


class Book:
    """A document as the checks see it: numbers by id, and what must be compared with each other in groups."""

    def __init__(self, document: Document) -> None:
        self.claims = {claim.id: claim for claim in document.claims}
        self.numbers = {claim.id: claim.number for claim in document.claims if claim.number is not None}
        self.times: dict[str | None, list[Claim]] = {}
        self.alike: dict[str, list[Claim]] = {}
        for claim in document.claims:
            if _is_time(claim) and claim.stated("scope") in (None, "message"):
                self.times.setdefault(claim.fabric.get("family"), []).append(claim)
            if claim.metric and claim.low is not None and (claim.system or claim.fabric):
                self.alike.setdefault(_sameness(claim), []).append(claim)
        for family, group in self.times.items():  # who is far from any of them is far from one of these two
            ends = {c.id: _finite_ends(c.scaled(TIME_US) or (0.0, 0.0)) for c in group}
            self.times[family] = [min(group, key=lambda c: ends[c.id][1]), max(group, key=lambda c: ends[c.id][0])]


def _is_time(claim: Claim) -> bool:
    return bool(claim.metric and claim.metric.name in ("latency", "comm_time") and claim.unit in TIME_US)


def check_fact(claim: Claim, book: Book) -> Iterator[Finding]:
    """C1: a number of a data sheet, or the ratio of two, in the declared reading or in a named other one."""
    call = claim.metric
    if claim.low is None or not call or not call.uses("fact"):
        return
    both = 2.0 if claim.stated("direction") == "both" and call.name == "fact" else 1.0
    facts = [_fact(a) for a in (call.args if call.name == "ratio" else (call,)) if isinstance(a, Call)]
    if None in facts or not facts:
        yield _open("C1", f"no packaged fact for {call.name}", "a fact of this name")
        return
    known = [f for f in facts if f]
    truth = known[0].value * both / (known[1].value if len(known) > 1 else 1.0)
    formula = " / ".join(f"{f.value:g}" for f in known)
    factors = {"both directions summed": 2.0, "bits for bytes": 8.0, "binary for decimal": 1.048576}
    links = known[0].links
    if links > 1:
        factors |= {f"all {links} links": float(links), f"all {links} links, both directions summed": 2.0 * links}
    yield _compared(
        "C1", claim, truth, formula, factors if known[0].is_rate else {}, CONTRADICTED, known[0].source, known[0].flag
    )


def check_scope(claim: Claim, book: Book) -> Iterator[Finding]:
    """C1: a latency without scope, far from other latencies that the document gives for the same fabric."""
    mine = claim.scaled(TIME_US)
    if not claim.metric or claim.metric.name != "latency" or claim.stated("scope") or mine is None:
        return
    for other in book.times.get(claim.fabric.get("family"), []):
        theirs = other.scaled(TIME_US)
        if theirs is None or other.id == claim.id:
            continue
        (least, most), (low, high) = _finite_ends(mine), _finite_ends(theirs)
        apart = max(low / most if most else 0.0, least / high if high else 0.0)
        if apart >= 100:
            yield Finding(
                check="C1", formula=f"{max(low, least):g} / {min(high, most):g}", computed=apart, verdict=CONFUSED,
                inputs={claim.id: claim.printed, other.id: other.printed}, source="the document itself",
                reading="message, collective or request: not stated",
                result=f"{apart:.4g} times apart from {other.id} ({other.printed} {other.unit}), scope unstated",
            )  # fmt: skip
            return


def check_request(claim: Claim, book: Book) -> Iterator[Finding]:
    """C1: the time of a whole answer that would hold fewer than ten tokens is the time of a token."""
    base = book.claims.get(claim.baseline) if isinstance(claim.baseline, str) else None
    mine, theirs = claim.scaled(TIME_US), base.scaled(TIME_US) if base else None
    if not base or claim.stated("scope") != "request" or base.stated("scope") != "token" or not mine or not theirs:
        return
    tokens = _finite_ends(mine)[1] / (_finite_ends(theirs)[0] or math.inf)
    yield Finding(
        check="C1", formula=f"{_finite_ends(mine)[1]:g} / {_finite_ends(theirs)[0]:g}", computed=tokens,
        inputs={claim.id: claim.printed, base.id: base.printed}, source="the document itself",
        verdict=CONFUSED if tokens < 10 else None, reading="per token, not per request" if tokens < 10 else "",
        result=f"{tokens:.3g} tokens in an answer, at one pass per token",
    )  # fmt: skip


def check_derive(claim: Claim, book: Book) -> Iterator[Finding]:
    """C2: the number that follows from other numbers; wrong only if it is so for all that those numbers may be."""
    if not claim.derive or claim.low is None:
        return
    truth = evaluate(claim.derive, book.numbers)
    used = {n: book.claims[n].printed for n in names(claim.derive)}
    found = _compared("C2", claim, truth, claim.derive, _factors(claim), WRONG, "the document itself", "D", used)
    if found.verdict != CONSISTENT and _may_hold(claim, book):
        found = replace(
            found, verdict=OPEN, reading="", result=f"{found.result}, open within what its inputs leave open"
        )
    yield found


def _may_hold(claim: Claim, book: Book) -> bool:
    """Whether the claim holds for some values of its inputs, inside their tolerances or beyond a one-sided bound."""
    used = [book.claims[n] for n in names(claim.derive)]
    for values in islice(product(*(_leeway(c) for c in used)), 64):
        try:
            if claim.holds(evaluate(claim.derive, dict(zip((c.id for c in used), values, strict=True)))):
                return True
        except ExpressionError:
            continue
    return False


def _leeway(claim: Claim) -> list[Value]:
    number, slack = claim.number, claim.slack
    if isinstance(number, tuple):
        return [(number[0] - slack, number[1] - slack), (number[0] + slack, number[1] + slack)]
    if number is None:
        return []
    beyond = (1.5, 2.0, 10.0) if claim.high == math.inf else (0.67, 0.5, 0.1) if claim.low == -math.inf else ()
    return [number - slack, number + slack, *(number * f for f in beyond)]


def check_alike(claim: Claim, book: Book) -> Iterator[Finding]:
    """C3: the same metric of the same system and fabric, with numbers that exclude each other."""
    for other in book.alike.get(_sameness(claim), ())[:50] if claim.low is not None else ():
        if other.id != claim.id and (_above(claim, other) or _above(other, claim)):
            yield Finding(
                check="C3", formula=f"{claim.printed} against {other.printed}", verdict=MISLEADING,
                inputs={claim.id: claim.printed, other.id: other.printed}, source="the document itself",
                result=f"{other.id} says {other.printed} {other.unit} of the same thing; a person has to confirm it",
            )  # fmt: skip
            return


def check_collective(claim: Claim, book: Book) -> Iterator[Finding]:
    """C4: the largest busbw that ranks, domains and ports allow; a missing fact is asked for, not guessed."""
    mine = claim.scaled(GBYTE_S)
    if not claim.metric or claim.metric.name not in ("busbw", "algbw") or mine is None:
        return
    plain, reduced = _collective_limit(claim, False), _collective_limit(claim, True)
    if plain.gbyte_s is None or reduced.gbyte_s is None:
        word = _MISSING.get(plain.missing or "", plain.missing or "")
        yield _open("C4", f"no bound: state {word}", word)
        return
    factor = _bus_factor(claim) if claim.metric.name == "algbw" or claim.stated("bandwidth") == "algbw" else 1.0
    value, scale = mine[0] * factor, GBYTE_S[claim.unit]
    if claim.stated("bandwidth") in ("logical", "wire") or not math.isfinite(value):
        yield _open("C4", "bandwidth that is not busbw or algbw has no bound here", "bandwidth")
        return
    yield _bounded(claim, value, claim.slack * scale * factor, plain, reduced, f"busbw, one direction, {claim.unit}")


def check_link(claim: Claim, book: Book) -> Iterator[Finding]:
    """C4: the payload rate of the ports, in the looser direction where none is stated."""
    mine, system, fabric = claim.scaled(GBYTE_S), claim.system, claim.fabric
    if not claim.metric or claim.metric.name != "bw" or mine is None or not math.isfinite(mine[0]):
        return
    if fabric.get("family") in SCALE_UP or "of" in claim.metric.options:
        return
    ports = system.get("nic_ports")
    limit = limits.point_to_point_limit(
        _family(claim), fabric.get("rate_gbps"), fabric.get("mtu"), ports=ports or 1,
        bidirectional=claim.stated("direction") != "one",
    )  # fmt: skip
    if limit.gbyte_s is None:
        word = _MISSING.get(limit.missing or "", limit.missing or "")
        yield _open("C4", f"no bound: state {word}", word)
        return
    found = _bounded(claim, mine[0], claim.slack * GBYTE_S[claim.unit], limit, limit, "payload rate of the ports")
    yield found if ports or not found.verdict else _open("C4", "above one port: state nic_ports", "nic_ports")


def check_slot(claim: Claim, book: Book) -> Iterator[Finding]:
    """C4: the slot that the host has for its NIC; how many slots there are is seldom stated, so it forbids nothing."""
    mine = claim.scaled(GBYTE_S)
    slot = claim.system.get("pcie") or (_extra(claim.system.get("gpu", "")) or {}).get("pcie")
    lanes = re.fullmatch(r"(Gen\d) x(\d+)", slot or "")
    if not claim.metric or claim.metric.name != "bw" or mine is None or not lanes or not math.isfinite(mine[0]):
        return
    cap = limits.link_rate_gbit_s("pcie", lanes[1], int(lanes[2]))
    scale = GBYTE_S[claim.unit]
    if cap is not None and mine[0] - claim.slack * scale > cap / 8 * 1.002:
        yield Finding(
            check="C4", formula=f"{slot}: {cap:.6g} Gb/s", computed=cap / 8 / scale, inputs={"pcie": slot},
            source="torvalds/linux:drivers/pci/pci.h (PCIE_SPEED2MBS_ENC)", verdict=IMPLAUSIBLE,
            reading="one slot per host", result=f"one slot carries {cap:.4g} Gb/s, a second is not stated",
        )  # fmt: skip


def check_floor(claim: Claim, book: Book) -> Iterator[Finding]:
    """C4 and C5: no latency below one traversal of an adapter; a message within what public tests accept."""
    mine, family, scope = claim.scaled(TIME_US), claim.fabric.get("family"), claim.stated("scope")
    if not claim.metric or claim.metric.name != "latency" or mine is None or family in SCALE_UP:
        return
    if "of" in claim.metric.options and scope in (None, "message"):
        return  # of a part: a switch, a length of fibre
    floor = 0.5 * (2 if claim.stated("latency") == "round-trip" else 1)
    if mine[1] + claim.slack * TIME_US[claim.unit] < floor * 0.998:
        if family is None:
            yield _open("C4", f"below {floor:g} us: state family", "family")
            return
        yield Finding(
            check="C4", formula=f"{floor:g} us", computed=floor, verdict=IMPOSSIBLE, flag="V", source=_ADAPTER,
            reading="one way or round trip", result=f"below one traversal of the best adapter, {floor:g} us",
        )  # fmt: skip
    elif scope == "message":
        yield _message_band(claim, mine, floor)
    elif scope == "collective":
        yield from _collective_latency(claim, mine)


def check_power(claim: Claim, book: Book) -> Iterator[Finding]:
    """C4: the supplies of a host carry at least its GPUs at their rated power."""
    if not claim.metric or claim.metric != Call(name="power") or claim.unit != "W" or claim.high is None:
        return
    gpu, count = _extra(claim.system.get("gpu", "")), claim.system.get("gpus_per_domain")
    if not gpu or not count or not gpu["tdp_w"]:
        yield _open("C4", "state gpu and gpus_per_domain", "gpu" if not gpu else "gpus_per_domain")
        return
    need = float(gpu["tdp_w"]) * count * claim.system.get("domains", 1)
    short = claim.high + claim.slack < need * 0.998
    yield Finding(
        check="C4", formula=f"{count * claim.system.get('domains', 1)} * {gpu['tdp_w']}", computed=need,
        inputs={"gpu": gpu["name"], "rated_w": gpu["tdp_w"]}, source=gpu["source"], flag=gpu["flag"],
        verdict=(IMPOSSIBLE if gpu["flag"] in ("V", "D") else IMPLAUSIBLE) if short else CONSISTENT,
        reading="sum of all supplies, GPUs at rated power", result=f"the GPUs alone are rated {need:g} W",
    )  # fmt: skip


def check_band(claim: Claim, book: Book) -> Iterator[Finding]:
    """C5: the share of the ports that public runs of large messages reach."""
    mine, rate, ports = claim.scaled(GBYTE_S), claim.fabric.get("rate_gbps"), claim.system.get("nic_ports")
    size = claim.metric.options.get("size_min", "") if claim.metric else ""
    if not claim.metric or claim.metric.name != "busbw" or mine is None or not (rate and ports and size):
        return
    if claim.system.get("domains", 1) < 2 or _size(size) < 2**30 or not math.isfinite(mine[1]):
        return
    if claim.metric.options.get("op") not in _RINGS or claim.fabric.get("family") in ("tcp", "iwarp", *SCALE_UP):
        return  # the public runs are of these operations over RDMA
    line = rate * ports / 8
    share = mine[1] / line
    yield Finding(
        check="C5", formula=f"{mine[1]:g} / {line:g} * 100", computed=share * 100, flag="V", source=_PUBLIC_RUNS,
        inputs={"line_gbyte_s": line}, verdict=MISLEADING if share < 0.5 else CONSISTENT,
        reading="busbw against the line rate of the ports",
        result=f"{share * 100:.1f} % of the line rate, "
        + ("below the 50 to 97 % of public runs: a person has to confirm it" if share < 0.5 else "as in public runs"),
    )  # fmt: skip


def check_domain_band(claim: Claim, book: Book) -> Iterator[Finding]:
    """C5: inside one domain, the share of the rate of a GPU that public runs reach."""
    mine, up = claim.scaled(GBYTE_S), limits.scale_up(claim.system.get("gpu", ""))
    call = claim.metric
    if not call or call.name != "busbw" or call.options.get("op") != "all_reduce" or mine is None or up is None:
        return
    if claim.system.get("domains") != 1 or not math.isfinite(mine[0]):
        return
    most = 1.2 if up.nvls_possible else 0.9  # public runs: 0.93 to 1.07 with NVLS, 0.76 to 0.82 without
    share = mine[0] / up.gbyte_s
    yield Finding(
        check="C5", formula=f"{mine[0]:g} / {up.gbyte_s:g} * 100", computed=share * 100, flag="V",
        source=_PUBLIC_RUNS,
        verdict=IMPLAUSIBLE if share > most else None, reading="busbw against the scale-up rate of a GPU",
        result=f"{share * 100:.1f} % of {up.gbyte_s:g} GB/s" + (", above public runs" if share > most else ""),
    )  # fmt: skip


def check_speedup(claim: Claim, book: Book) -> Iterator[Finding]:
    """C5: how much RDMA gained over sockets on the same nodes in public runs, whatever the size."""
    call, other = claim.metric, claim.baseline
    against = book.claims[other].fabric if isinstance(other, str) else (other or {}).get("fabric", {})
    if not call or call.name != "ratio" or claim.low is None or against.get("family") != "tcp" or claim.unit != "x":
        return
    if call.uses("latency", "busbw", "algbw") and claim.low > 22.6 * 1.03:
        yield Finding(
            check="C5", formula="122.57 / 5.43", computed=122.57 / 5.43, verdict=IMPLAUSIBLE, flag="V",
            source="eth-cscs/cscs-docs:docs/software/communication/nccl.md",
            result="public runs of the same nodes gain 2.9 to 22.6 times over sockets",
        )  # fmt: skip


def check_rule(claim: Claim, book: Book) -> Iterator[Finding]:
    """C6: an asserted fact against the packaged facts of specifications and of NCCL and RDMA."""
    if claim.asserts is None:
        return
    name, sign, word = claim.asserts
    row = _facts().get(name)
    if row is None:
        return
    right = _asserted(row["value"], sign, word)
    yield Finding(
        check="C6", formula=f"{name} {sign} {word}", inputs={name: row["value"]}, source=row["source"],
        flag=row["flag"], verdict=CONSISTENT if right else CONTRADICTED if row["flag"] in ("V", "D") else IMPLAUSIBLE,
        result=row["says"], reading="a rule of the specification",
    )  # fmt: skip


def check_price(claim: Claim, book: Book) -> Iterator[Finding]:
    """C8: a quote per GPU hour, 730 hours a month; no market price is known here, so it settles nothing."""
    currency, _, per = claim.unit.partition("/")
    if not claim.metric or claim.metric.name != "price" or claim.unit not in PRICES or claim.low is None:
        return
    gpus = 1 if per.startswith("GPU") else claim.system.get("gpus_per_domain")
    if gpus is None:
        yield Finding(
            check="C8", formula="", result="no price per GPU hour: state gpus_per_domain", missing="gpus_per_domain"
        )
        return
    hours = 1 if per == "GPU-hour" else 730
    least, most = _finite_ends((claim.low, claim.high or claim.low))
    yield Finding(
        check="C8", formula=f"{least:g} / {gpus} / {hours}", computed=least / gpus / hours,
        source="the document itself",
        result=f"{least / gpus / hours:.4g} to {most / gpus / hours:.4g} {currency} per GPU hour",
    )  # fmt: skip


CHECKS: tuple[Callable[[Claim, Book], Iterator[Finding]], ...] = (
    check_fact, check_scope, check_request, check_derive, check_alike, check_collective, check_link, check_slot,
    check_floor, check_power, check_band, check_domain_band, check_speedup, check_rule, check_price,
)  # fmt: skip


# Facts and comparisons --------------------------------------------------------------------------------------------

_ADAPTER = "stas00/ml-engineering:network/README.md (0.5 us, the best adapter published)"
_RINGS = ("all_reduce", "all_gather", "reduce_scatter")
_PUBLIC_RUNS = "stas00/ml-engineering:network/README.md; aws-samples/awsome-distributed-training (nccl-tests)"
_ACCEPTED = "Mellanox/ngc_multinode_perf:common.sh (accepted: 2.5 us write and send)"
# Message latency in us, one way, that public tests of a fabric reach or accept.
_MESSAGE_US = {
    None: (0.5, 2.5, _ACCEPTED), "infiniband": (0.5, 2.5, _ACCEPTED), "roce2": (0.5, 2.5, _ACCEPTED),
    "tcp": (1.86, 50.0, "Mellanox/sockperf pull 73; microsoft/lagscope pull 49"),
    "iwarp": (1.5, 4.5, "page: chelsio.com RDMA iWARP"),
}  # fmt: skip
_MISSING = {
    "link_rate_gbit_s": "rate_gbps", "ports_per_node": "nic_ports", "gpus_per_node": "domains",
    "scale_up_gbyte_s": "gpu", "ranks": "gpus_per_domain", "operation": "op", "mtu_bytes": "mtu",
}  # fmt: skip
_COLUMNS = {
    "scaleup_per_direction_GBps": ("scale_up_gbyte_s", 1.0), "scaleup_total_GBps": ("scale_up_gbyte_s", 2.0),
    "data_GBps_per_direction": ("data_gbyte_s", 1.0), "data_Gbps": ("data_gbit_s", 1.0),
}  # fmt: skip


@dataclass(frozen=True, kw_only=True)
class _Fact:
    value: float
    source: str
    flag: str
    links: int = 1
    is_rate: bool = True


def _fact(call: Call) -> _Fact | None:
    """A number of a packaged table: ``fact(gpus, NAME, COLUMN)``, ``fact(links, FAMILY/NAME/LANES, COLUMN)``."""
    words = [a for a in call.args if isinstance(a, str)]
    if len(words) == 2 and words[0] == "facts" and (row := _facts().get(words[1])):
        known = _number(row["value"])
        return None if known is None else _Fact(value=known, source=row["source"], flag=row["flag"], is_rate=False)
    if len(words) != 3 or words[0] not in ("gpus", "links"):
        return None
    found = _gpu(words[1]) if words[0] == "gpus" else _link(words[1])
    column, factor = _COLUMNS.get(words[2], (words[2], 1.0))
    links = int(found["lanes"]) if found and words[0] == "gpus" else 1
    if column == "per_link_gbyte_s":
        column, factor = "scale_up_gbyte_s", 1.0 / links
    else:
        links = 1
    value = _number(found.get(column, "")) if found else None
    if not found or not value:
        return None
    return _Fact(value=value * factor, source=found["source"], flag=found["confidence"][:1], links=links)


def _number(text: str) -> float | None:
    try:
        return float(text)
    except ValueError:
        return None


def _gpu(name: str) -> dict[str, str] | None:
    rows = limits.table("gpus")
    return next((r for r in rows if name == r["gpu"] or re.fullmatch(r["printed_as"], name, re.IGNORECASE)), None)


def _link(key: str) -> dict[str, str] | None:
    return next((r for r in limits.table("links") if key == f"{r['family']}/{r['name']}/{r['lanes']}"), None)


@cache
def _facts() -> dict[str, dict[str, str]]:
    return {row["name"]: row for row in limits.table("facts")}


def _extra(gpu: str) -> dict[str, str] | None:
    """Rated power and slot of a GPU, kept as facts of their own."""
    row = _gpu(gpu)
    key = re.sub(r"[^a-z0-9]+", "_", row["gpu"].lower()) if row else ""
    power, slot = _facts().get(f"{key}.tdp_w"), _facts().get(f"{key}.pcie")
    if not row or not (power or slot):
        return None
    return {
        "name": row["gpu"], "tdp_w": power["value"] if power else "", "pcie": slot["value"] if slot else "",
        "source": (power or slot or {})["source"], "flag": (power or slot or {})["flag"],
    }  # fmt: skip


def _compared(
    check: str, claim: Claim, truth: float, formula: str, factors: Mapping[str, float], worst: str, source: str,
    flag: str, inputs: Mapping[str, Any] | None = None,
) -> Finding:  # fmt: skip
    """The claim holds as declared, or in one other reading, which is named, or not at all."""
    reading = "" if claim.holds(truth) else next(
        (name for name, f in factors.items() if claim.holds(truth * f, 0.03) or claim.holds(truth / f, 0.03)), ""
    )  # fmt: skip
    verdict = CONSISTENT if claim.holds(truth) else CONFUSED if reading else worst
    if verdict == CONTRADICTED and flag not in ("V", "D"):
        verdict = IMPLAUSIBLE
    said = f"{truth:.6g} against {claim.printed} {claim.unit}".strip()
    return Finding(
        check=check, formula=formula, computed=truth, inputs=inputs or {}, source=source, flag=flag, verdict=verdict,
        reading=reading, result=f"{said}; {reading}" if reading else said,
    )  # fmt: skip


def _factors(claim: Claim) -> dict[str, float]:
    """The other readings of a derived number: only those that its metric and unit leave open."""
    call = claim.metric
    if call and call.uses("price") and isinstance(claim.baseline, Mapping):
        ours, theirs = claim.system.get("gpus_per_domain"), claim.baseline.get("system", {}).get("gpus_per_domain")
        return {"per GPU, not per node": theirs / ours} if ours and theirs and ours != theirs else {}
    if claim.unit in TIME_US and call and call.uses("latency"):
        way = {} if claim.stated("latency") else {"round trip": 2.0}
        return way | {"a factor of 1000 in the unit": 1000.0}
    if claim.unit in GBYTE_S:
        ways = {} if claim.stated("direction") else {"both directions summed": 2.0}
        return ways | {"bits for bytes": 8.0, "binary for decimal": 1.048576, "a factor of 1000 in the unit": 1000.0}
    return {"binary for decimal": 1.048576} if claim.unit in BYTES else {}


def _bounded(
    claim: Claim, value: float, slack: float, plain: limits.Limit, reduced: limits.Limit, reading: str
) -> Finding:
    """Above every bound: impossible, unless it is the line rate in bits; above the one without SHARP: implausible."""
    least, most = sorted((plain.gbyte_s or 0.0, reduced.gbyte_s or 0.0))
    gpu, low = _gpu(claim.system.get("gpu", "")), value - slack
    certain = gpu is None or gpu["confidence"] in ("V", "D")
    line = claim.fabric.get("rate_gbps", 0) / 8 * claim.system.get("nic_ports", 1)
    verdict = (IMPOSSIBLE if certain else IMPLAUSIBLE) if low > most * 1.002 else IMPLAUSIBLE
    if low <= least * 1.002:
        verdict = ""
    elif line and abs(value / 8 / line - 1) <= 0.03:
        verdict, reading = CONFUSED, "bits for bytes"
    used, scale = (reduced if low > most * 1.002 else plain), GBYTE_S[claim.unit]
    bound = (used.gbyte_s or 0.0) / scale
    return Finding(
        check="C4", formula=used.formula, computed=bound, inputs=used.inputs, source=used.source,
        flag="V" if certain else "R", reading=reading, verdict=verdict or None,
        result=f"{'above' if verdict else 'within'} the bound of {bound:.6g} {claim.unit}",
    )  # fmt: skip


def _collective_limit(claim: Claim, in_network: bool) -> limits.Limit:
    system, fabric, call = claim.system, claim.fabric, claim.metric
    k, g, up = system.get("domains"), system.get("gpus_per_domain"), limits.scale_up(system.get("gpu", ""))
    if k is None:
        return limits.Limit(gbyte_s=None, formula="", missing="domains")
    return limits.collective_limit(
        call.options.get("op") if call else None, ranks=k * g if g else None, ranks_per_domain=g, domains=k,
        port_gbit_s=fabric.get("rate_gbps"), ports_per_domain=system.get("nic_ports"), mtu_bytes=fabric.get("mtu"),
        family=_family(claim), scale_up_gbyte_s=up.gbyte_s if up else None,
        algorithm=call.options.get("algorithm") if call else None,
        nvls_possible=up.nvls_possible if up else True, in_network=in_network,
    )  # fmt: skip


def _family(claim: Claim) -> str | None:
    family: str | None = claim.fabric.get("family")
    return "roce" if family == "roce2" else family


def _bus_factor(claim: Claim) -> float:
    n = claim.system.get("domains", 1) * claim.system.get("gpus_per_domain", 1)
    op = claim.metric.options.get("op") if claim.metric else None
    passes = {"all_reduce": 2, "all_gather": 1, "reduce_scatter": 1, "alltoall": 1, "gather": 1, "scatter": 1}
    return passes[op] * (n - 1) / n if op in passes else 1.0


def _message_band(claim: Claim, mine: tuple[float, float], floor: float) -> Finding:
    """A message latency against public tests: faster is implausible, slower stays open."""
    low, high, source = _MESSAGE_US.get(claim.fabric.get("family"), _MESSAGE_US[None])
    low, high = max(low, floor), high * (floor / 0.5)
    least, most = mine
    verdict = IMPLAUSIBLE if most < low * 0.98 else OPEN if least > high * 1.02 else CONSISTENT
    said = {IMPLAUSIBLE: "faster than", OPEN: "slower than", CONSISTENT: "as in"}[verdict]
    return Finding(
        check="C5", formula=f"{low:g} to {high:g} us", inputs={claim.id: claim.printed}, source=source, flag="V",
        verdict=verdict, reading="one message, " + (claim.stated("latency") or "one-way"),
        result=f"{said} public tests, {low:g} to {high:g} us",
    )  # fmt: skip


def _collective_latency(claim: Claim, mine: tuple[float, float]) -> Iterator[Finding]:
    """A whole collective against the model of NCCL (Tree, LL): more than three times faster is implausible."""
    k, g = claim.system.get("domains"), claim.system.get("gpus_per_domain")
    if not k or not g:
        yield _open("C5", "no model: state domains and gpus_per_domain", "domains" if not k else "gpus_per_domain")
        return
    formula = f"6.8 + 2 * (({g} - 1) * 0.6 + floor(log2({k})) * 5.0)"
    model = evaluate(formula)
    fast = mine[1] < model / 3
    yield Finding(
        check="C5", formula=formula, computed=model, source="NVIDIA/nccl:src/graph/tuning.cc", flag="V",
        verdict=IMPLAUSIBLE if fast else None, reading="one collective over all ranks",
        result=f"the model of NCCL gives {model:.4g} us" + (", more than three times as long" if fast else ""),
    )  # fmt: skip


def _asserted(truth: str, sign: str, word: str) -> bool:
    left, right = _number(truth), _number(word)
    if left is None or right is None:
        return (truth.lower() == word.lower()) == (sign in ("==", "<=", ">="))
    return {
        "==": left == right, "!=": left != right, "<": left < right, "<=": left <= right, ">": left > right,
        ">=": left >= right,
    }[sign]  # fmt: skip


def _open(check: str, result: str, missing: str) -> Finding:
    return Finding(check=check, formula="", result=result, verdict=OPEN, missing=missing)


def _finite_ends(ends: tuple[float, float]) -> tuple[float, float]:
    """Both ends; the one bound that is stated stands for both."""
    low, high = ends
    return (low if math.isfinite(low) else high, high if math.isfinite(high) else low)


def _above(one: Claim, other: Claim) -> bool:
    return (one.low or 0.0) - one.slack > (other.high or 0.0) + other.slack


def _sameness(claim: Claim) -> str:
    """What two claims must share to speak of the same thing."""
    tables = (sorted(t.items()) for t in (claim.system, claim.fabric, claim.convention))
    return repr((claim.metric, *tables, claim.unit, claim.baseline))


def _size(text: str) -> int:
    try:
        return parse_size(text)
    except ValueError:
        return 0
