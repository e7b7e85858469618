"""
Money: what a GPU hour, a delivered GB/s and a step cost on each fabric, and whether the dearer fabric pays.

Prices come from the quotes of the campaign file and are never converted; a month has 730 hours. Times of a step come
from the measured curve, between two measured sizes on a straight line of logarithms, and never beyond them. What is not
stated is varied: communication may hide behind computing wholly or not at all, and computing may take any time. An
answer holds for all of that or is "not decided", with the field that is missing.
"""

import math
from collections.abc import Sequence
from dataclasses import dataclass
from itertools import product
from typing import TYPE_CHECKING, Any, NamedTuple

from rdmalab.compare import Cell, Comparison, Table
from rdmalab.errors import NothingToCompare

if TYPE_CHECKING:
    from rdmalab.lab import Lab

HOURS_A_MONTH = 730.0  # 8,760 hours a year over 12
PAYS, DOES_NOT_PAY, NOT_DECIDED = "pays", "does not pay", "not decided"


class Interval(NamedTuple):
    """A value with the ends of its interval; both None where too few runs give none."""

    value: float
    low: float | None
    high: float | None


@dataclass(frozen=True, kw_only=True)
class Offer:
    """
    A quote in money per GPU hour.

    Attributes:
        gpu_hour: In *currency*; the price of the lease where the quote is one.
        node_month: The same for a node, over 730 hours.
        break_even_months: Of a lease: after so many months at the full price it would have been as dear, T (1 - d).
    """

    fabric: str
    currency: str
    gpu_hour: float
    gpus_per_node: int | None
    stated: str
    formula: str
    source: str
    lease_months: int | None = None
    break_even_months: float | None = None

    @property
    def node_month(self) -> float | None:
        """Money for a node and month; None where the GPUs of a node are not known."""
        return self.gpu_hour * self.gpus_per_node * HOURS_A_MONTH if self.gpus_per_node else None


@dataclass(frozen=True, kw_only=True)
class Delivered:
    """The bus bandwidth that a fabric delivers at one size, in GB/s, and what 1 GB/s of it costs a GPU and hour."""

    offer: Offer
    size_bytes: int
    busbw_gbyte_s: Interval
    per_gbyte_s: Interval
    runs: int


@dataclass(frozen=True, kw_only=True)
class Scenario:
    """One reading of a step: so much computing, and communication hidden behind it or not."""

    compute_ms: float
    overlap: bool
    speed_up: Interval


@dataclass(frozen=True, kw_only=True)
class Premium:
    """
    Whether the dearer of two fabrics is worth its price for one workload.

    Attributes:
        premium: Price of the dearer over the other, less 1.
        collective_ms: Fabric → time of the collectives of a step.
        share: Fabric → (least, greatest) share of communication in a step; None where compute_ms is not stated.
        thousand_steps: Fabric → (least, greatest) money for 1,000 steps of one GPU, all hidden and nothing hidden.
        scenarios: The readings that were tried; the answer holds for all of them or is not decided.
        missing: The field that would decide.
    """

    workload: str
    size_bytes: int
    operation: str
    count: int
    compute_ms: float | None
    dear: str
    cheap: str
    premium: float
    collective_ms: dict[str, Interval]
    share: dict[str, tuple[float, float]] | None
    thousand_steps: dict[str, tuple[float, float]] | None
    currency: str
    scenarios: tuple[Scenario, ...]
    answer: str
    because: str
    missing: str | None = None


@dataclass(frozen=True, kw_only=True, eq=False)
class Prices:
    """All of it, for one campaign."""

    comparison: Comparison
    table: Table
    offers: tuple[Offer, ...]
    delivered: tuple[Delivered, ...]
    premiums: tuple[Premium, ...]
    refused: tuple[str, ...]


def prices(lab: "Lab", campaign: str | None = None, **selection: Any) -> Prices:
    """
    The money of a campaign; *selection* as in :class:`rdmalab.series.Selection`.

    Raises:
        NothingToCompare: The campaign file has no quote, or nothing that two fabrics measured.
        UsageError: There is no such campaign, or a parameter that the store does not know.
    """
    name = lab.the_campaign(campaign)
    quotes = lab.sql("SELECT * FROM raw.quotes WHERE campaign = $c", c=name).to_dicts()
    if not quotes:
        raise NothingToCompare(
            f"campaign '{name}' has no quote; write [[quote]] into its rdmalab.toml and ingest again"
        )
    comparison = lab.compare(campaign=name, **selection)
    table = next((t for t in comparison.tables if t.subject.kind == "collective"), None)
    if table is None:
        raise NothingToCompare(f"campaign '{name}': no collective was measured on two fabrics")
    gpus = dict(lab.sql("SELECT fabric, gpus_per_node FROM raw.fabrics WHERE campaign = $c", c=name).rows())
    offers = [offer_of(q, gpus.get(q["fabric"])) for q in quotes]
    refused: list[str] = []
    workloads = lab.sql("SELECT * FROM raw.workloads WHERE campaign = $c ORDER BY name", c=name).to_dicts()
    premiums = [p for w in workloads for p in _premiums(comparison, w, offers, refused)]
    return Prices(
        comparison=comparison, table=table, offers=tuple(offers),
        delivered=tuple(d for o in offers if (d := _delivered(table, o))), premiums=tuple(premiums),
        refused=tuple(dict.fromkeys(refused)),
    )  # fmt: skip


def offer_of(quote: dict[str, Any], gpus_per_node: int | None = None) -> Offer:
    """
    A quote as money per GPU hour.

    Raises:
        NothingToCompare: The price is for a node, and how many GPUs it has is not stated.
    """
    currency, _, per = quote["unit"].partition("/")
    gpus = quote["gpus_per_node"] or gpus_per_node
    if per == "node-month" and not gpus:
        raise NothingToCompare(f"the quote for '{quote['fabric']}' is for a node: state gpus_per_node")
    hours = 1.0 if per == "GPU-hour" else HOURS_A_MONTH
    share = 1 - (quote["discount_pct"] or 0.0) / 100
    price = quote["price"] * share / hours / (gpus if per == "node-month" else 1)
    parts = [f"{quote['price']:g}"]
    parts += [f"(1 - {quote['discount_pct']:g} %)"] if quote["discount_pct"] else []
    formula = " x ".join(parts)
    formula += f" / {hours:g} h" if hours > 1 else ""
    formula += f" / {gpus} GPUs" if per == "node-month" else ""
    months = quote["lease_months"]
    return Offer(
        fabric=quote["fabric"], currency=currency, gpu_hour=price, gpus_per_node=gpus, formula=formula,
        stated=f"{quote['price']:g} {quote['unit']}", source=quote["source"], lease_months=months,
        break_even_months=months * share if months else None,
    )  # fmt: skip


def _delivered(table: Table, offer: Offer) -> Delivered | None:
    """The largest size that all fabrics of the table measured."""
    size = table.common_sizes[-1]
    cell = table.cell(offer.fabric, size)
    if cell is None or cell.busbw is None or size is None or cell.busbw.median <= 0:
        return None
    bus = cell.busbw
    low, high = (offer.gpu_hour / v if v else None for v in (bus.high, bus.low))
    return Delivered(
        offer=offer, size_bytes=size, busbw_gbyte_s=Interval(bus.median, bus.low, bus.high),
        per_gbyte_s=Interval(offer.gpu_hour / bus.median, low, high), runs=bus.n,
    )  # fmt: skip


def time_at(cells: Sequence[Cell], size_bytes: int) -> Interval | None:
    """
    The time at a size in us: measured, or between the two measured sizes around it, straight on logarithms.

    Returns:
        None where the size lies outside what was measured.
    """
    known = sorted((c for c in cells if c.size_bytes), key=lambda c: c.size_bytes or 0)
    for cell in known:
        if cell.size_bytes == size_bytes:
            return Interval(cell.median, cell.low, cell.high)
    below = [c for c in known if (c.size_bytes or 0) < size_bytes]
    above = [c for c in known if (c.size_bytes or 0) > size_bytes]
    if not below or not above:
        return None
    a, b = below[-1], above[0]
    part = math.log(size_bytes / (a.size_bytes or 1)) / math.log((b.size_bytes or 1) / (a.size_bytes or 1))

    def between(one: float | None, other: float | None) -> float | None:
        return one ** (1 - part) * other**part if one and other else None

    value = between(a.median, b.median)
    return Interval(value, between(a.low, b.low), between(a.high, b.high)) if value else None


def _premiums(c: Comparison, workload: dict[str, Any], offers: Sequence[Offer], refused: list[str]) -> list[Premium]:
    """One answer for every dearer offer against the cheapest one that shares its currency and its lease."""
    table = next(
        (t for t in c.tables if t.subject.kind == "collective" and t.subject.operation == workload["operation"]), None
    )
    if table is None:
        refused.append(f"{workload['name']}: no {workload['operation']} was measured on two fabrics")
        return []
    out = []
    for currency, months in dict.fromkeys((o.currency, o.lease_months) for o in offers):
        same = [o for o in offers if (o.currency, o.lease_months) == (currency, months)]
        cheapest = {o.fabric: o for o in sorted(same, key=lambda o: -o.gpu_hour)}  # of several quotes for one fabric
        alike = sorted(cheapest.values(), key=lambda o: o.gpu_hour)
        times: dict[str, Interval] = {}
        for offer in alike:
            found = time_at(table.of(offer.fabric), workload["size_bytes"])
            if found is None:
                refused.append(
                    f"{workload['name']}: {workload['size_bytes']} B lie outside what {offer.fabric} measured"
                )
            else:
                times[offer.fabric] = _scaled(found, workload["collectives_per_step"] / 1e3)
        priced = [o for o in alike if o.fabric in times]
        out += [_premium(workload, priced[0], dear, times) for dear in priced[1:]]
    return out


def _scaled(t: Interval, factor: float) -> Interval:
    return Interval(*(v * factor if v is not None else None for v in t))  # type: ignore[arg-type]


def _premium(workload: dict[str, Any], cheap: Offer, dear: Offer, times: dict[str, Interval]) -> Premium:
    premium = dear.gpu_hour / cheap.gpu_hour - 1
    slow, fast, compute = times[cheap.fabric], times[dear.fabric], workload["compute_ms"]
    computing = (compute,) if compute is not None else (0.0, math.inf)
    scenarios = tuple(
        Scenario(compute_ms=ms, overlap=overlap, speed_up=_speed_up(slow, fast, ms, overlap=overlap))
        for ms, overlap in product(computing, (False, True))
    )
    answer, because = _answer(scenarios, premium)
    shares = thousand = None
    if compute is not None:
        thousand = {o.fabric: (_thousand(o, max(t.value, compute)), _thousand(o, t.value + compute))
                    for o, t in ((cheap, slow), (dear, fast))}  # fmt: skip
        shares = {f: (max(0.0, t.value - compute) / max(t.value, compute), t.value / (t.value + compute))
                  for f, t in ((cheap.fabric, slow), (dear.fabric, fast))}  # fmt: skip
    missing = None
    if answer == NOT_DECIDED:
        missing = "compute_ms" if compute is None else "overlap" if because == "the readings disagree" else "runs"
    return Premium(
        workload=workload["name"], size_bytes=workload["size_bytes"], operation=workload["operation"],
        count=workload["collectives_per_step"], compute_ms=compute, dear=dear.fabric, cheap=cheap.fabric,
        premium=premium, collective_ms={cheap.fabric: slow, dear.fabric: fast}, share=shares, scenarios=scenarios,
        thousand_steps=thousand, currency=cheap.currency,
        answer=answer, because=because, missing=missing,
    )  # fmt: skip


def _thousand(offer: Offer, step_ms: float) -> float:
    """Money for 1,000 steps of one GPU: seconds over 3,600 times the price of an hour."""
    return offer.gpu_hour * step_ms / 3600


def _speed_up(slow: Interval, fast: Interval, compute_ms: float, *, overlap: bool) -> Interval:
    """How much faster a step is; its ends pair the worst of one side with the best of the other."""

    def step(t: float) -> float:
        return max(compute_ms, t) if overlap else compute_ms + t

    def ratio(one: float | None, other: float | None) -> float | None:
        if one is None or other is None:
            return None
        return 1.0 if math.isinf(compute_ms) else step(one) / step(other)

    value = ratio(slow.value, fast.value)
    assert value is not None
    return Interval(value, ratio(slow.low, fast.high), ratio(slow.high, fast.low))


def _answer(scenarios: Sequence[Scenario], premium: float) -> tuple[str, str]:
    """Pays only if the speed-up is above 1 + premium in every reading, with its whole interval; and the other way."""
    needed = 1 + premium
    if any(s.speed_up.low is None or s.speed_up.high is None for s in scenarios):
        return NOT_DECIDED, "too few runs for an interval"
    if all((s.speed_up.low or 0.0) > needed for s in scenarios):
        return PAYS, "in every reading the whole interval is above what it costs"
    if all((s.speed_up.high or 0.0) < needed for s in scenarios):
        return DOES_NOT_PAY, "in every reading the whole interval is below what it costs"
    decided = [s for s in scenarios if (s.speed_up.low or 0.0) > needed or (s.speed_up.high or 0.0) < needed]
    return NOT_DECIDED, "the readings disagree" if len(decided) == len(scenarios) else "an interval holds what it costs"
