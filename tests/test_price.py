"""Money: every price, break-even and answer worked out by hand."""

import math
import re
from pathlib import Path

import pytest

from rdmalab import campaign as campaigns
from rdmalab.compare import Cell
from rdmalab.errors import CampaignError, NothingToCompare
from rdmalab.lab import Lab
from rdmalab.pages.price_performance import PricePerformance
from rdmalab.price import DOES_NOT_PAY, NOT_DECIDED, PAYS, offer_of, prices, time_at
from tests._comparisons import campaign, lab_of, runs_of

QUOTE = {"fabric": "roce", "unit": "CNY/GPU-hour", "source": "offer", "gpus_per_node": None, "lease_months": None,
         "discount_pct": None}  # fmt: skip
MIB = 1 << 20


def quotes(tcp: float = 10, roce: float = 15, more: str = "") -> str:
    """A quote of each fabric."""
    return "".join(
        f'[[quote]]\nfabric = "{f}"\nprice = {p}\nunit = "CNY/GPU-hour"\nsource = "offer"\n'
        for f, p in (("tcp", tcp), ("roce", roce))
    ) + more  # fmt: skip


def workload(size: int = MIB, count: int = 1000, compute: str = "compute_ms = 10\n") -> str:
    return f'[[workload]]\nname = "job"\nsize_bytes = {size}\ncollectives_per_step = {count}\n{compute}'


def lab(tmp_path: Path, more: str, *, tcp: float = 2.0, runs: int = 7) -> Lab:
    """At 1 MiB 124.86 us on RoCE and *tcp* times that on TCP: 1,000 of them are 124.86 ms and 249.72 ms."""
    logs = runs_of("tcp", tcp, runs=runs) | runs_of("roce", 1.0, runs=runs)
    return lab_of(tmp_path, logs, campaign("tcp", "roce", more=more))


@pytest.mark.parametrize(
    ("change", "gpu_hour", "formula"),
    [
        ({"price": 20.0}, 20.0, "20"),
        ({"price": 14600.0, "unit": "CNY/GPU-month"}, 20.0, "14600 / 730 h"),
        ({"price": 116800.0, "unit": "CNY/node-month", "gpus_per_node": 8}, 20.0, "116800 / 730 h / 8 GPUs"),
        ({"price": 20.0, "lease_months": 12, "discount_pct": 15.0}, 17.0, "20 x (1 - 15 %)"),
    ],
)
def test_every_unit_becomes_a_gpu_hour(change: dict[str, object], gpu_hour: float, formula: str) -> None:
    """730 hours a month; a node has the GPUs that are stated; a lease takes its discount off."""
    offer = offer_of(QUOTE | change)
    assert (offer.gpu_hour, offer.formula, offer.currency) == (pytest.approx(gpu_hour), formula, "CNY")


def test_a_lease_breaks_even_after_its_discounted_months() -> None:
    """12 (1 - 0.15) = 10.2 months at the full price."""
    offer = offer_of(QUOTE | {"price": 20.0, "lease_months": 12, "discount_pct": 15.0})
    assert offer.break_even_months == pytest.approx(10.2)


def test_a_price_of_a_node_needs_its_gpus() -> None:
    """Eight is usual and not assumed."""
    with pytest.raises(NothingToCompare, match="state gpus_per_node"):
        offer_of(QUOTE | {"price": 1.0, "unit": "CNY/node-month"})


def test_a_time_between_two_sizes_lies_straight_on_logarithms() -> None:
    """Between 10 us at 1 KiB and 40 us at 4 KiB, 2 KiB take 20 us; beyond them there is no time."""
    cells = [
        Cell(fabric="f", size_bytes=s, n=7, median=t, low=0.9 * t, high=1.1 * t, verdict="")
        for s, t in ((1024, 10.0), (4096, 40.0))
    ]
    middle = time_at(cells, 2048)
    assert middle
    assert middle == pytest.approx((20.0, 18.0, 22.0))
    assert (time_at(cells, 512), time_at(cells, 8192)) == (None, None)


def test_what_a_delivered_gbyte_s_costs(tmp_path: Path) -> None:
    """busbw at 1 MiB: 1.875 x 1048576 / 124.86 us = 15.75 GB/s on RoCE: 15 / 15.75 = 0.952 CNY."""
    found = prices(lab(tmp_path, quotes()))
    by = {d.offer.fabric: d for d in found.delivered}
    assert by["roce"].busbw_gbyte_s.value == pytest.approx(15.75, abs=0.01)
    assert by["roce"].per_gbyte_s.value == pytest.approx(15 / 15.75, rel=1e-3)
    low, high = by["roce"].per_gbyte_s.low, by["roce"].per_gbyte_s.high
    assert low
    assert high
    assert low < by["roce"].per_gbyte_s.value < high


def test_the_premium_pays_when_every_reading_is_faster_by_more(tmp_path: Path) -> None:
    """(10 + 249.72) / (10 + 124.86) = 1.926 not hidden, 2.0 hidden: above 15 / 10 = 1.5."""
    (x,) = prices(lab(tmp_path, quotes() + workload())).premiums
    assert (x.answer, x.dear, x.cheap, x.premium) == (PAYS, "roce", "tcp", pytest.approx(0.5))
    assert [round(s.speed_up.value, 3) for s in x.scenarios] == [1.926, 2.0]
    assert x.share
    assert x.share["tcp"] == pytest.approx((239.72 / 249.72, 249.72 / 259.72), abs=1e-3)


def test_what_a_thousand_steps_cost(tmp_path: Path) -> None:
    """RoCE: steps of 124.86 ms hidden and 134.86 ms not: 15 x 0.12486 / 3.6 = 0.520 and 0.562 CNY a thousand."""
    (x,) = prices(lab(tmp_path, quotes() + workload())).premiums
    assert x.thousand_steps
    assert x.thousand_steps["roce"] == pytest.approx((0.5203, 0.5619), rel=2e-3)
    assert x.currency == "CNY"


def test_of_two_quotes_for_one_fabric_the_cheaper_counts(tmp_path: Path) -> None:
    """TCP at 12 and at 10: no fabric is set against itself, and the premium is that over 10."""
    more = '[[quote]]\nfabric = "tcp"\nprice = 12\nunit = "CNY/GPU-hour"\nsource = "other"\n'
    (x,) = prices(lab(tmp_path, more + quotes() + workload())).premiums
    assert (x.cheap, x.dear, x.premium) == ("tcp", "roce", pytest.approx(0.5))


def test_rdma_is_not_needed_where_communication_is_a_small_part(tmp_path: Path) -> None:
    """(1000 + 249.72) / (1000 + 124.86) = 1.11 and 1.0: below 1.5."""
    (x,) = prices(lab(tmp_path, quotes() + workload(compute="compute_ms = 1000\n"))).premiums
    assert x.answer == DOES_NOT_PAY


def test_without_compute_ms_only_what_holds_for_all_is_said(tmp_path: Path) -> None:
    """Twice as fast at most: a premium of 150 % never pays, one of 50 % may."""
    (never,) = prices(lab(tmp_path, quotes(roce=25) + workload(compute=""))).premiums
    assert (never.answer, never.share) == (DOES_NOT_PAY, None)
    (maybe,) = prices(lab(tmp_path / "other", quotes() + workload(compute=""))).premiums
    assert (maybe.answer, maybe.missing) == (NOT_DECIDED, "compute_ms")
    assert {s.compute_ms for s in maybe.scenarios} == {0.0, math.inf}


def test_readings_that_disagree_ask_for_the_overlap(tmp_path: Path) -> None:
    """Computing of 200 ms: 449.72 / 324.86 = 1.38 not hidden, 249.72 / 200 = 1.249 hidden; 1.3 lies between."""
    (x,) = prices(lab(tmp_path, quotes(roce=13) + workload(compute="compute_ms = 200\n"))).premiums
    assert (x.answer, x.missing) == (NOT_DECIDED, "overlap")


def test_few_runs_decide_nothing(tmp_path: Path) -> None:
    """Five runs have no interval."""
    (x,) = prices(lab(tmp_path, quotes() + workload(), runs=5)).premiums
    assert (x.answer, x.missing, x.because) == (NOT_DECIDED, "runs", "too few runs for an interval")


def test_a_size_outside_of_what_was_measured_is_refused(tmp_path: Path) -> None:
    """1 GiB was not measured; nothing is drawn beyond 1 MiB."""
    found = prices(lab(tmp_path, quotes() + workload(size=1 << 30)))
    assert found.premiums == ()
    assert found.refused[0] == "job: 1073741824 B lie outside what tcp measured"


def test_currencies_are_never_mixed(tmp_path: Path) -> None:
    """A quote in USD is compared with none in CNY."""
    text = quotes().replace('15\nunit = "CNY/GPU-hour"', '15\nunit = "USD/GPU-hour"')
    assert prices(lab(tmp_path, text + workload())).premiums == ()


def test_a_campaign_without_quotes_says_what_to_write(tmp_path: Path) -> None:
    """The table and the next step."""
    with pytest.raises(NothingToCompare, match=r"write \[\[quote\]\] into its rdmalab.toml"):
        prices(lab(tmp_path, ""))


@pytest.mark.parametrize(
    ("text", "message"),
    [
        (quotes().replace('"roce"', '"rooce"'), "no [[fabric]] is named 'rooce'. Did you mean 'roce'?"),
        (
            quotes().replace("CNY/GPU-hour", "CNY/GPU-hours"),
            "unknown unit 'CNY/GPU-hours'. Did you mean 'CNY/GPU-hour'?",
        ),
        (quotes().replace("price = 10", "price = -1"), "price must be greater than 0"),
        (quotes().replace("source", "sourse"), "unknown key 'sourse' in [quote]. Did you mean 'source'?"),
        (quotes(more="lease_months = 12\n"), "lease_months and discount_pct belong together"),
    ],
)
def test_mistakes_in_quotes_are_told_with_their_line(tmp_path: Path, text: str, message: str) -> None:
    """File, line, what is wrong, and the nearest word."""
    file = tmp_path / "rdmalab.toml"
    file.write_text(campaign("tcp", "roce") + text, encoding="utf-8")
    with pytest.raises(CampaignError) as error:
        campaigns.load(file)
    assert re.match(rf"{re.escape(str(file))}:\d+: {re.escape(message)}", str(error.value))


@pytest.mark.parametrize("lang", ["en", "zh"])
def test_the_report_says_the_answer_in_both_languages(tmp_path: Path, lang: str) -> None:
    """Cover, money, steps and method without a hole; the answer stands on the cover."""
    page = PricePerformance(prices(lab(tmp_path, quotes() + workload(compute="compute_ms = 1000\n"))), lang)
    blocks = [page.cover(), page.money(), page.steps(), page.evidence(), page.method()]
    whole = " ".join(re.sub(r"<[^>]*>", " ", b.html) for b in blocks)
    assert not re.search(r"\{[a-z_]+\}|None", whole)
    said = {"en": "job: ROCE is not needed; it costs 50.0", "zh": "job：不需要ROCE；比TCP贵50.0"}[lang]
    assert said in " ".join(blocks[0].html.replace("&nbsp;", " ").split())
