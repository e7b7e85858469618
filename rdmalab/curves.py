"""
The shape of a sweep over message sizes: floor and asymptote, dips and steps, and the size from which a fabric wins.

    time(S) = alpha + S / beta

alpha is the latency floor in microseconds, beta the asymptotic bandwidth in GB/s (10^9 byte/s), alpha x beta the
half-bandwidth size: the size at which half of beta is reached (Hockney's r_inf and n_1/2, Parallel Computing 20, 1994).
For collectives S is the size that nccl-tests prints and beta an algbw; for latency tests beta is a payload rate; for
bandwidth tests, which keep many messages in flight, time is the mean gap between two messages.
"""

import math
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from rdmalab import series, stats
from rdmalab.series import Selection, Subject

if TYPE_CHECKING:
    import polars as pl

    from rdmalab.lab import Lab

MIN_SIZES = 5  # of a sweep: two numbers are fitted
# Residuals above which two numbers do not describe a curve: the median, the largest, and those at both ends, for which
# floor and asymptote stand.
LARGEST_MEDIAN_PCT, LARGEST_PCT, LARGEST_END_PCT = 10.0, 30.0, 10.0
NOTCH = 0.10  # bandwidth that is missing at a dip or a step
NOTCH_RUNS = 3  # a dip in one or two runs is noise
_SHOWN = ("kind", "operation", "test", "dtype", "ranks", "nodes", "placement")


@dataclass(frozen=True, slots=True)
class Fit:
    """
    time(S) = alpha + S / beta, in µs and GB/s; residuals are relative to the measured times, in per cent.

    ``worst_bytes`` is the size with the largest residual, ``ends_pct`` the larger one of the smallest and the largest
    size.
    """

    alpha_us: float
    beta_gbyte_s: float
    median_pct: float
    largest_pct: float
    ends_pct: float
    worst_bytes: int

    @property
    def half_bytes(self) -> float:
        """The size at which half of the asymptotic bandwidth is reached."""
        return self.alpha_us * self.beta_gbyte_s * 1e3

    @property
    def describes(self) -> bool:
        """Whether the residuals are small enough; else the curve has another shape, a change of protocol for one."""
        return (
            self.median_pct <= LARGEST_MEDIAN_PCT
            and self.largest_pct <= LARGEST_PCT
            and self.ends_pct <= LARGEST_END_PCT
        )


def fit(sizes_bytes: Sequence[int], times_us: Sequence[float]) -> Fit | None:
    """
    The line with the least sum of relative deviations |time - (alpha + S / beta)| / time: every size weighs the same.

    Least absolute deviations pass through two of the points (or through one, with alpha 0), so all such lines are
    tried: no start, no iteration, and a single bad size bends nothing.

    Returns:
        None below 5 sizes, or where no time grows with the size.

    Raises:
        ValueError: A size or a time is not positive.
    """
    points = sorted(zip(sizes_bytes, times_us, strict=True))
    if any(s <= 0 or not t > 0 for s, t in points):
        raise ValueError("sizes and times are positive")
    if len({s for s, _ in points}) < MIN_SIZES:
        return None
    alpha, slope = _least(points)
    residuals = [100 * abs(alpha + slope * s - t) / t for s, t in points]
    largest = max(residuals)
    ends = max(residuals[0], residuals[-1])
    return Fit(alpha, 1e-3 / slope, stats.median(residuals), largest, ends, points[residuals.index(largest)][0])


def _least(points: Sequence[tuple[int, float]]) -> tuple[float, float]:
    """Alpha and slope of the best of all lines through two points, or through the origin and one."""
    import numpy as np

    sizes, times = np.array(points, dtype=float).T
    one, other = np.triu_indices(len(points), 1)
    with np.errstate(divide="ignore", invalid="ignore"):  # the same size twice
        slopes = (times[other] - times[one]) / (sizes[other] - sizes[one])
        alphas = times[one] - slopes * sizes[one]
    fine = (sizes[other] > sizes[one]) & (slopes > 0) & (alphas >= 0)
    alphas = np.concatenate([alphas[fine], np.zeros(len(points))])
    slopes = np.concatenate([slopes[fine], times / sizes])
    deviations = np.abs(alphas[:, None] + slopes[:, None] * sizes - times) / times
    best = int(deviations.sum(axis=1).argmin())
    return float(alphas[best]), float(slopes[best])


def curves(lab: "Lab", selection: Selection) -> "pl.DataFrame":
    """
    One row a run and measurand with at least 5 sizes.

    Columns: the fields of the measurand, fabric, run_id, path, sizes (their number), size_min, size_max, as measured
    smallest_us (the time of the smallest size), largest_gbyte_s (the bandwidth of the largest) and
    half_of_largest_bytes (where half of it is reached, between two sizes), and of the fit latency_floor_us,
    asymptotic_gbyte_s, half_bandwidth_bytes; median_residual_pct, largest_residual_pct and worst_size_bytes say how
    good it is. Where it does not describe the curve its three numbers are null, and those
    that were measured stand.

    Raises:
        UsageError: The selection names something that the store does not have.
    """
    import polars as pl

    names = series.fabrics_of(lab, selection)["fabric"].to_list()
    rows = [
        _row(subject, str(fabric), str(run), part)
        for subject, points in series.subjects(series.points(lab, selection, names))
        if not subject.unknown
        for (fabric, run), part in sorted(
            points.group_by("fabric", "run_id", maintain_order=True), key=lambda group: names.index(group[0][0])
        )
        if part["size_bytes"].drop_nulls().n_unique() >= MIN_SIZES
    ]
    texts = dict.fromkeys((*_SHOWN, "fabric", "run_id", "path"), pl.String)
    whole = dict.fromkeys(("ranks", "nodes", "sizes", "size_min", "size_max", "worst_size_bytes"), pl.Int64)
    numbers = (
        "smallest_us", "largest_gbyte_s", "half_of_largest_bytes", "latency_floor_us", "asymptotic_gbyte_s",
        "half_bandwidth_bytes", "median_residual_pct", "largest_residual_pct",
    )  # fmt: skip
    return pl.DataFrame(rows, schema=texts | whole | dict.fromkeys(numbers, pl.Float64), infer_schema_length=None)


def _row(subject: Subject, fabric: str, run: str, part: "pl.DataFrame") -> dict[str, Any]:
    sizes, times = _times(subject, part)
    found = fit(sizes, times)
    row: dict[str, Any] = {k: getattr(subject, k) for k in _SHOWN} | {
        "fabric": fabric, "run_id": run, "path": part["path"][0], "sizes": len(sizes), "size_min": sizes[0],
        "size_max": sizes[-1], "smallest_us": times[0], "largest_gbyte_s": sizes[-1] / times[-1] / 1e3,
        "half_of_largest_bytes": half_of_largest(sizes, times),
    }  # fmt: skip
    if found:
        row |= {
            "median_residual_pct": found.median_pct, "largest_residual_pct": found.largest_pct,
            "worst_size_bytes": found.worst_bytes,
        }  # fmt: skip
        if found.describes:
            row |= {
                "latency_floor_us": found.alpha_us, "asymptotic_gbyte_s": found.beta_gbyte_s,
                "half_bandwidth_bytes": found.half_bytes,
            }  # fmt: skip
    return row


def _times(subject: Subject, part: "pl.DataFrame") -> tuple[list[int], list[float]]:
    """Sizes, ascending, and µs a message: for bandwidths the mean gap between two messages."""
    rows = part.filter(part["size_bytes"].is_not_null() & (part[subject.metric] > 0)).sort("size_bytes")
    sizes, values = rows["size_bytes"].to_list(), rows[subject.metric].to_list()
    return sizes, values if subject.lower_is_better else [s * 8e-3 / v for s, v in zip(sizes, values, strict=True)]


def half_of_largest(sizes_bytes: Sequence[int], times_us: Sequence[float]) -> float | None:
    """
    The size at which half of the bandwidth of the largest size is reached for good, as measured.

    Between the two sizes around it the bandwidth is taken to follow a power of the size. None where even the smallest
    size has half of it.
    """
    rates = [s / t for s, t in zip(sizes_bytes, times_us, strict=True)]
    half = rates[-1] / 2
    below = max((i for i, rate in enumerate(rates) if rate < half), default=None)
    if below is None:
        return None
    (s, r), (larger, more) = ((sizes_bytes[i], rates[i]) for i in (below, below + 1))
    return float(s * (larger / s) ** (math.log(half / r) / math.log(more / r)))


def summary(found: "pl.DataFrame") -> "pl.DataFrame":
    """
    Medians over the runs of :func:`curves`, one row a measurand and fabric.

    Columns: the fields of the measurand, fabric, runs, described (runs whose fit holds), and for each of smallest_us,
    largest_gbyte_s, half_of_largest_bytes, latency_floor_us, asymptotic_gbyte_s, half_bandwidth_bytes the median with
    _low and _high, null below 6 runs. The three fitted ones are null where the fit holds for half of the runs or fewer.
    """
    import polars as pl

    measured = ("smallest_us", "largest_gbyte_s", "half_of_largest_bytes")
    fitted = ("latency_floor_us", "asymptotic_gbyte_s", "half_bandwidth_bytes")
    rows = []
    for key, part in found.group_by(*_SHOWN, "fabric", maintain_order=True):
        good = part["latency_floor_us"].drop_nulls().len()
        row: dict[str, Any] = dict(zip((*_SHOWN, "fabric"), key, strict=True))
        row |= {"runs": len(part), "described": good}
        for name in (*measured, *(fitted if 2 * good > len(part) else ())):
            values = part[name].drop_nulls()
            if values.is_empty():
                continue
            interval = stats.median_interval(values)
            row |= {name: stats.median(values), f"{name}_low": interval and interval.low}
            row[f"{name}_high"] = interval and interval.high
        rows.append(row)
    numbers = [f"{name}{end}" for name in (*measured, *fitted) for end in ("", "_low", "_high")]
    schema = {k: found.schema[k] for k in (*_SHOWN, "fabric")} | {"runs": pl.Int64, "described": pl.Int64}
    return pl.DataFrame(rows, schema=schema | dict.fromkeys(numbers, pl.Float64), infer_schema_length=None)


def dips(points: "pl.DataFrame", least: float = NOTCH) -> "pl.DataFrame":
    """
    Sizes at which most runs of a sweep lose bandwidth.

    A dip is a size at which the bandwidth lies *least* below the line between its two neighbours (both axes
    logarithmic); a step is one at which it is *least* below that of the next smaller size, without being a dip.

    Args:
        points: Of :func:`rdmalab.series.points`.
        least: Share of the bandwidth that is missing.

    Returns:
        One row a measurand, fabric and size: the fields of the measurand, fabric, size_bytes, shape (``dip``,
        ``step``), missing_pct (the median over the runs that show it), runs_with, runs (with this size and the
        neighbours). Only where at least 3 runs have the size and more than half of them show it.
    """
    import polars as pl

    rows = []
    for subject, part in series.subjects(points):
        for (fabric,), own in part.group_by("fabric", maintain_order=True):
            seen: dict[int, list[dict[str, float]]] = {}
            for _, run in own.group_by("run_id", maintain_order=True):
                for size, notch in _notches(*_times(subject, run), least):
                    seen.setdefault(size, []).append(notch)
            for size, notches in sorted(seen.items()):
                with_it = {s: [n[s] for n in notches if s in n] for s in ("dip", "step")}
                shape = max(with_it, key=lambda s: len(with_it[s]))
                if len(notches) >= NOTCH_RUNS and 2 * len(with_it[shape]) > len(notches):
                    rows.append(
                        {k: getattr(subject, k) for k in _SHOWN}
                        | {"fabric": fabric, "size_bytes": size, "shape": shape}
                        | {"missing_pct": stats.median(with_it[shape]), "runs_with": len(with_it[shape])}
                        | {"runs": len(notches)}
                    )
    texts = dict.fromkeys((*_SHOWN, "fabric", "shape"), pl.String)
    whole = dict.fromkeys(("ranks", "nodes", "size_bytes", "runs_with", "runs"), pl.Int64)
    order = [*_SHOWN, "fabric", "size_bytes", "shape", "missing_pct", "runs_with", "runs"]
    return pl.DataFrame(rows, schema=texts | whole | {"missing_pct": pl.Float64}, infer_schema_length=None).select(
        order
    )


def _notches(sizes: Sequence[int], times: Sequence[float], least: float) -> Iterator[tuple[int, dict[str, float]]]:
    """Every inner size of one sweep with what is missing there in per cent, as ``dip`` or ``step``; mostly nothing."""
    rates = [s / t for s, t in zip(sizes, times, strict=True)]
    for i in range(1, len(sizes) - 1):
        before, here, after = rates[i - 1 : i + 2]
        share = math.log(sizes[i] / sizes[i - 1]) / math.log(sizes[i + 1] / sizes[i - 1])
        expected = before ** (1 - share) * after**share
        if here < (1 - least) * expected and after >= (1 - least) * before:  # else it stays down
            yield sizes[i], {"dip": 100 * (1 - here / expected)}
        elif here < (1 - least) * before:
            yield sizes[i], {"step": 100 * (1 - here / before)}
        else:
            yield sizes[i], {}
