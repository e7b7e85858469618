"""Single runs that stand out, and levels that change, in cells worked out by hand."""

import polars as pl
import pytest

from rdmalab import series, stability


def points_of(values: list[float], fabric: str = "roce") -> pl.DataFrame:
    """Runs r0, r1, ... of one collective at 1 MiB with these times in µs."""
    n = len(values)
    frame = pl.DataFrame(
        {
            "kind": ["collective"] * n, "fabric": fabric, "size_bytes": 1048576, "run_id": [f"r{i}" for i in range(n)],
            "path": [f"{i}.log" for i in range(n)], "line": [40] * n, "time_us": [float(v) for v in values],
        }
    )  # fmt: skip
    keys = dict.fromkeys((*series.COLLECTIVE_KEY, *series.TEST_KEY), pl.String)
    keys |= {"ranks": pl.Int64, "nodes": pl.Int64, "bw_avg_gbit_s": pl.Float64, "lat_typical_us": pl.Float64}
    return frame.with_columns(pl.lit(None, dtype=kind).alias(k) for k, kind in keys.items())


def stamped(n: int) -> pl.DataFrame:
    """Every run a minute after the one before."""
    return pl.DataFrame(
        {"run_id": [f"r{i}" for i in range(n)], "started": [f"2026-01-01 10:{i:02d}:00" for i in range(n)]}
    )


def test_a_run_that_stands_out_is_named() -> None:
    """140 µs among 99 to 101: run r6, 1.4 times the median; 101 is noise."""
    found = stability.unusual_runs(points_of([100, 99, 101, 100, 99, 101, 140]))
    assert found.select("run_id", "path", "line", "value", "median", "ratio", "n").rows() == [
        ("r6", "6.log", 40, 140.0, 100.0, 1.4, 7)
    ]


def test_few_or_hardly_different_runs_are_not_called_unusual() -> None:
    """Five runs give no scale; 1 % is no story, however regular the others are."""
    assert stability.unusual_runs(points_of([100, 99, 101, 100, 140])).is_empty()
    assert stability.unusual_runs(points_of([100.0, 100.01, 99.99, 100.0, 100.02, 99.98, 101.0])).is_empty()


def test_a_change_of_level_is_dated_by_two_runs() -> None:
    """100 five times, then 110 five times: K = 25 of 10 runs, in 2 x 5! x 5! of 10! orders."""
    values = [100, 101, 99, 100.5, 99.5, 110, 111, 109, 110.5, 109.5]
    (row,) = stability.drift(points_of(values), stamped(10)).to_dicts()
    assert (row["verdict"], row["run_before"], row["run_after"]) == ("level changed", "r4", "r5")
    assert (row["median_before"], row["median_after"]) == (100, 110)
    assert row["p_value"] == pytest.approx(2 * 120 * 120 / 3628800)


def test_without_an_order_nothing_is_said_of_time() -> None:
    """A run without a stamp, or two with the same one, and the order is not known."""
    values = [100.0] * 5 + [110.0] * 5
    for started in (stamped(9), stamped(10).with_columns(started=pl.lit("2026-01-01"))):
        (row,) = stability.drift(points_of(values), started).to_dicts()
        assert (row["verdict"], row["run_before"], row["p_value"]) == ("order not known", None, None)


def test_seven_runs_show_no_change() -> None:
    """The rarest order of seven comes up in more than one of ten series."""
    (row,) = stability.drift(points_of([1, 2, 3, 8, 9, 10, 11]), stamped(7)).to_dicts()
    assert row["verdict"] == "too few runs"


def test_a_level_that_stays_shows_no_change() -> None:
    """Ups and downs are no change."""
    (row,) = stability.drift(points_of([1, 9, 2, 8, 3, 7, 4, 6]), stamped(8)).to_dicts()
    assert (row["verdict"], row["median_before"]) == ("no change shown", None)
