"""Latency: the one floor that physics sets, and the model by which NCCL chooses an algorithm, which sets none."""

import math

from rdmalab.limits._judge import IMPLAUSIBLE, IMPOSSIBLE, OPEN, POSSIBLE, TOLERANCE, Judged
from rdmalab.limits._tables import table

ADAPTER_US = 0.5  # one way through the best adapter published (EDR)
ADAPTER_SOURCE = "stas00/ml-engineering:network/README.md (0.5 us, the best adapter published)"
US_PER_METRE = 0.005  # in glass or copper, two thirds of the speed of light
_FAR_BELOW = 3.0  # times below the model; a public run beats it by 1.2
_WITHIN_HOSTS = ("nvlink", "xgmi", "hccs", "pcie")


def traversal_us(convention: str, metres: float = 0.0) -> float:
    """
    The least time of a message between two hosts: one traversal of the best adapter, and the cable.

    Args:
        convention: ``one_way`` or ``round_trip``, which is twice as long.
        metres: Length of the cable.

    Raises:
        ValueError: The convention is neither, or the length is negative.
    """
    if convention not in ("one_way", "round_trip") or metres < 0:
        raise ValueError(f"no latency of convention {convention!r} over {metres} m")
    return (ADAPTER_US + US_PER_METRE * metres) * (2 if convention == "round_trip" else 1)


def latency_model_us(ranks: int, domains: int, algorithm: str = "Tree", protocol: str = "LL") -> float | None:
    """
    NCCL's own expectation of a small all_reduce. It is no floor: public runs beat it.

    Ring: base + 2 (n - k) scale-up hops + 2 (k - 1) network hops, where a scale-up hop of several domains takes no less
    than the post overhead. Tree: base + 2 ((g - 1) scale-up hops + log2 k network hops), log2 rounded down.

    Args:
        protocol: LL, LL128 or Simple.

    Returns:
        None for another algorithm or protocol, or ranks that do not fill the domains.
    """
    key = (algorithm.lower(), protocol.lower())
    row = next((r for r in table("latency") if (r["algorithm"].lower(), r["protocol"].lower()) == key), None)
    if row is None or domains < 1 or ranks < 2 or ranks % domains:
        return None
    base, inside, across = (float(row[c]) for c in ("base_us", "scale_up_hop_us", "network_hop_us"))
    if key[0] == "tree":
        return base + 2 * ((ranks // domains - 1) * inside + (domains.bit_length() - 1) * across)
    inside = max(inside, float(row["post_us"])) if domains > 1 else inside
    return base + 2 * (ranks - domains) * inside + 2 * (domains - 1) * across


def judge_latency(
    value_us: float, convention: str | None, *, family: str | None, metres: float = 0.0, ranks: int | None = None,
    domains: int | None = None, in_network: bool | None = None,
) -> Judged:  # fmt: skip
    """
    Whether a latency can be: ``impossible`` below one traversal, ``implausible`` for a collective (*ranks* given) that
    is 3 times below the model or below log2 k traversals, unless switches reduce.

    Args:
        convention: ``one_way``, ``round_trip``, or None where not stated: then both readings are tried.
        family: A fabric family; inside a node (NVLink and its like) there is no floor, None leaves the answer open.
    """
    low, high = (traversal_us(convention or way, metres) for way in ("one_way", "round_trip"))
    if family in _WITHIN_HOSTS:
        return Judged(
            verdict=POSSIBLE, bound_low=0.0, bound_high=0.0, missing=(), formula="", source=ADAPTER_SOURCE, flag="V"
        )

    def told(verdict: str, formula: str, flag: str, *missing: str) -> Judged:
        return Judged(
            verdict=verdict, bound_low=low, bound_high=high, missing=missing, formula=formula, source=ADAPTER_SOURCE,
            flag=flag,
        )  # fmt: skip

    floor = f"{ADAPTER_US:g} us + {US_PER_METRE:g} us/m x {metres:g} m"
    if value_us * TOLERANCE < low:
        return told(OPEN, floor, "V", "family") if family is None else told(IMPOSSIBLE, floor, "V")
    if value_us * TOLERANCE < high:
        return told(OPEN, f"2 x ({floor})", "V", "latency_convention")
    if ranks and domains and domains > 1:
        model = min(x for a in ("Ring", "Tree") if (x := latency_model_us(ranks, domains, a)) is not None)
        if not in_network and value_us < max(model / _FAR_BELOW, math.ceil(math.log2(domains)) * ADAPTER_US):
            missing = () if in_network is False else ("in_network",)
            return told(IMPLAUSIBLE, f"NCCL's model {model:g} us / {_FAR_BELOW:g}", "R", *missing)
    return told(POSSIBLE, floor, "V")
