"""Statistics of few runs: medians, ratios and their intervals. Floats in, summaries out; no distribution is assumed.

The unit is the run: six runs a side are the least that give an interval. Probabilities are counted exactly, without
simulation or seed, so the same values always give the same answer. Measurements repeat themselves (391.52, 391.52,
...): ties only ever make an interval cover more and a p-value larger than without them.
"""

import math
from bisect import bisect_left, bisect_right
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from functools import lru_cache, partial
from itertools import accumulate
from statistics import NormalDist, quantiles

LEAST_RUNS = 6  # of five values the range itself covers only 93.75 %
EXACT_UP_TO = 10_000  # ratios or averages; beyond, the normal approximation is as good as exact

_COUNTED_UP_TO = 2_000  # values of one median; beyond, the same

CHANGE_NEEDS = 8  # runs: of seven no order is rarer than 1 in 9, so no change could be shown
_ORDERS_UP_TO = 13  # runs whose orders are counted; 2^13 sets of runs

_Tail = Callable[[int], float]  # P(statistic <= count) when there is no difference


@dataclass(frozen=True, slots=True)
class Interval:
    """From ``low`` to ``high``; ``coverage`` is what it attains, at least what was asked for, of ``n`` values."""

    low: float
    high: float
    coverage: float
    n: int


@dataclass(frozen=True, slots=True)
class Ratio:
    """
    How many times larger the numerator (``n`` runs) is than the denominator (``m`` runs).

    ``low``, ``high``, ``coverage`` (as attained) and ``p_value`` (two-sided) are None where the runs are too few.
    The interval excludes 1 exactly when the p-value is at most 1 - coverage.
    """

    estimate: float
    low: float | None
    high: float | None
    coverage: float | None
    n: int
    m: int
    p_value: float | None = None

    @property
    def verdict(self) -> str:
        """``higher`` or ``lower`` when the interval excludes 1, else ``no difference shown``; or ``too few runs``."""
        if self.low is None or self.high is None:
            return "too few runs"
        return "higher" if self.low > 1 else "lower" if self.high < 1 else "no difference shown"


@dataclass(frozen=True, slots=True)
class Change:
    """The level of a series changes between value *after* - 1 and value *after*, counted from 0."""

    after: int
    median_before: float
    median_after: float
    p_value: float


def median(values: Iterable[float]) -> float:
    """
    The middle value, or the mean of the two middle ones.

    Raises:
        ValueError: There is no value, or one is not finite.
    """
    low, high = _middle(_sorted(values))
    return low + (high - low) / 2


def median_interval(values: Iterable[float], coverage: float = 0.95) -> Interval | None:
    """
    Interval of the median between two symmetric order statistics, whatever the distribution.

    The r-th smallest and the r-th largest of n values miss the median with probability 2 P(Bin(n, 1/2) < r); r is the
    largest that covers enough: 96.9, 96.1, 96.5 % at n = 6, 9, 15. With ties the coverage is at least that.

    Args:
        values: One value per run.
        coverage: The least probability, between 0 and 1. With more than 2,000 values the normal approximation with
            continuity correction takes the place of counting.

    Returns:
        None below 6 values, or where even the range of all values covers less.

    Raises:
        ValueError: There is no value, one is not finite, or *coverage* is not between 0 and 1.
    """
    ordered = _sorted(values)
    n = len(ordered)
    rank = median_rank(n, coverage)
    if not rank:
        return None
    return Interval(ordered[rank - 1], ordered[-rank], 1 - 2 * _binomial_tail(n)(rank - 1), n)


def median_rank(n: int, coverage: float = 0.95) -> int:
    """
    The r of :func:`median_interval`: the median of *n* values lies between their r-th smallest and r-th largest.

    Returns:
        0 where there is no interval: below 6 values, or where even the range of all values covers less.

    Raises:
        ValueError: *coverage* is not between 0 and 1.
    """
    rank = _rank(_binomial_tail(n), n, coverage)
    return rank if n >= LEAST_RUNS else 0


def ratio(
    numerator_values: Iterable[float],
    denominator_values: Iterable[float],
    coverage: float = 0.95,
    paired: bool = False,
) -> Ratio:
    """
    How many times larger the numerator is, by the Hodges-Lehmann estimate on logarithms, with an interval.

    Unpaired: the median of all n x m ratios, and two of these ratios as interval (Moses), chosen by the exact
    distribution of Mann and Whitney; assumes that the sides differ by a factor only. Paired: the same with the
    geometric means of all pairs of the n ratios (Walsh averages) and the signed-rank distribution of Wilcoxon; assumes
    that the log ratios are symmetric. With more than 10,000 ratios or averages the normal approximation with continuity
    correction takes the place of counting. Ties count against a difference: a value that ties with 1 stands on both
    sides of it, so the closed interval covers more than it states and the p-value is an upper bound.

    Args:
        numerator_values: One positive value per run.
        denominator_values: The same of the other side; when *paired*, in the same order.
        coverage: The least probability, between 0 and 1.
        paired: Whether the values of the two sides belong together one by one.

    Returns:
        The estimate; without interval and p-value below 6 runs a side (6 pairs), or where *coverage* is out of reach.

    Raises:
        ValueError: A side is empty, a value is not finite or not positive, a pair is not complete, or *coverage* is
            not between 0 and 1.
    """
    above, below = _positive(numerator_values), _positive(denominator_values)
    n, m = len(above), len(below)
    if paired and n != m:
        raise ValueError(f"{n} values cannot be paired with {m}")
    if paired:
        pairs = list(zip(above, below, strict=True))  # products first: 391.5/391.7 and 391.7/391.5 average to exactly 1
        ratios = sorted(math.sqrt(a * c / (b * d)) for i, (a, b) in enumerate(pairs) for c, d in pairs[i:])
        tail = _signed_rank_tail(n)
    else:
        ratios = sorted(a / b for a in above for b in below)
        tail = _rank_sum_tail(min(n, m), max(n, m))
    estimate = _geometric_mean(*_middle(ratios))
    rank = _rank(tail, len(ratios), coverage)
    if min(n, m) < LEAST_RUNS or not rank:
        return Ratio(estimate, None, None, None, n, m)
    against = min(bisect_right(ratios, 1.0), sum(r >= 1 for r in ratios))
    p_value = min(1.0, 2 * tail(against))
    return Ratio(estimate, ratios[rank - 1], ratios[-rank], 1 - 2 * tail(rank - 1), n, m, p_value)


def change_point(values: Iterable[float]) -> Change | None:
    """
    Where the level of a series in time order changes most, by Pettitt's rank test (Applied Statistics 28, 1979).

    K is the largest |sum over i <= t < j of sgn(x_i - x_j)| over all t. Up to 13 values its probability is counted over
    all orders; above it is Pettitt's 2 exp(-6 K^2 / (n^3 + n^2)), which is too large rather than too small. Ties only
    ever make the p-value larger than without them.

    Args:
        values: One value per run, in the order of time.

    Returns:
        The change that fits best, whatever its p-value; None below 8 values.

    Raises:
        ValueError: There is no value, or one is not finite.
    """
    given = [float(v) for v in values]
    ordered, n = _sorted(given), len(given)
    if n < CHANGE_NEEDS:
        return None
    # twice the mid-rank of a value among n, less n + 1: what it adds to the statistic
    scores = [bisect_left(ordered, x) + bisect_right(ordered, x) - n for x in given]
    sums = [abs(total) for total in accumulate(scores)][:-1]
    most = max(sums)
    at = sums.index(most) + 1
    if n > _ORDERS_UP_TO:
        p_value = min(1.0, 2 * math.exp(-6 * most**2 / (n**3 + n**2)))
    else:
        p_value = 1 - _orders_below(n, most) / math.factorial(n)
    return Change(at, median(given[:at]), median(given[at:]), p_value)


@lru_cache(maxsize=256)
def _orders_below(n: int, most: int) -> int:
    """Of the n! orders of n ranks, those whose every beginning keeps Pettitt's statistic below *most*."""
    ways = [1] + [0] * (2**n - 1)
    total = [0] * 2**n
    for chosen in range(1, 2**n):
        lowest = chosen & -chosen
        total[chosen] = total[chosen ^ lowest] + 2 * lowest.bit_length() - n - 1
        if abs(total[chosen]) < most:
            ways[chosen] = sum(ways[chosen ^ (1 << i)] for i in range(n) if chosen >> i & 1)
    return ways[-1]


def runs_to_decide(
    numerator_values: Iterable[float],
    denominator_values: Iterable[float],
    coverage: float = 0.95,
    paired: bool = False,
    most: int = 1000,
) -> int | None:
    """
    How many runs a side (or pairs) the interval of :func:`ratio` would need to exclude 1, if all else stays as it is.

    Assumes that the ratio of today and the scatter of today (robust, on logarithms)
    persist, and that the Hodges-Lehmann estimate of normal logarithms has its large-sample variance, pi/3 of that of a
    mean (Lehmann, Nonparametrics, 1975). It is a forecast: with so many runs half of all repetitions would decide.

    Args:
        numerator_values: One positive value per run.
        denominator_values: The same of the other side; when *paired*, in the same order.
        coverage: Of the interval.
        paired: As for :func:`ratio`.
        most: Where a forecast ends to be one.

    Returns:
        At least 6, and the present number where the interval excludes 1 already. None where the sides show no
        difference at all, where it would take more than *most*, or where fewer than 3 runs a side show no scatter.

    Raises:
        ValueError: As :func:`ratio` does.
    """
    above, below = _positive(numerator_values), _positive(denominator_values)
    found = ratio(above, below, coverage, paired)
    if found.verdict in ("higher", "lower"):
        return min(found.n, found.m)
    distance = abs(math.log(found.estimate))
    if distance == 0 or min(found.n, found.m) < 3:
        return None
    if paired:
        variance = _deviation([math.log(a / b) for a, b in zip(above, below, strict=True)]) ** 2
    else:
        variance = sum(_deviation([math.log(x) for x in side]) ** 2 for side in (above, below))
    quantile = NormalDist().inv_cdf((1 + coverage) / 2)
    needed = max(LEAST_RUNS, math.ceil(quantile**2 * math.pi / 3 * variance / distance**2))
    # what has not decided with the present number needs one more at least
    needed = max(needed, min(found.n, found.m) + 1) if min(found.n, found.m) >= LEAST_RUNS else needed
    return needed if needed <= most else None


def holm(p_values: Iterable[float]) -> list[float]:
    """
    P-values of one table, adjusted so that all of them together keep the error rate (Holm's step-down method).

    Args:
        p_values: Each between 0 and 1; the tests may depend on each other.

    Returns:
        The adjusted values, in the same order.

    Raises:
        ValueError: A value is not between 0 and 1.
    """
    given = list(p_values)
    if not all(0 <= p <= 1 for p in given):
        raise ValueError("a p-value lies between 0 and 1")
    order = sorted(range(len(given)), key=given.__getitem__)
    steps = accumulate((min(1.0, given[i] * (len(given) - k)) for k, i in enumerate(order)), max)
    adjusted = dict(zip(order, steps, strict=True))
    return [adjusted[i] for i in range(len(given))]


def spread(values: Iterable[float]) -> float:
    """
    Robust standard deviation: 1.4826 x the median absolute deviation, 0 where more than half of the values are equal.

    Raises:
        ValueError: There is no value, or one is not finite.
    """
    given = list(values)
    centre = median(given)
    return 1.4826 * median(abs(x - centre) for x in given)


def outliers(values: Iterable[float]) -> list[bool]:
    """
    Marks the values further than 3.5 standard deviations from the median, the deviation estimated robustly.

    It is 1.4826 x the median absolute deviation; where that is 0 (more than half of the values are the same) the
    interquartile range / 1.349; where that is 0 too the values give no scale, and none is marked.

    Returns:
        One flag per value, in the same order.

    Raises:
        ValueError: There is no value, or one is not finite.
    """
    given = list(values)
    centre, deviation = median(given), _deviation(given)
    return [deviation > 0 and abs(x - centre) > 3.5 * deviation for x in given]


def _deviation(given: Sequence[float]) -> float:
    """:func:`spread`, or where more than half of the values are equal the interquartile range / 1.349."""
    deviation = spread(given)
    if deviation == 0 and len(given) > 1:
        low, _, high = quantiles(given, n=4, method="inclusive")
        deviation = (high - low) / 1.349
    return deviation


def _sorted(values: Iterable[float]) -> list[float]:
    ordered = sorted(map(float, values))
    if not ordered or not all(map(math.isfinite, ordered)):
        raise ValueError("no value to summarize" if not ordered else "a value is not finite")
    return ordered


def _positive(values: Iterable[float]) -> list[float]:
    given = list(map(float, values))
    if _sorted(given)[0] <= 0:
        raise ValueError("a ratio needs positive values")
    return given


def _middle(ordered: Sequence[float]) -> tuple[float, float]:
    """The two middle values; twice the same where the count is odd."""
    half = len(ordered) // 2
    return ordered[~half], ordered[half]


def _geometric_mean(a: float, b: float) -> float:
    return a if a == b else math.sqrt(a * b)


def _rank(tail: _Tail, count: int, coverage: float) -> int:
    """The largest r for which the r-th smallest and the r-th largest of *count* values cover enough; 0 for none."""
    if not 0 < coverage < 1:
        raise ValueError(f"coverage {coverage} does not lie between 0 and 1")
    return bisect_right(range(count // 2), 1 - coverage, key=lambda r: 2 * tail(r))


def _exact_tail(cumulated: Sequence[int], total: int, count: int) -> float:
    """P(statistic <= *count*); *cumulated* reaches to the middle of a symmetric distribution at least."""
    return cumulated[count] / total if count < len(cumulated) else 1.0


def _normal_tail(mean: float, deviation: float, count: int) -> float:
    return NormalDist(mean, deviation).cdf(count + 0.5)


@lru_cache(maxsize=256)
def _binomial_tail(n: int) -> _Tail:
    """The number of *n* values below their median: the coefficients of the binomial, each from the one before it."""
    if n > _COUNTED_UP_TO:
        return partial(_normal_tail, n / 2, math.sqrt(n) / 2)
    ways = accumulate(range(1, n // 2 + 1), lambda before, k: before * (n - k + 1) // k, initial=1)
    return partial(_exact_tail, tuple(accumulate(ways)), 2**n)


@lru_cache(maxsize=256)
def _rank_sum_tail(n: int, m: int) -> _Tail:
    """
    The statistic of Mann and Whitney for *n* and *m* values without ties.

    The number of arrangements by the value of U is the Gaussian binomial coefficient, the product over i = 1..n of
    (1 - q^(m+i)) / (1 - q^i): one recurrence down for each factor above, one up for each below.
    """
    if n * m > EXACT_UP_TO:
        return partial(_normal_tail, n * m / 2, math.sqrt(n * m * (n + m + 1) / 12))
    half = n * m // 2
    ways = [1] + [0] * half
    for i in range(1, n + 1):
        for u in range(half, m + i - 1, -1):
            ways[u] -= ways[u - m - i]
        for u in range(i, half + 1):
            ways[u] += ways[u - i]
    return partial(_exact_tail, tuple(accumulate(ways)), math.comb(n + m, n))


@lru_cache(maxsize=256)
def _signed_rank_tail(n: int) -> _Tail:
    """The signed-rank statistic of Wilcoxon for *n* values: the subsets of 1..n by their sum."""
    count = n * (n + 1) // 2
    if count > EXACT_UP_TO:
        return partial(_normal_tail, count / 2, math.sqrt(count * (2 * n + 1) / 12))
    ways = [1] + [0] * (count // 2)
    for i in range(1, n + 1):
        for w in range(count // 2, i - 1, -1):
            ways[w] += ways[w - i]
    return partial(_exact_tail, tuple(accumulate(ways)), 2**n)
