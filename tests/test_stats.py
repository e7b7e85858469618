"""Promises of rdmalab.stats. Probabilities are counted by hand or by brute force over all arrangements."""

import itertools
import math
import random

import pytest

from rdmalab import stats


def test_median_of_even_count_is_mean_of_the_middle_two() -> None:
    """The median is the middle value, or the mean of the two middle ones."""
    assert stats.median([3, 1, 2]) == 2
    assert stats.median([4, 1, 3, 2]) == 2.5
    assert stats.median([391.52] * 4) == 391.52


@pytest.mark.parametrize("values", [[], [1.0, math.nan], [math.inf]])
def test_median_refuses_what_is_no_number(values: list[float]) -> None:
    """An empty or not finite sample is refused."""
    with pytest.raises(ValueError, match="value"):
        stats.median(values)


@pytest.mark.parametrize(
    ("n", "low", "high", "coverage"),
    [
        (6, 1, 6, 1 - 2 * 1 / 64),
        (9, 2, 8, 1 - 2 * (1 + 9) / 512),
        (15, 4, 12, 1 - 2 * (1 + 15 + 105 + 455) / 32768),
    ],
)
def test_median_interval_takes_the_right_order_statistics(n: int, low: int, high: int, coverage: float) -> None:
    """Six, nine and fifteen values give 96.9, 96.1 and 96.5 % between symmetric order statistics."""
    assert stats.median_interval(reversed(range(1, n + 1))) == stats.Interval(low, high, coverage, n)


def test_median_interval_needs_six_values() -> None:
    """Below six values there is no interval, whatever the coverage; nor where it is out of reach."""
    assert stats.median_interval([1, 2, 3, 4, 5]) is None
    assert stats.median_interval([1, 2, 3, 4, 5], coverage=0.5) is None
    assert stats.median_interval(range(6), coverage=0.97) is None


def test_median_interval_of_identical_values_is_a_point() -> None:
    """Values that repeat themselves are no error."""
    assert stats.median_interval([391.52] * 8) == stats.Interval(391.52, 391.52, 1 - 2 / 256, 8)


@pytest.mark.parametrize("coverage", [0, 1, 95, math.nan])
def test_coverage_is_a_probability(coverage: float) -> None:
    """95 for 95 % is refused."""
    with pytest.raises(ValueError, match="coverage"):
        stats.median_interval(range(9), coverage)


@pytest.mark.parametrize("n", [6, 9, 15])
def test_median_interval_covers_as_often_as_it_says(n: int) -> None:
    """On skewed data the interval contains the true median as often as stated, to 1.5 points."""
    rng = random.Random(20240 + n)
    trials, found, stated = 4000, 0, 0.0
    for _ in range(trials):
        interval = stats.median_interval([rng.expovariate(1) for _ in range(n)])
        assert interval
        found += interval.low <= math.log(2) <= interval.high
        stated = interval.coverage
    assert abs(found / trials - stated) < 0.015


def test_ratio_is_the_median_of_all_ratios() -> None:
    """1, 2 and 4 over 1 and 2 give 0.5, 1, 1, 2, 2, 4: sqrt(1 x 2) in the middle, on logarithms."""
    found = stats.ratio([1, 2, 4], [1, 2])
    assert found.estimate == pytest.approx(math.sqrt(2))
    assert (found.low, found.high, found.coverage, found.p_value) == (None, None, None, None)
    assert (found.n, found.m, found.verdict) == (3, 2, "too few runs")


def test_ratio_interval_by_hand() -> None:
    """Six against six: P(U <= 5) = 19 / 924, so the 6th smallest and the 6th largest of 36 ratios."""
    above, below = [10, 11, 12, 13, 14, 15], [1, 2, 3, 4, 5, 6]
    ratios = sorted(a / b for a in above for b in below)
    found = stats.ratio(above, below)
    assert (found.low, found.high) == (ratios[5], ratios[-6])
    assert found.coverage == pytest.approx(1 - 2 * 19 / 924)
    assert found.p_value == pytest.approx(2 / 924)
    assert found.verdict == "higher"
    assert stats.ratio(below, above).verdict == "lower"


@pytest.mark.parametrize(("n", "m"), [(1, 1), (2, 5), (4, 4), (3, 6)])
def test_rank_sum_counts_all_arrangements(n: int, m: int) -> None:
    """The recurrence gives what counting every arrangement gives."""
    ranks = [sum(c) - n * (n - 1) // 2 for c in itertools.combinations(range(n + m), n)]
    for u in range(n * m // 2 + 1):
        assert stats._rank_sum_tail(n, m)(u) == sum(r <= u for r in ranks) / len(ranks)


@pytest.mark.parametrize("n", [1, 2, 5, 8])
def test_signed_rank_counts_all_signs(n: int) -> None:
    """The recurrence gives what counting every combination of signs gives."""
    sums = [sum(i for i, s in enumerate(signs, 1) if s) for signs in itertools.product((0, 1), repeat=n)]
    for w in range(n * (n + 1) // 4 + 1):
        assert stats._signed_rank_tail(n)(w) == sum(x <= w for x in sums) / 2**n


def test_normal_approximation_continues_the_exact_count() -> None:
    """Where counting ends the approximation differs by less than 0.1 points."""
    exact = stats._rank_sum_tail(100, 100)
    mean, deviation = 5000, math.sqrt(100 * 100 * 201 / 12)
    signed = stats._signed_rank_tail(140)
    for z in (-3, -2, -1.96, -1):
        u = round(mean + z * deviation)
        assert exact(u) == pytest.approx(stats._normal_tail(mean, deviation, u), abs=1e-3)
        w = round(9870 / 2 + z * math.sqrt(9870 * 281 / 12))
        assert signed(w) == pytest.approx(stats._normal_tail(9870 / 2, math.sqrt(9870 * 281 / 12), w), abs=1e-3)


def test_large_samples_get_an_interval() -> None:
    """Above 10,000 ratios, and paired, the interval still covers the factor that made the data."""
    rng = random.Random(5)
    below = [rng.lognormvariate(0, 0.1) for _ in range(150)]
    above = [2 * rng.lognormvariate(0, 0.1) for _ in range(150)]
    for paired in (False, True):
        found = stats.ratio(above, below, paired=paired)
        assert found.low is not None
        assert found.high is not None
        assert found.coverage is not None
        assert 1.9 < found.low < 2 < found.high < 2.1
        assert 0.95 <= found.coverage < 0.951


def test_paired_ratio_takes_the_walsh_averages() -> None:
    """Six pairs: only the extremes of the 21 averages reach 95 %, at 1 - 2/64."""
    below = [10.0, 20, 30, 40, 50, 60]
    above = [b * f for b, f in zip(below, [1.1, 1.2, 1.3, 1.4, 1.5, 1.6], strict=True)]
    found = stats.ratio(above, below, paired=True)
    assert (found.low, found.high) == (pytest.approx(1.1), pytest.approx(1.6))
    assert (found.coverage, found.p_value) == (1 - 2 / 64, 2 / 64)
    assert (found.n, found.m, found.verdict) == (6, 6, "higher")
    assert stats.ratio(above[:5], below[:5], paired=True).verdict == "too few runs"


def test_pairing_finds_what_the_spread_of_rounds_hides() -> None:
    """A steady 2 % on rounds that vary by a factor of two shows only when the rounds are paired."""
    below = [1.0, 1.2, 1.4, 1.6, 1.8, 2.0, 1.1, 1.9]
    above = [1.02 * b for b in below]
    assert stats.ratio(above, below).verdict == "no difference shown"
    assert stats.ratio(above, below, paired=True).verdict == "higher"


def test_identical_runs_differ_from_other_identical_runs() -> None:
    """Ties are no error: equal sides show no difference, sides that never overlap do."""
    same = stats.ratio([391.52] * 6, [391.52] * 6)
    assert (same.estimate, same.low, same.high, same.p_value) == (1, 1, 1, 1)
    assert same.verdict == "no difference shown"
    assert stats.ratio([391.52] * 6, [391.52] * 6, paired=True).verdict == "no difference shown"
    assert stats.ratio([391.53] * 6, [391.52] * 6).verdict == "higher"


def test_ties_with_1_count_on_both_sides() -> None:
    """Pairs that swap their values average to exactly 1."""
    found = stats.ratio([391.5, 391.7] * 3, [391.7, 391.5] * 3, paired=True)
    assert (found.estimate, found.p_value, found.verdict) == (1, 1, "no difference shown")


@pytest.mark.parametrize("decimals", [12, 1])
def test_equal_distributions_are_called_different_in_at_most_5_percent(decimals: int) -> None:
    """Of 2,000 comparisons of a fabric with itself at most 100 show a difference, with ties or without."""
    rng = random.Random(7)
    called = 0
    for trial in range(2000):
        n, m = [(6, 6), (6, 9), (9, 9), (15, 12)][trial % 4]
        a, b = ([round(400 * rng.lognormvariate(0, 0.001), decimals) for _ in range(k)] for k in (n, m))
        found = stats.ratio(a, b)
        called += found.verdict != "no difference shown"
        assert found.p_value is not None
        assert found.coverage is not None
        assert (found.p_value <= 1 - found.coverage + 1e-12) == (found.verdict != "no difference shown")
    assert called <= 100


def test_equal_pairs_are_called_different_in_at_most_5_percent() -> None:
    """The same holds for 2,000 paired comparisons."""
    rng = random.Random(11)
    called = 0
    for trial in range(2000):
        rounds = [rng.uniform(100, 400) for _ in range((6, 9, 12)[trial % 3])]
        a, b = ([r * rng.lognormvariate(0, 0.01) for r in rounds] for _ in range(2))
        called += stats.ratio(a, b, paired=True).verdict != "no difference shown"
    assert called <= 100


@pytest.mark.parametrize("bad", [[], [0.0], [-1.0], [math.nan], [math.inf]])
def test_ratio_refuses_what_has_no_logarithm(bad: list[float]) -> None:
    """A side that is empty, not positive or not finite is refused, on either side."""
    for above, below in ((bad, [1.0]), ([1.0], bad)):
        with pytest.raises(ValueError, match="value"):
            stats.ratio(above, below)


def test_ratio_refuses_incomplete_pairs() -> None:
    """Pairs need both sides."""
    with pytest.raises(ValueError, match="cannot be paired"):
        stats.ratio([1, 2], [1], paired=True)


def test_ratio_without_attainable_coverage_has_no_interval() -> None:
    """Six runs a side reach 99.78 %, so 99.9 % cannot be had."""
    assert stats.ratio(range(1, 7), range(1, 7), coverage=0.999).verdict == "too few runs"


def test_holm_steps_down() -> None:
    """0.01, 0.03, 0.04 of three become 0.03, 0.06 and 0.06; the order of the table stays."""
    assert stats.holm([0.04, 0.01, 0.03]) == pytest.approx([0.06, 0.03, 0.06])
    assert stats.holm([0.9, 0.8]) == [1, 1]
    assert stats.holm([]) == []
    with pytest.raises(ValueError, match="p-value"):
        stats.holm([math.nan])


def test_outliers_by_median_absolute_deviation() -> None:
    """MAD 1 of 8..12: more than 5.19 away is marked, less is not."""
    assert stats.outliers([8, 9, 10, 11, 12, 9, 11, 4.9, 15.1]) == [False] * 9
    assert stats.outliers([8, 9, 10, 11, 12, 9, 11, 4.8, 15.2]) == [False] * 7 + [True, True]


def test_outliers_fall_back_to_quartiles() -> None:
    """Where more than half of the values repeat, the interquartile range gives the scale; without that nothing does."""
    assert stats.outliers([10, 10, 10, 10, 10, 10, 11, 11, 11, 20]) == [False] * 9 + [True]
    assert stats.outliers([391.52] * 9 + [391.53]) == [False] * 10
    assert stats.outliers([5.0]) == [False]


def pettitt(values: list[float]) -> float:
    """The statistic by its definition."""
    n = len(values)
    return max(
        abs(sum((x > y) - (x < y) for x in values[:t] for y in values[t:])) for t in range(1, n)
    )  # fmt: skip


def test_change_point_counts_all_orders() -> None:
    """Of 8! orders, as many reach the statistic as brute force over all of them says."""
    values = [1.0, 2.0, 5.0, 3.0, 8.0, 6.0, 4.0, 7.0]  # beginnings: -7, -12, -11, -14, -7, -4, -5
    most = pettitt(values)
    reach = sum(pettitt(list(order)) >= most for order in itertools.permutations(range(8)))
    found = stats.change_point(values)
    assert found is not None
    assert (found.after, found.median_before, found.median_after) == (4, 2.5, 6.5)
    assert found.p_value == pytest.approx(reach / math.factorial(8))


def test_change_point_of_a_clean_step() -> None:
    """Five low, five high: K = 25, reached by 2 x 5! x 5! orders of 10!; above 13 values by Pettitt's formula."""
    found = stats.change_point([1, 2, 3, 4, 5, 11, 12, 13, 14, 15])
    assert found == stats.Change(5, 3, 13, pytest.approx(28800 / 3628800))
    long = stats.change_point([*range(10), *range(100, 110)])
    assert long is not None
    assert long.p_value == pytest.approx(2 * math.exp(-6 * 100**2 / (20**3 + 20**2)))


def test_change_point_refuses_what_cannot_be_shown() -> None:
    """Seven values have none; equal ones have no change; ties make it less likely, never more."""
    assert stats.change_point(range(7)) is None
    same = stats.change_point([5.0] * 9)
    assert same is not None
    assert same.p_value == 1
    tied, strict = stats.change_point([1, 1, 1, 1, 2, 2, 2, 2]), stats.change_point(range(8))
    assert tied is not None
    assert strict is not None
    assert tied.p_value == strict.p_value  # a clean step either way
    with pytest.raises(ValueError, match="finite"):
        stats.change_point([math.nan] * 8)


def test_runs_to_decide_follows_the_square_of_the_scatter() -> None:
    """Scatter 1.4826 x 1 % a side, ratio 1.005: 1.96^2 x pi/3 x 2 x 0.0148^2 / ln(1.005)^2 = 71.1 runs a side."""
    below = [math.exp(0.01 * k) for k in (-2, -1, -1, 0, 1, 1, 2)]
    above = [1.005 * x for x in below]
    wanted = math.ceil(1.959964**2 * math.pi / 3 * 2 * 0.014826**2 / math.log(1.005) ** 2)
    assert stats.runs_to_decide(above, below) == wanted == 72
    assert stats.runs_to_decide(below, above) == wanted
    assert stats.runs_to_decide(above, below, most=71) is None


def test_runs_to_decide_is_honest_where_nothing_can_be_foreseen() -> None:
    """Equal sides never decide; two runs show no scatter; what is decided needs no more."""
    same = [99.0, 100.0, 101.0, 100.0, 99.5, 100.5]
    assert stats.runs_to_decide(same, same) is None
    assert stats.runs_to_decide([1, 2], [3, 4]) is None
    assert stats.runs_to_decide([200, 201, 202, 203, 204, 205], [1, 2, 3, 4, 5, 6]) == 6
    assert stats.runs_to_decide([200, 201, 202], [1.0, 1.01, 1.02]) == 6


def test_runs_to_decide_comes_true() -> None:
    """With as many runs as forecast for the true scatter, about half of the comparisons decide."""
    rng = random.Random(5)
    needed = math.ceil(1.959964**2 * math.pi / 3 * 2 * 0.01**2 / 0.01**2)
    decided = 0
    for _ in range(400):
        a, b = ([f * rng.lognormvariate(0, 0.01) for _ in range(needed)] for f in (math.exp(0.01), 1))
        decided += stats.ratio(a, b).verdict == "higher"
    assert 140 <= decided <= 260
