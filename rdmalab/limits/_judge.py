"""Three answers to a bandwidth: possible, impossible, or open for want of a fact that is named.

What the facts leave out is varied over all that they allow. A number of ports or a rate of a port that nobody states
has no end, so nothing is impossible without it.
"""

import math
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from itertools import product
from typing import Any

from rdmalab.errors import did_you_mean
from rdmalab.limits._bounds import RDMA_MTUS, Limit, collective_limit, point_to_point_limit, scale_up
from rdmalab.limits._tables import RECALLED, accelerator, nic, slot_rate, table

POSSIBLE, IMPOSSIBLE, IMPLAUSIBLE, OPEN = "possible", "impossible", "implausible", "open"
TOLERANCE = 1.002  # clocks and the rounding of printed numbers reach no further
FACTS = (
    "ranks", "domains", "gpus_per_domain", "ports_per_domain", "link_rate_gbit_s", "mtu_bytes", "family", "gpu_model",
    "scale_up_gbyte_s", "algorithm", "in_network", "nvls", "pcie", "nic", "ports", "bidirectional",
)  # fmt: skip
_PAIRS = ("write", "read", "send", "atomic", "bandwidth")  # between two hosts
_OPERATIONS = ("all_reduce", "all_gather", "reduce_scatter", "alltoall", "broadcast", "reduce", "sendrecv")
_MOST_RANKS = 8192  # beyond, (n - 1) / n is 1 within the tolerance
_SLOWEST_GBIT_S = 10.0


@dataclass(frozen=True, kw_only=True)
class Bounds:
    """The least and the greatest bound over all values of the facts that are missing; ``missing`` names those."""

    low: Limit
    high: Limit
    missing: tuple[str, ...] = ()
    choices: tuple[tuple[dict[str, Any], Limit], ...] = ()


@dataclass(frozen=True, kw_only=True)
class Judged:
    """
    A verdict: ``possible``, ``impossible``, ``implausible`` (only a recalled fact forbids it) or ``open``.

    ``missing`` names the facts that would settle it, the first one first; bounds are in GB/s, ``bound_high`` may be
    infinite.
    """

    verdict: str
    bound_low: float | None
    bound_high: float | None
    missing: tuple[str, ...]
    formula: str
    source: str
    flag: str


def judge(operation: str | None, gbyte_s: float, facts: Mapping[str, Any], *, slack_gbyte_s: float = 0.0) -> Judged:
    """
    Whether a busbw (of a collective) or payload rate (``write``, ``read``, ``send``, ``bandwidth``) can be.

    Args:
        operation: None where it is not known: all are tried.
        gbyte_s: What is said to have been measured, in 10^9 byte/s.
        facts: Any of :data:`FACTS`, None where not known.
        slack_gbyte_s: Rounding of the number, half a unit of its last digit.

    Raises:
        ValueError: A fact is unknown or no positive number.
    """
    found = bounds(operation, facts)
    if found is None:
        return Judged(
            verdict=OPEN, bound_low=None, bound_high=None, missing=_refusals(operation, facts), formula="", source="",
            flag="",
        )  # fmt: skip
    low, high = found.low.gbyte_s or 0.0, found.high.gbyte_s or 0.0
    least = gbyte_s - slack_gbyte_s
    if least > high * TOLERANCE:
        verdict, told = (IMPLAUSIBLE if found.high.flag == RECALLED else IMPOSSIBLE), found.high
    elif least <= low * TOLERANCE:
        verdict, told = POSSIBLE, found.low
    else:
        verdict, told = OPEN, found.low
    missing = _deciding(found, least) if verdict == OPEN else ()
    return Judged(
        verdict=verdict, bound_low=low, bound_high=high, missing=missing, formula=told.formula, source=told.source,
        flag=told.flag,
    )  # fmt: skip


def bounds(operation: str | None, facts: Mapping[str, Any]) -> Bounds | None:
    """
    The lowest and the highest bound over the allowed values of what *facts* leave out; None where there is none at all.

    Raises:
        ValueError: A fact is unknown or no positive number.
    """
    for name in facts:
        if name not in FACTS:
            raise ValueError(f"unknown fact '{name}'.{did_you_mean(name, FACTS)}")
    known = {k: v for k, v in facts.items() if v is not None}
    free = dict(_free(operation, known))
    choices = []
    for values in product(*free.values()):
        choice = dict(zip(free, values, strict=True))
        limit = _limit(operation, known | choice)
        if limit.gbyte_s is not None:
            choices.append((choice, limit))
    if not choices:
        return None
    low = min((x for _, x in choices), key=lambda x: x.gbyte_s or 0.0)
    high = max((x for _, x in choices), key=lambda x: x.gbyte_s or 0.0)
    return Bounds(low=low, high=high, missing=tuple(k for k, v in free.items() if len(v) > 1), choices=tuple(choices))


def _free(operation: str | None, known: dict[str, Any]) -> Iterator[tuple[str, tuple[Any, ...]]]:
    """(fact, values that it may have) of what is not known; the ends are enough where the bound only grows with it."""
    pair = operation in _PAIRS
    card = nic(known.get("nic", ""))
    if operation is None:
        yield "operation", _OPERATIONS
    if pair:
        yield from _unless(known, "bidirectional", (False, True))
        yield from _unless(known, "ports", (1, math.inf))
    else:
        yield from _shapes(known)
        yield from _scale_up(known)
        yield from _switches(operation, known)
        if known.get("domains") == 1:  # then no port carries anything
            return
        yield from _unless(known, "ports_per_domain", (1, math.inf))
    most = (float(card.port_gbit_s.value),) if card else (math.inf,)
    yield from _unless(known, "link_rate_gbit_s", (_SLOWEST_GBIT_S, *most))
    family = known.get("family")
    if family is None:  # the one with most headers, and the rate of the line, which none exceeds
        family = "roce" if known.get("mtu_bytes", RDMA_MTUS[-1]) in RDMA_MTUS else "tcp"
        yield "family", (family, None)
    if "mtu_bytes" not in known and (sizes := _mtus(family)):
        yield "mtu_bytes", sizes
    yield from _slots(known)


def _unless(known: dict[str, Any], name: str, values: tuple[Any, ...]) -> Iterator[tuple[str, tuple[Any, ...]]]:
    if name not in known:
        yield name, values


def _shapes(known: dict[str, Any]) -> Iterator[tuple[str, tuple[Any, ...]]]:
    """Ranks, domains and ranks of a domain: two of them give the third."""
    n, k, g = (known.get(x) for x in ("ranks", "domains", "gpus_per_domain"))
    if n is None and (k is None or g is None):
        yield "ranks", tuple(sorted({(k or 1) * (g or 1) * x for x in (1, 2, 8, _MOST_RANKS)} - {1}))
    if k is None and (n is None or g is None):
        yield "domains", tuple(d for d in range(1, n + 1) if n % d == 0) if n else (1, 2, _MOST_RANKS)


def _scale_up(known: dict[str, Any]) -> Iterator[tuple[str, tuple[Any, ...]]]:
    if "scale_up_gbyte_s" in known or scale_up(known.get("gpu_model", "")):
        return
    rates = sorted(float(r["scale_up_gbyte_s"]) for r in table("gpus"))
    yield "gpu_model", (rates[0], math.inf)


def _switches(operation: str | None, known: dict[str, Any]) -> Iterator[tuple[str, tuple[Any, ...]]]:
    """Whether switches reduce, inside a domain or in the network: an algorithm that is named decides both."""
    if operation not in (None, "all_reduce") or "algorithm" in known:
        return
    up = scale_up(known.get("gpu_model", ""))
    if "nvls" not in known and (up is None or up.nvls_possible):
        yield "nvls", (False, True)
    if known.get("domains") != 1:
        yield from _unless(known, "in_network", (False, True))


def _mtus(family: str | None) -> tuple[int | None, ...]:
    """MTUs of a family from the least payload to the most; None, where a family is not stated, is the line rate."""
    if family in ("infiniband", "roce", "softroce"):
        return RDMA_MTUS[0], RDMA_MTUS[-1]
    return (1500, None) if family == "tcp" else ()


def _slots(known: dict[str, Any]) -> Iterator[tuple[str, tuple[Any, ...]]]:
    """A slot that nobody states is as wide as the port needs, or as the host of this GPU is said to have."""
    host = accelerator(known.get("gpu_model", ""))
    slot = str(host.pcie.value) if host and host.pcie else ""
    rate, line = slot_rate(slot), known.get("link_rate_gbit_s")
    if "pcie" not in known and rate and line and float(rate.value) < line:
        yield "pcie", (slot, None)


def _limit(operation: str | None, facts: dict[str, Any]) -> Limit:
    """The bound of one choice; what has no end is infinite."""
    operation, rate = facts.get("operation", operation), facts.get("link_rate_gbit_s")
    family, mtu, slot = facts.get("family"), facts.get("mtu_bytes"), facts.get("pcie")
    if operation in _PAIRS:
        if math.inf in (rate, facts["ports"]):
            return Limit(gbyte_s=math.inf, formula="")
        return point_to_point_limit(
            family, rate, mtu, ports=facts["ports"], bidirectional=facts["bidirectional"], pcie=slot
        )
    n, k, g = (facts.get(x) for x in ("ranks", "domains", "gpus_per_domain"))
    n, k = n or (k or 0) * (g or 0), k or ((n or 0) // g if g else None)
    up = scale_up(str(facts.get("gpu_model", "")))
    b = facts.get("scale_up_gbyte_s") or (up.gbyte_s if up else facts.get("gpu_model"))
    ports = facts.get("ports_per_domain")
    if (math.inf in (rate, ports) and k != 1) or (k == 1 and b == math.inf):
        return Limit(gbyte_s=math.inf, formula="")
    from_table = up is not None and "scale_up_gbyte_s" not in facts
    mesh: dict[str, Any] = {"mesh_links": up.links if up.full_mesh else None} if up and from_table else {}
    where: dict[str, Any] = {"scale_up_source": up.source, "scale_up_flag": up.flag} if up and from_table else {}
    return collective_limit(
        operation, ranks=n, ranks_per_domain=g or (n // k if k and n % k == 0 else None), domains=k,
        port_gbit_s=None if rate == math.inf else rate, ports_per_domain=None if ports == math.inf else ports,
        mtu_bytes=mtu, family=family, scale_up_gbyte_s=None if b == math.inf else b,
        algorithm=facts.get("algorithm"), nvls_possible=_nvls(facts, up is None or up.nvls_possible),
        in_network=bool(facts.get("in_network")), pcie=slot, **mesh, **where,
    )  # fmt: skip


def _nvls(facts: dict[str, Any], possible: bool) -> bool:
    return possible and bool(facts.get("nvls", True))


def _deciding(found: Bounds, gbyte_s: float) -> tuple[str, ...]:
    """The missing facts whose value alone can turn the answer, all others kept; all of them where none can alone."""
    names = []
    for name in found.missing:
        answers: dict[str, set[bool]] = {}
        for choice, limit in found.choices:
            rest = repr({k: v for k, v in choice.items() if k != name})
            answers.setdefault(rest, set()).add(gbyte_s > (limit.gbyte_s or 0.0) * TOLERANCE)
        if any(len(a) > 1 for a in answers.values()):
            names.append(name)
    return tuple(names) or found.missing


def _refusals(operation: str | None, facts: Mapping[str, Any]) -> tuple[str, ...]:
    """Why no choice has a bound."""
    known = {k: v for k, v in facts.items() if v is not None}
    free = dict(_free(operation, known))
    missing = _limit(operation, known | {k: v[0] for k, v in free.items()}).missing
    return (missing,) if missing else ()
