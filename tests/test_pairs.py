"""Who is slow among pairs of hosts."""

from itertools import combinations

import pytest

from rdmalab.pairs import Pairs


def pairs_of(speed: dict[str, float], **other: float) -> Pairs:
    """All pairs of hosts, each as fast as its slower host; *other* overrides single pairs, ``a_b=...``."""
    hosts = tuple(sorted(speed))
    values = {(a, b): min(speed[a], speed[b]) for a, b in combinations(hosts, 2)}
    values |= {tuple(sorted(k.split("_"))): v for k, v in other.items()}  # type: ignore[misc]
    return Pairs(
        fabric="roce", operation="all_reduce", dtype="float", ranks=16, placement="out_of_place", size_bytes=1 << 30,
        hosts=hosts, busbw_gbyte_s=values, runs=len(values), limit_gbyte_s=None,
    )  # fmt: skip


def test_one_slow_host_among_equal_ones_is_found() -> None:
    """Where the others are exactly equal there is no deviation to measure by: any step over 2 % counts."""
    assert pairs_of({"a": 9.0, "b": 9.0, "c": 9.0, "d": 9.0, "e": 6.0}).slow_hosts == ["e"]


def test_one_slow_host_among_noisy_ones_is_found() -> None:
    """Medians 46.0 to 46.2 and one host at 42: only this one."""
    speed = {"a": 46.0, "b": 46.1, "c": 46.2, "d": 46.05, "e": 46.15, "f": 42.0}
    assert pairs_of(speed).slow_hosts == ["f"]


def test_nobody_stands_out_among_equal_hosts() -> None:
    """A difference below 2 % is noise."""
    assert pairs_of({"a": 9.0, "b": 9.05, "c": 8.95, "d": 9.0}).slow_hosts == []


def test_one_slow_pair_makes_no_slow_host() -> None:
    """The median over partners forgives one bad cable."""
    found = pairs_of(dict.fromkeys("abcde", 9.0), a_b=4.0)
    assert found.slow_hosts == []
    assert found.slowest(1) == [(("a", "b"), 4.0)]


def test_a_pair_that_was_not_measured_is_missing() -> None:
    """It is neither 0 nor the mean of its neighbours."""
    found = pairs_of(dict.fromkeys("abc", 9.0))
    del found.busbw_gbyte_s["a", "c"]
    assert found.missing == [("a", "c")]
    assert found.of("c", "a") is None
    assert found.median_of("b") == pytest.approx(9.0)
