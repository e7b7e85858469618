"""Floor, asymptote, half-bandwidth size, dips and steps, on curves worked out by hand."""

from pathlib import Path

import polars as pl
import pytest
from hypothesis import given
from hypothesis import strategies as st

from rdmalab import compare, curves, series
from rdmalab.ingest import ingest
from rdmalab.lab import Lab
from rdmalab.series import Selection
from rdmalab.store import Store

EXAMPLES = Path(__file__).parents[1] / "data" / "examples"
SIZES = [2**i for i in range(3, 31)]


@given(st.floats(0.5, 500), st.floats(0.1, 400))
def test_an_exact_curve_gives_its_two_numbers(alpha: float, beta: float) -> None:
    """time = alpha + S / beta: both come back, and half of beta is reached at alpha x beta."""
    found = curves.fit(SIZES, [alpha + s / beta / 1e3 for s in SIZES])
    assert found is not None
    assert found.alpha_us == pytest.approx(alpha, rel=1e-3)
    assert found.beta_gbyte_s == pytest.approx(beta, rel=1e-3)
    assert found.half_bytes == pytest.approx(alpha * beta * 1e3, rel=2e-3)
    assert found.describes


def test_one_bad_size_bends_nothing() -> None:
    """20 µs and 50 GB/s with one row ten times too slow: the residual says it, and the curve is refused for it."""
    times = [20 + s / 50e3 for s in SIZES]
    times[10] *= 10
    found = curves.fit(SIZES, times)
    assert found is not None
    assert (found.alpha_us, found.beta_gbyte_s) == (pytest.approx(20), pytest.approx(50))
    assert (found.worst_bytes, found.largest_pct) == (SIZES[10], pytest.approx(90))
    assert found.median_pct == pytest.approx(0, abs=1e-9)
    assert not found.describes


def test_a_change_of_protocol_is_no_line() -> None:
    """10 µs up to 64 KiB, 40 µs above: no two numbers describe it."""
    found = curves.fit(SIZES, [(10 if s <= 65536 else 40) + s / 50e3 for s in SIZES])
    assert found is not None
    assert not found.describes


def test_too_few_sizes_have_no_curve() -> None:
    """Two numbers from four sizes would be a guess; a size of 0 or a time of 0 is none."""
    assert curves.fit(SIZES[:4], [1, 2, 3, 4]) is None
    with pytest.raises(ValueError, match="positive"):
        curves.fit([0, *SIZES[:4]], [1, 2, 3, 4, 5])


def test_half_of_the_largest_is_read_between_two_sizes() -> None:
    """1, 2, 4, 8 B/µs at 1, 4, 16, 64 B: half of 8 is reached at 16 B; of 6 between 4 B (2) and 16 B (4)."""
    assert curves.half_of_largest([1, 4, 16, 64], [1, 2, 4, 8]) == pytest.approx(16)
    assert curves.half_of_largest([1, 4, 16, 64], [1, 2, 4, 64 / 6]) == pytest.approx(4 * 4 ** (0.58496250072))
    assert curves.half_of_largest([1, 4], [1, 4]) is None


def points_of(*runs: list[float], sizes: list[int]) -> pl.DataFrame:
    """Points of latency runs with these times in µs."""
    rows = [
        {"fabric": "roce", "kind": "latency", "test": "ib_write_lat", "run_id": f"r{i}", "size_bytes": s, "path": "x"}
        | {"lat_typical_us": t}
        for i, times in enumerate(runs)
        for s, t in zip(sizes, times, strict=True)
    ]
    empty = dict.fromkeys((*series.TEST_KEY, *series.COLLECTIVE_KEY), pl.String)
    frame = pl.DataFrame(rows).with_columns(
        pl.lit(None, dtype=kind).alias(k) for k, kind in empty.items() if k not in rows[0]
    )
    return frame.with_columns(time_us=pl.lit(None, dtype=pl.Float64), bw_avg_gbit_s=pl.lit(None, dtype=pl.Float64))


def test_a_dip_is_named_by_its_size_and_runs() -> None:
    """100 B/µs everywhere, 50 at 256 B in two of three runs: half is missing there."""
    sizes = [64, 128, 256, 512, 1024]
    flat = [s / 100 for s in sizes]
    dipped = [0.64, 1.28, 5.12, 5.12, 10.24]
    found = curves.dips(points_of(dipped, dipped, flat, sizes=sizes))
    assert found.select("size_bytes", "shape", "missing_pct", "runs_with", "runs").rows() == [
        (256, "dip", pytest.approx(50), 2, 3)
    ]
    assert curves.dips(points_of(dipped, flat, flat, sizes=sizes)).is_empty()
    assert curves.dips(points_of(dipped, dipped, sizes=sizes)).is_empty()


def test_a_step_stays_down() -> None:
    """100 B/µs up to 128 B, 70 from 256 B on: 30 % below the size before."""
    sizes = [64, 128, 256, 512, 1024]
    stepped = [s / (100 if s < 256 else 70) for s in sizes]
    found = curves.dips(points_of(*[stepped] * 3, sizes=sizes))
    # at 256 B the line between 100 and 70 is at 83.7: 16 % below it, a dip by that; the next size shows that it stays
    assert found.select("size_bytes", "shape", "runs_with").rows() == [(256, "step", 3)]
    assert found["missing_pct"][0] == pytest.approx(30)


def cell(fabric: str, size: int, verdict: str) -> compare.Cell:
    return compare.Cell(
        fabric=fabric, size_bytes=size, n=7, median=1, low=1, high=1, verdict=verdict,
        ratio=None if verdict == compare.BASELINE else 2.0,
    )  # fmt: skip


def test_runs_of_a_campaign(tmp_path: Path) -> None:
    """Seven runs of each latency test of 23 sizes; the floor is the 2 B time, and an interval stands beside it."""
    store = Store(tmp_path / "lab.duckdb")
    ingest([str(EXAMPLES / "synthetic" / "roce-100g" / "perftest")], store)
    lab = Lab(store.path)
    found = curves.curves(lab, Selection())
    reads = found.filter(found["test"] == "ib_read_lat")
    assert (len(reads), set(reads["sizes"]), set(reads["size_max"])) == (7, {23}, {8388608})
    (row,) = curves.summary(reads).to_dicts()
    assert (row["runs"], row["described"]) == (7, 7)
    assert row["latency_floor_us_low"] <= row["latency_floor_us"] <= row["latency_floor_us_high"]
    assert row["latency_floor_us"] == pytest.approx(row["smallest_us"], rel=0.05)
    assert row["asymptotic_gbyte_s"] == pytest.approx(92.9 / 8, rel=0.02)  # what the generator was told
